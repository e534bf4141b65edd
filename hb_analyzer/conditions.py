"""The two conditions of sharing addresses, tested on every pair of access instances of one unrolled program.

1. No conflict: two accesses, at least one a write, are ordered: one has ended before the other begins. Within one
   buffer the same condition, for the same slot and overlapping regions, says that the buffer is free of races.
2. No clobber: a write x of B and a read r of A with x.end before r.begin clobber iff some byte of r was written by a w
   with w.end before x.begin, and by no w' with x.end before w'.begin and w'.end before r.begin.

A generic write that no proxy fence follows is not ordered before later accesses by the asynchronous proxy.
Sets of accesses are bit sets over access indices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hb_analyzer.graph import Ordering
from hb_analyzer.model import Program
from hb_analyzer.regions import Atoms, atoms_of, footprint
from hb_analyzer.traverse import accesses_of
from hb_analyzer.unrolling import Unrolling

Pair = tuple[str, str]  # buffer names, sorted; equal names: races inside one buffer


@dataclass(frozen=True)
class Finding:
    """Accesses (indices into ``Unrolling.accesses``) that forbid an overlap, or race if the pair is one buffer twice.

    ``kind`` "conflict": ``first`` and ``second`` are not ordered; "proxy": ``first`` is a generic write, without fence,
    before the asynchronous ``second``; "clobber": what ``first`` wrote is read by ``second`` after ``between``."""

    pair: Pair
    kind: str
    first: int
    second: int
    between: int | None = None


def atoms_by_buffer(program: Program) -> dict[str, Atoms]:
    """The atoms of every buffer, cut by all regions that the program names."""
    regions: dict[str, set[object]] = {buffer.name: set() for buffer in program.buffers}
    for access in accesses_of(program):
        if access.buffer in regions:
            regions[access.buffer].add(access.region)
    return {buffer.name: atoms_of(buffer, regions[buffer.name]) for buffer in program.buffers}  # type: ignore[arg-type]


def bits_of(bits: int) -> Iterator[int]:
    """The numbers of the set bits, lowest first."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


class Conditions:
    """Tests both conditions on one linked, acyclic unrolling."""

    def __init__(self, unrolling: Unrolling, ordering: Ordering, atoms: Mapping[str, Atoms]) -> None:
        self.accesses = unrolling.accesses
        self.ordering = ordering
        self.atoms = atoms
        self.of_buffer: dict[str, int] = dict.fromkeys(atoms, 0)
        self.of_slot: dict[tuple[str, int], int] = {}
        self.writes = 0
        self.asynchronous = 0
        self.may_write: dict[tuple[str, int, int], int] = {}  # (buffer, slot, atom) -> writes that may touch it
        self.must_write: dict[tuple[str, int, int], int] = {}  # … that certainly overwrite it
        for access in self.accesses:
            op, bit = access.op, 1 << access.index
            self.of_buffer[op.buffer] |= bit
            slot = (op.buffer, access.slot)
            self.of_slot[slot] = self.of_slot.get(slot, 0) | bit
            if op.proxy == "async":
                self.asynchronous |= bit
            if op.mode == "w":
                self.writes |= bit
                touched = footprint(atoms[op.buffer], op)
                for atom in bits_of(touched.may):
                    key = (*slot, atom)
                    self.may_write[key] = self.may_write.get(key, 0) | bit
                for atom in bits_of(touched.must):
                    key = (*slot, atom)
                    self.must_write[key] = self.must_write.get(key, 0) | bit

    def findings(self, undecided: set[Pair]) -> Iterator[Finding]:
        """At most one finding for each pair in ``undecided`` (which is left as it is)."""
        left = set(undecided)
        for tests in (self._conflicts, self._proxies, self._clobbers):
            for finding in tests(left):
                if finding.pair in left:
                    left.discard(finding.pair)
                    yield finding

    def _partners(self, name: str, pairs: set[Pair]) -> dict[str, Pair]:
        """The other buffers of the undecided pairs of ``name``, itself included for races."""
        return {other: pair for pair in pairs if name in pair for other in (pair[0] if pair[1] == name else pair[1],)}

    def _conflicts(self, left: set[Pair]) -> Iterator[Finding]:
        everything = (1 << len(self.accesses)) - 1
        before, after = self.ordering.before, self.ordering.after
        for access in self.accesses:
            name, index = access.op.buffer, access.index
            unordered = everything & ~(before[index] | after[index] | 1 << index)
            if access.op.mode == "r":
                unordered &= self.writes
            if not unordered:
                continue
            for other, pair in self._partners(name, left).items():
                if other == name:
                    suspects = unordered & self.of_slot[name, access.slot]
                    suspects = next((1 << s for s in bits_of(suspects) if self._overlap(index, s)), 0)
                else:
                    suspects = unordered & self.of_buffer[other]
                if suspects:
                    first, second = sorted((index, next(bits_of(suspects))), key=lambda a: self.accesses[a].begin)
                    yield Finding(pair, "conflict", first, second)

    def _proxies(self, left: set[Pair]) -> Iterator[Finding]:
        for access in self.accesses:
            op = access.op
            if op.mode != "w" or op.proxy != "generic" or op.fenced:
                continue
            later = self.ordering.after[access.index] & self.asynchronous
            for other, pair in self._partners(op.buffer, left).items():
                if other == op.buffer:
                    reads = later & ~self.writes & self.of_slot[op.buffer, access.slot]
                    suspects = next((1 << s for s in bits_of(reads) if self._overlap(access.index, s)), 0)
                else:
                    suspects = later & self.of_buffer[other]
                if suspects:
                    yield Finding(pair, "proxy", access.index, next(bits_of(suspects)))

    def _overlap(self, i: int, j: int) -> bool:
        """Do two accesses of one slot touch a common byte?"""
        a, b = self.accesses[i].op, self.accesses[j].op
        atoms = self.atoms[a.buffer]
        return bool(footprint(atoms, a).may & footprint(atoms, b).may)

    def _clobbers(self, left: set[Pair]) -> Iterator[Finding]:
        before, after = self.ordering.before, self.ordering.after
        followers: dict[tuple[str, int, int], int] = {}  # accesses that begin after some write of this atom has ended
        replaced: dict[int, int] = {0: 0}  # set of writes -> accesses that have ended before one of them begins
        for access in self.accesses:
            if access.op.mode != "r":
                continue
            name, r = access.op.buffer, access.index
            partners = self._partners(name, left)
            partners.pop(name, None)
            rivals = 0
            for other in partners:
                rivals |= self.of_buffer[other]
            rivals &= before[r] & self.writes
            if not rivals:
                continue
            for atom in bits_of(footprint(self.atoms[name], access.op).may):
                key = (name, access.slot, atom)
                if key not in followers:
                    followers[key] = 0
                    for w in bits_of(self.may_write.get(key, 0)):
                        followers[key] |= after[w]
                covering = self.must_write.get(key, 0) & before[r]
                if covering not in replaced:
                    bits = 0
                    for w in bits_of(covering):
                        bits |= before[w]
                    replaced[covering] = bits
                lost = rivals & followers[key] & ~replaced[covering]
                for other, pair in partners.items():
                    hit = lost & self.of_buffer[other]
                    if hit:
                        x = next(bits_of(hit))
                        w = next(w for w in bits_of(self.may_write[key]) if after[w] >> x & 1)
                        yield Finding(pair, "clobber", w, r, x)
