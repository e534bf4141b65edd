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
from hb_analyzer.unrolling import AccessInstance, Unrolling

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
        self.of_buffer: dict[str, int] = dict.fromkeys(atoms, 0)
        self.writes = 0
        self.asynchronous = 0
        self.may_write: dict[tuple[str, int, int], int] = {}  # (buffer, slot, atom) -> writes that may touch it
        self.must_write: dict[tuple[str, int, int], int] = {}  # … that certainly overwrite it
        self.instances: dict[tuple[int, int], int] = {}  # (statement, slot) -> its accesses
        for access in self.accesses:
            key = (id(access.op), access.slot)
            self.instances[key] = self.instances.get(key, 0) | 1 << access.index
        # What all instances of a statement have in common is looked up once.
        self.ops = {id(access.op): access.op for access in self.accesses}
        self.touched = {statement: footprint(atoms[op.buffer], op) for statement, op in self.ops.items()}
        self.meeting: dict[tuple[int, int], int] = {}  # see _meeting
        for (statement, slot), bits in self.instances.items():
            op, touched = self.ops[statement], self.touched[statement]
            self.of_buffer[op.buffer] |= bits
            if op.proxy == "async":
                self.asynchronous |= bits
            if op.mode == "w":
                self.writes |= bits
                for atoms_touched, writes in ((touched.may, self.may_write), (touched.must, self.must_write)):
                    for atom in bits_of(atoms_touched):
                        place = (op.buffer, slot, atom)
                        writes[place] = writes.get(place, 0) | bits

    def findings(self, undecided: set[Pair]) -> Iterator[Finding]:
        """At most one finding for each pair in ``undecided`` (which is left as it is)."""
        left = set(undecided)
        for tests in (self._conflicts, self._proxies, self._clobbers):
            for finding in tests(left) if left else ():
                if finding.pair in left:
                    left.discard(finding.pair)
                    yield finding

    def _partners(self, pairs: set[Pair]) -> dict[str, dict[str, Pair]]:
        """The other buffers of the undecided pairs of each buffer, itself included for races."""
        return {name: {pair[pair[0] == name]: pair for pair in pairs if name in pair} for name in self.of_buffer}

    def _meeting(self, access: AccessInstance) -> int:
        """The accesses of the same slot that may touch one of its bytes."""
        key = (id(access.op), access.slot)
        if key not in self.meeting:
            name, may = access.op.buffer, self.touched[id(access.op)].may
            self.meeting[key] = 0
            for (statement, slot), bits in self.instances.items():
                if slot == access.slot and self.ops[statement].buffer == name and self.touched[statement].may & may:
                    self.meeting[key] |= bits
        return self.meeting[key]

    def _conflicts(self, left: set[Pair]) -> Iterator[Finding]:
        everything = (1 << len(self.accesses)) - 1
        before, after = self.ordering.before, self.ordering.after
        partners = self._partners(left)
        for access in self.accesses:
            name, index = access.op.buffer, access.index
            if not partners[name]:
                continue
            unordered = everything ^ (before[index] | after[index] | 1 << index)
            if access.op.mode == "r":
                unordered &= self.writes
            if not unordered:
                continue
            for other, pair in partners[name].items():
                area = self.of_buffer[other] if other != name else self._meeting(access)
                suspects = unordered & area
                if suspects:
                    first, second = sorted((index, next(bits_of(suspects))), key=lambda a: self.accesses[a].begin)
                    yield Finding(pair, "conflict", first, second)
                    partners = self._partners(left)

    def _proxies(self, left: set[Pair]) -> Iterator[Finding]:
        partners = self._partners(left)
        for access in self.accesses:
            op = access.op
            if op.mode != "w" or op.proxy != "generic" or op.fenced:
                continue
            later = self.ordering.after[access.index] & self.asynchronous
            for other, pair in partners[op.buffer].items():
                if other == op.buffer:
                    suspects = later & ~self.writes & self._meeting(access)
                else:
                    suspects = later & self.of_buffer[other]
                if suspects:
                    yield Finding(pair, "proxy", access.index, next(bits_of(suspects)))
                    partners = self._partners(left)

    def _clobbers(self, left: set[Pair]) -> Iterator[Finding]:
        before, after = self.ordering.before, self.ordering.after
        followers: dict[tuple[str, int, int], int] = {}  # accesses that begin after some write of this atom has ended
        replaced: dict[tuple[str, int, int], tuple[int, int]] = {}  # last writes of it -> what ended before one began
        partners = self._partners(left)
        for access in self.accesses:
            if access.op.mode != "r":
                continue
            name, r = access.op.buffer, access.index
            others = [(self.of_buffer[other], pair) for other, pair in partners[name].items() if other != name]
            rivals = 0
            for bits, _ in others:
                rivals |= bits
            rivals &= before[r] & self.writes
            if not rivals:
                continue
            for atom in bits_of(self.touched[id(access.op)].may):
                key = (name, access.slot, atom)
                if key not in followers:
                    followers[key] = 0
                    for w in bits_of(self.may_write.get(key, 0)):
                        followers[key] |= after[w]
                lost = rivals & followers[key]
                if not lost:
                    continue
                covering = self.must_write.get(key, 0) & before[r]
                # Reads come in program order, so most writes before this one were before the last one, too.
                known, bits = replaced.get(key, (0, 0))
                if known & ~covering:
                    known, bits = 0, 0
                for w in bits_of(covering ^ known):
                    bits |= before[w]
                replaced[key] = (covering, bits)
                lost &= ~bits
                for rival, pair in others:
                    hit = lost & rival
                    if hit:
                        x = next(bits_of(hit))
                        w = next(w for w in bits_of(self.may_write[key]) if after[w] >> x & 1)
                        yield Finding(pair, "clobber", w, r, x)
                        partners = self._partners(left)
