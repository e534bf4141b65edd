"""Happens-before between iterations of one loop, for all trip counts at once.

An edge p → q of distance d ≥ 0 stands for (p, i) → (q, i + d) for every iteration i. Operations before the loop are
nodes at iteration 0: an edge from one of them into the loop has as distance the iteration that it reaches. Operations
after the loop are nodes at iteration N − 1: an edge into one of them has as distance how many last iterations it leaves
out. Then

* (p, i) happens before (q, j) iff j − i ≥ D[p][q], the shortest non-empty path;
* an operation x before the loop happens before (q, j) iff j ≥ D[x][q], and one after it follows (p, i) iff
  i ≤ N − 1 − D[p][x].

The end of an access is a node of its own without predecessors when it is not the statement itself. What does not fit
(slots matched differently in different iterations, waits in a prologue for settings made by a loop, …) raises
OutOfClassError: then unrolling alone decides.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from hb_analyzer.graph import topological_order
from hb_analyzer.model import Access
from hb_analyzer.single_loop import OutOfClassError, Placed

INFINITE = 1 << 40

Edge = tuple[int, int]  # (node, distance)


@dataclass
class LoopAccess:
    """An access statement with its nodes; ``end`` is None if it never ends."""

    placed: Placed
    op: Access
    begin: int
    end: int | None = None


@dataclass
class RingSetting:
    """The settings that one loop makes in a ring of ``slots`` slots, one in each iteration: iteration i sets the slot
    (i + offset) mod slots. ``copies`` have the distance to the setting that their bytes complete."""

    event: str
    slots: int
    node: int
    triggers: list[int]
    copies: list[tuple[int, int]]  # (begin node, distance)
    waits: list[tuple[int, int]] = field(default_factory=list)  # (wait node, distance from the setting)


@dataclass
class DistanceGraph:
    """``edges[p]`` are the edges out of node p."""

    edges: list[list[Edge]] = field(default_factory=list)
    accesses: list[LoopAccess] = field(default_factory=list)
    rings: list[RingSetting] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)  # nodes at which somebody has seen a setting

    def add(self) -> int:
        self.edges.append([])
        return len(self.edges) - 1

    def end_of(self, access: LoopAccess) -> int:
        """The end node of an asynchronous access."""
        if access.end is None:
            access.end = self.add()
        return access.end

    def connect(self, p: int, q: int, distance: int = 0) -> None:
        if distance < 0:
            raise OutOfClassError("an earlier iteration waits for a later one")
        self.edges[p].append((q, distance))

    def has_zero_cycle(self) -> bool:
        """A cycle inside one iteration: a deadlock."""
        preds: list[list[int]] = [[] for _ in self.edges]
        for p, out in enumerate(self.edges):
            for q, distance in out:
                if distance == 0:
                    preds[q].append(p)
        return len(topological_order(preds)) < len(preds)

    def distances(self, source: int) -> list[int]:
        """D[source][·]: lengths of the shortest non-empty paths, INFINITE where there is none."""
        best = [INFINITE] * len(self.edges)
        queue: list[tuple[int, int]] = []
        for q, distance in self.edges[source]:
            if distance < best[q]:
                best[q] = distance
                heapq.heappush(queue, (distance, q))
        while queue:
            reached, p = heapq.heappop(queue)
            if reached > best[p]:
                continue
            for q, distance in self.edges[p]:
                if reached + distance < best[q]:
                    best[q] = reached + distance
                    heapq.heappush(queue, (best[q], q))
        return best
