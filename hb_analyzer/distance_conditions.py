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
from hb_analyzer.single_loop import LOOP, POST, PRE, OutOfClassError


@dataclass
class DistanceDecision:
    """What the distance form says for all trip counts ≥ 1 (0 is decided apart, by unrolling)."""

    refused: dict[Pair, tuple[str, LoopAccess, LoopAccess]] = field(default_factory=dict)  # kind, first, second
    races: dict[str, tuple[LoopAccess, LoopAccess]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)  # events whose arrivals can be counted for the wrong setting
    lapped: set[str] = field(default_factory=set)  # events a setting of which can lap a waiter
    deadlock: bool = False


def decide_by_distance(
    program: Program, silent: Collection[str], atoms: Mapping[str, Atoms], least_trips: int = 1
) -> DistanceDecision:
    """Raises OutOfClassError for a program outside the class. ``least_trips``: the smallest trip count that occurs."""
    graph = distance_graph(program, silent)
    if graph.has_zero_cycle():
        return DistanceDecision(deadlock=True)
    _check_slots(graph.accesses)
    slots = {buffer.name: buffer.slots for buffer in program.buffers}
    return _Conditions(graph, atoms, slots, max(1, least_trips)).decide()


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
        self.by_buffer: dict[str, list[LoopAccess]] = {name: [] for name in atoms}
        for access in graph.accesses:
            self.by_buffer[access.op.buffer].append(access)

    def decide(self) -> DistanceDecision:
        self._overruns()
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

    def _ordered(self, a: LoopAccess, b: LoopAccess) -> bool:
        """Are two accesses (of different buffers, or outside the loop) ordered in all their instances?"""
        segments = {a.placed.segment, b.placed.segment}
        forward, back = self._between(a, b), self._between(b, a)
        if segments == {LOOP}:
            return forward + back <= 1
        # From before to after the loop, a path through d iterations exists only at more than d trips.
        reach = self.least_trips - 1 if segments == {PRE, POST} else 0
        return min(forward, back) <= reach

    def _conflict(self, a: str, b: str) -> tuple[str, LoopAccess, LoopAccess] | None:
        for x in self.by_buffer[a]:
            for y in self.by_buffer[b]:
                if "w" in (x.op.mode, y.op.mode):
                    if not self._ordered(x, y):
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
                if a.placed.segment == b.placed.segment == LOOP:
                    # The smallest difference of iterations above −D[b][a] that makes the slots equal.
                    lowest = 1 - self._between(b, a)
                    difference = lowest + (offset - lowest) % slots
                    if a is b and difference == 0:
                        difference += slots
                    if difference < self._between(a, b):
                        return a, b
                elif a is not b and not self._ordered(a, b):
                    return a, b
                for first, second in ((a, b), (b, a)):
                    reads = second.op.proxy == "async" and second.op.mode == "r"
                    if _unfenced(first) and reads and self._between(first, second) < INFINITE:
                        return first, second
        return None

    def _slot_distance(self, a: LoopAccess, b: LoopAccess) -> tuple[int, int]:
        """(S, t): iteration i of a and j of b use one slot iff j − i ≡ t (mod S). S = 0: they never do."""
        x, y = a.placed.slot, b.placed.slot
        if x.ring:
            slots = self.slots[a.op.buffer]
            return slots, (x.index - y.index) % slots
        return (1, 0) if x.index == y.index else (0, 0)

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
        latest = self._between(x, r)
        for atom in bits_of(self._footprint(r).may):
            mine = [w for w in writes if self._footprint(w).may >> atom & 1]
            if any(self._between(w, x) < INFINITE for w in mine) and not any(
                self._replaces(w, x, r, latest) for w in mine if self._footprint(w).must >> atom & 1
            ):
                return True
        return False

    def _replaces(self, w: LoopAccess, x: LoopAccess, r: LoopAccess, latest: int) -> bool:
        low, high = self._between(w, r), latest - self._between(x, w)
        slots, offset = self._slot_distance(w, r)
        return low + (offset - low) % slots <= high

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


def _unfenced(access: LoopAccess) -> bool:
    op = access.op
    return op.mode == "w" and op.proxy == "generic" and not op.fenced


def _check_slots(accesses: list[LoopAccess]) -> None:
    """Raises OutOfClassError if a buffer that the loop uses by running slot is also used by constant slot, or outside
    the loop: which iterations meet there would depend on the trip count."""
    running = {access.op.buffer for access in accesses if access.placed.slot.ring}
    for access in accesses:
        if access.op.buffer in running and not (access.placed.slot.ring and access.placed.segment == LOOP):
            raise OutOfClassError(f"{access.op.buffer} is used by running slot in the loop and otherwise elsewhere")
