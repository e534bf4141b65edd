"""Builds the distance graph of a single-loop program: program order, barriers, matrix groups, events."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from hb_analyzer.distance_events import Use, link_event
from hb_analyzer.distance_graph import DistanceGraph, LoopAccess
from hb_analyzer.model import Access, Barrier, Commit, Drain, Event, Program, Trigger, Wait
from hb_analyzer.single_loop import LOOP, POST, PRE, OutOfClassError, Placed, Segments, single_loop

_NODE_LIMIT = 1000  # shortest paths from every access must stay a matter of milliseconds


def distance_graph(program: Program, silent: Collection[str]) -> DistanceGraph:
    """The graph of a single-loop program. ``silent`` events order nothing. Raises OutOfClassError."""
    return _Builder(program, silent).build()


class _Builder:
    def __init__(self, program: Program, silent: Collection[str]) -> None:
        self.program = program
        self.silent = silent
        self.roles = single_loop(program)
        self.graph = DistanceGraph()
        self.node: dict[Placed, int] = {}
        self.access: dict[Placed, LoopAccess] = {}

    def build(self) -> DistanceGraph:
        self._nodes()
        if len(self.graph.edges) > _NODE_LIMIT:
            raise OutOfClassError("loops of constant count that are long to lay out")
        for role in self.roles:
            self._program_order(role)
            self._groups(role)
        for event in self.program.events:
            if event.name not in self.silent:
                link_event(self.graph, event, self._uses(event))
        return self.graph

    def _nodes(self) -> None:
        meetings: dict[tuple[str, int, int], int] = {}
        members: dict[tuple[str, int, int], set[str]] = {}
        for number, role in enumerate(self.roles):
            counts: dict[tuple[str, int], int] = {}
            for placed in role.all():
                op = placed.op
                if isinstance(op, Barrier):
                    count = counts.get((op.name, placed.segment), 0)
                    counts[op.name, placed.segment] = count + 1
                    key = (op.name, placed.segment, count)
                    if key not in meetings:
                        meetings[key], members[key] = self.graph.add(), set(op.members)
                    self.node[placed] = meetings[key]
                    if self.program.roles[number].name not in op.members or members[key] - set(op.members):
                        raise OutOfClassError(f"barrier {op.name} is used with different members")
                elif not isinstance(op, Commit):
                    self.node[placed] = self.graph.add()
                if isinstance(op, Wait):
                    self.graph.waits.append(self.node[placed])
                if isinstance(op, Access):
                    access = LoopAccess(placed, op, self.node[placed])
                    access.end = access.begin if op.ends == "here" else None
                    self.access[placed] = access
                    self.graph.accesses.append(access)
        arrived: dict[tuple[str, int, int], set[str]] = {}
        for number, role in enumerate(self.roles):
            for placed in role.all():
                for key, node in meetings.items():
                    if self.node.get(placed) == node:
                        arrived.setdefault(key, set()).add(self.program.roles[number].name)
        if any(arrived[key] != members[key] for key in meetings):
            raise OutOfClassError("a barrier that some member never reaches, or reaches elsewhere")

    def _program_order(self, role: Segments) -> None:
        chains = [[self.node[p] for p in part if p in self.node] for part in role.parts]
        for chain in chains:
            for p, q in pairwise(chain):
                self.graph.connect(p, q)
        present = [chain for chain in chains if chain]
        for chain, following in pairwise(present):
            self.graph.connect(chain[-1], following[0])
        if chains[LOOP]:
            self.graph.connect(chains[LOOP][-1], chains[LOOP][0], 1)

    def _uses(self, event: Event) -> list[Use]:
        """Triggers, waits and bound copies of an event, role by role in program order."""
        uses = []
        for role in self.roles:
            for placed in role.all():
                op = placed.op
                if isinstance(op, (Trigger, Wait)) and op.event == event.name:
                    uses.append(Use(placed, self.node[placed]))
                elif isinstance(op, Access) and op.ends == "event" and op.event == event.name:
                    uses.append(Use(placed, self.node[placed], self.access[placed]))
        return uses

    # ----------------------------------------------------------------------------------------------------------
    # Groups of matrix instructions

    def _groups(self, role: Segments) -> None:
        """Ends of group accesses. With P, C commits before and per iteration of the loop, the commit after g others of
        iteration i has number P + C·i + g; a drain after m others of iteration j covers numbers below P + C·j + m − n,
        n being what it leaves pending."""
        commits = [sum(isinstance(p.op, Commit) for p in part) for part in role.parts]
        prologue, per_iteration = commits[PRE], commits[LOOP]
        drains: list[tuple[int, int, int, int]] = []  # (segment, commits before it there, pending, node)
        for segment, part in enumerate(role.parts):
            count = 0
            for placed in part:
                if isinstance(placed.op, Commit):
                    count += 1
                elif isinstance(placed.op, Drain):
                    drains.append((segment, count, placed.op.pending, self.node[placed]))
        for segment, part in enumerate(role.parts):
            count = 0
            for placed in part:
                if isinstance(placed.op, Commit):
                    count += 1
                elif isinstance(placed.op, Access) and placed.op.ends == "group":
                    for place, before, pending, node in drains:
                        if segment > place:
                            continue
                        if segment == place != LOOP:
                            distance = 0 if count < before - pending else None
                        else:
                            group = count if segment == LOOP else count - prologue
                            distance = _drain_distance(segment, place, group, per_iteration, before - pending)
                        if distance is not None:
                            self.graph.connect(self.graph.end_of(self.access[placed]), node, distance)


def _drain_distance(segment: int, place: int, group: int, per_iteration: int, covered: int) -> int | None:
    """Iterations (or, for a drain after the loop, last iterations) between a group access and a drain that covers it.

    ``group``: commits before the access in its iteration, or for an access before the loop (its number − P) ≤ 0;
    ``covered``: commits before the drain in its iteration (or after the loop) less its pending ones. None: never.
    """
    if segment == PRE and place == POST:
        return 0 if group < per_iteration + covered else None  # judged at one iteration
    if per_iteration == 0:
        return 0 if group < covered else None
    last = (group - covered) // per_iteration
    return max(0, last if place == POST else last + 1)
