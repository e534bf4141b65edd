"""Both conditions, for all trip counts ≥ 1 at once, from the distances of a single-loop program.

With D the shortest non-empty paths, two accesses of the loop are unordered in some pair of iterations iff
D[a.end][b.begin] + D[b.end][a.begin] ≥ 2: the iteration differences j − i in between are ordered neither way. Within
one buffer only differences that make the slots equal count.

A write x of B before a read r of A, κ = D[x.end][r.begin] iterations earlier at the latest, clobbers a byte of r iff
some write w of that byte comes before x (finite D[w.end][x.begin]) and no write w' of it comes in between: none has an
iteration distance t to r with D[w'.end][r.begin] ≤ t ≤ κ − D[x.end][w'.begin] and the slot of r. Larger distances from
x to r only widen that interval. Operations before and after the loop are nodes at its first and last iteration, so the
same formula serves for them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from hb_analyzer.conditions import Pair, bits_of
from hb_analyzer.distance import distance_graph
from hb_analyzer.distance_graph import INFINITE, DistanceGraph, LoopAccess
from hb_analyzer.model import Program
from hb_analyzer.regions import Atoms, Footprint
from hb_analyzer.single_loop import LOOP, POST, PRE, OutOfClassError, common_trip
from hb_analyzer.unawaited import is_copy


@dataclass
class DistanceDecision:
    """What the distance form says for all trip counts ≥ 1 (0 is decided apart, by unrolling)."""

    refused: dict[Pair, tuple[str, LoopAccess, LoopAccess]] = field(default_factory=dict)  # kind, first, second
    races: dict[str, tuple[LoopAccess, LoopAccess]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)  # events whose arrivals can be counted for the wrong setting
    lapped: set[str] = field(default_factory=set)  # events a setting of which can lap a waiter
    unawaited: dict[str, LoopAccess] = field(default_factory=dict)  # by buffer: a copy under way when the CTA ends
    deadlock: bool = False


def decide_by_distance(
    program: Program, silent: Collection[str], atoms: Mapping[str, Atoms], least_trips: int = 1
) -> DistanceDecision:
    """Raises OutOfClassError for a program outside the class. ``least_trips``: the smallest value of its parameter."""
    graph = distance_graph(program, silent)
    least_trips += common_trip(program).offset
    if graph.has_zero_cycle():
        return DistanceDecision(deadlock=True)
    slots = {buffer.name: buffer.slots for buffer in program.buffers}
    return _Conditions(graph, atoms, slots, max(1, least_trips)).decide(silent)


class _Conditions:
    def __init__(
        self, graph: DistanceGraph, atoms: Mapping[str, Atoms], slots: Mapping[str, int], least_trips: int
    ) -> None:
        self.graph = graph
        self.atoms = atoms
        self.least_trips = least_trips
        self.result = DistanceDecision()
        self.rows: dict[int, list[int]] = {}
        self.slots = slots
        self.running = _running(graph.accesses)
        self.by_buffer: dict[str, list[LoopAccess]] = {name: [] for name in atoms}
        for access in graph.accesses:
            self.by_buffer[access.op.buffer].append(access)

    def decide(self, silent: Collection[str]) -> DistanceDecision:
        self._overruns()
        self._unawaited(silent)
        for a, b in combinations(sorted(self.by_buffer), 2):
            found = self._conflict(a, b) or self._clobber(a, b) or self._clobber(b, a)
            if found:
                self.result.refused[a, b] = found
        for name in self.by_buffer:
            race = self._race(name)
            if race:
                self.result.races[name] = race
        return self.result

    def _distance(self, source: int | None, goal: int) -> int:
        """D[source][goal]; INFINITE from an access that never ends."""
        if source is None:
            return INFINITE
        if source not in self.rows:
            self.rows[source] = self.graph.distances(source)
        return self.rows[source][goal]

    def _between(self, a: LoopAccess, b: LoopAccess) -> int:
        return self._distance(a.end, b.begin)

    def _footprint(self, access: LoopAccess) -> Footprint:
        return self.atoms[access.op.buffer].footprints[access.op.region]

    # ----------------------------------------------------------------------------------------------------------
    # Condition 1

    def _unordered(self, a: LoopAccess, b: LoopAccess, slots: int = 1, offset: int = 0) -> bool:
        """Are some instances of two accesses unordered whose iterations differ by j − i ≡ offset (mod slots)?"""
        if a.placed.segment > b.placed.segment:
            return self._unordered(b, a, slots, -offset)
        forward, back = self._between(a, b), self._between(b, a)
        segments = (a.placed.segment, b.placed.segment)
        if segments == (LOOP, LOOP):
            # The smallest difference above −D[b][a]; the same instance twice is no pair.
            lowest = 1 - back
            difference = lowest + (offset - lowest) % slots
            if a is b and difference == 0:
                difference += slots
            return difference < forward
        if segments[0] == segments[1]:
            return a is not b and offset % slots == 0 and min(forward, back) > 0
        # From before to after the loop there are all M − 1 iterations.
        lowest = self.least_trips - 1 if segments == (PRE, POST) else 0
        return lowest + (offset - lowest) % slots < forward

    def _conflict(self, a: str, b: str) -> tuple[str, LoopAccess, LoopAccess] | None:
        for x in self.by_buffer[a]:
            for y in self.by_buffer[b]:
                if "w" in (x.op.mode, y.op.mode):
                    if self._unordered(x, y):
                        return "conflict", x, y
                    for first, second in ((x, y), (y, x)):
                        if _unfenced(first) and second.op.proxy == "async" and self._between(first, second) < INFINITE:
                            return "proxy", first, second
        return None

    def _race(self, name: str) -> tuple[LoopAccess, LoopAccess] | None:
        own = self.by_buffer[name]
        for index, a in enumerate(own):
            for b in own[index:]:
                if "w" not in (a.op.mode, b.op.mode) or not self._footprint(a).may & self._footprint(b).may:
                    continue
                slots, offset = self._slot_distance(a, b)
                if slots == 0:
                    continue
                if self._unordered(a, b, slots, offset):
                    return a, b
                for first, second in ((a, b), (b, a)):
                    reads = second.op.proxy == "async" and second.op.mode == "r"
                    if _unfenced(first) and reads and self._between(first, second) < INFINITE:
                        return first, second
        return None

    def _slot_distance(self, a: LoopAccess, b: LoopAccess) -> tuple[int, int]:
        """(S, t): iterations i of a and j of b use one slot iff j − i ≡ t (mod S). S = 0: they never do.

        Accesses before the loop count as iteration 0, those after it as iteration M − 1."""
        x, y = a.placed.slot, b.placed.slot
        if a.op.buffer not in self.running:
            return (1, 0) if x.index == y.index else (0, 0)
        slots = self.slots[a.op.buffer]
        offset = (x.index + (a.placed.segment == POST) - y.index - (b.placed.segment == POST)) % slots
        if a.placed.segment == b.placed.segment != LOOP and offset:
            return 0, 0
        return slots, offset

    # ----------------------------------------------------------------------------------------------------------
    # Condition 2

    def _clobber(self, a: str, b: str) -> tuple[str, LoopAccess, LoopAccess] | None:
        """Does a write of ``b`` destroy a value of ``a`` that is still read?"""
        for r in self.by_buffer[a]:
            if r.op.mode != "r":
                continue
            writes = [w for w in self.by_buffer[a] if w.op.mode == "w" and self._slot_distance(w, r)[0]]
            for x in self.by_buffer[b]:
                if x.op.mode == "w" and self._between(x, r) < INFINITE and self._loses(x, r, writes):
                    return "clobber", x, r
        return None

    def _loses(self, x: LoopAccess, r: LoopAccess, writes: list[LoopAccess]) -> bool:
        for w in writes:
            if self._between(w, x) == INFINITE:
                continue
            latest = self._latest(w, x, r)
            for atom in bits_of(self._footprint(r).may & self._footprint(w).may):
                restoring = (v for v in writes if self._footprint(v).must >> atom & 1)
                if not any(self._replaces(v, x, r, latest) for v in restoring):
                    return True
        return False

    def _latest(self, w: LoopAccess, x: LoopAccess, r: LoopAccess) -> int:
        """The smallest number of iterations from x to a later r that uses the slot of w."""
        latest = self._between(x, r)
        if x.placed.segment != PRE or r.placed.segment == PRE:
            return latest
        # x and w are both before the loop, so the iteration of r decides its slot.
        if r.placed.segment == POST:
            latest = max(latest, self.least_trips - 1)
        slots, offset = self._slot_distance(w, r)
        return latest + (offset - latest) % slots

    def _replaces(self, w: LoopAccess, x: LoopAccess, r: LoopAccess, latest: int) -> bool:
        """Does w write the slot of r again between x and r, ``latest`` iterations apart?"""
        low, high = self._between(w, r), latest - self._between(x, w)
        slots, offset = self._slot_distance(w, r)
        if w.placed.segment == LOOP:
            return low + (offset - low) % slots <= high
        # One instance only: at the iteration of r, or before the loop as x is.
        distance = 0 if w.placed.segment == r.placed.segment else latest
        return low <= distance <= high and (distance - offset) % slots == 0

    # ----------------------------------------------------------------------------------------------------------
    # Overruns in the loop (unrolling reports those before and after it)

    def _overruns(self) -> None:
        for ring in self.graph.rings:
            complete = [ring.node] if ring.copies else ring.triggers
            arrivals = [(node, 0) for node in ring.triggers] + ring.copies
            for done in complete:
                if any(self._distance(done, node) > ring.slots - distance for node, distance in arrivals):
                    self.result.broken.add(ring.event)
            for wait, distance in ring.waits:
                if self._distance(wait, ring.node) > ring.slots - distance:
                    self.result.lapped.add(ring.event)

    # ----------------------------------------------------------------------------------------------------------
    # Copies under way when the CTA ends

    def _unawaited(self, silent: Collection[str]) -> None:
        """Somebody must see a copy of the last iteration in that iteration or after the loop, and one before the loop
        by the last iteration that is certain to come."""
        for access in self.graph.accesses:
            if not is_copy(access.op) or access.op.event in silent or access.op.ends == "here":
                continue
            latest = self.least_trips - 1 if access.placed.segment == PRE else 0
            if all(self._distance(access.end, wait) > latest for wait in self.graph.waits):
                self.result.unawaited.setdefault(access.op.buffer, access)


def _unfenced(access: LoopAccess) -> bool:
    op = access.op
    return op.mode == "w" and op.proxy == "generic" and not op.fenced


def _running(accesses: list[LoopAccess]) -> set[str]:
    """Buffers used by running slot. Raises OutOfClassError if one is also used by constant slot in or after the loop:
    which iterations meet there would depend on the trip count."""
    running = {access.op.buffer for access in accesses if access.placed.slot.ring}
    for access in accesses:
        if access.op.buffer in running and access.placed.segment != PRE and not access.placed.slot.ring:
            raise OutOfClassError(f"{access.op.buffer} is used by running and by constant slots")
    return running
