"""The graph G of a pattern: program order and every trigger → wait edge, with barriers as meeting nodes.

G has one node per phase and one per barrier meeting, and knows nothing of iterations: ``infer.py`` finds loops as its
cycles, ``noacyclic.py`` takes it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Union

from .pattern import Pattern, PhaseId


class Meeting(NamedTuple):
    """The ``position``-th meeting at a barrier."""

    barrier: str
    position: int


GraphNode = Union[PhaseId, Meeting]


@dataclass(frozen=True)
class PhaseEdge:
    """``kind`` is "program", "event" or "barrier"; ``name`` is that of the event or barrier."""

    source: GraphNode
    target: GraphNode
    kind: str
    name: str = ""


def phase_edges(pattern: Pattern) -> list[PhaseEdge]:
    """Every edge of G, each once, in the order of the file."""
    edges: list[PhaseEdge] = []
    for group in pattern.groups:
        for i in range(len(group.phases) - 1):
            edges.append(PhaseEdge(PhaseId(group.name, i), PhaseId(group.name, i + 1), "program"))
    for event in pattern.event_names():
        for trigger in pattern.triggers_of(event):
            edges += [PhaseEdge(trigger, wait, "event", event) for wait in pattern.waits_of(event)]
    edges += _barrier_edges(pattern)
    return list(dict.fromkeys(edges))


def _barrier_edges(pattern: Pattern) -> list[PhaseEdge]:
    """Into a meeting: what a member did before, and what it waited for; out of it: the phase that met there."""
    edges: list[PhaseEdge] = []
    for group in pattern.groups:
        met: dict[str, int] = {}
        for i, phase in enumerate(group.phases):
            here = PhaseId(group.name, i)
            for barrier in phase.barriers:
                node = Meeting(barrier, met.get(barrier, 0))
                met[barrier] = node.position + 1
                if i > 0:
                    edges.append(PhaseEdge(PhaseId(group.name, i - 1), node, "barrier", barrier))
                for signal in phase.waits:
                    edges += [PhaseEdge(t, node, "event", signal.event) for t in pattern.triggers_of(signal.event)]
                edges.append(PhaseEdge(node, here, "barrier", barrier))
    return edges


def nodes_of(pattern: Pattern, edges: Iterable[PhaseEdge]) -> list[GraphNode]:
    nodes: dict[GraphNode, None] = dict.fromkeys(id for id, _ in pattern.phases())
    for edge in edges:
        nodes.update({edge.source: None, edge.target: None})
    return list(nodes)


def reachability(nodes: Collection[GraphNode], edges: Iterable[PhaseEdge]) -> dict[GraphNode, set[GraphNode]]:
    """For every node, what it reaches by at least one edge."""
    successors = _successors(nodes, edges)
    reached: dict[GraphNode, set[GraphNode]] = {}
    for start in nodes:
        seen: set[GraphNode] = set()
        todo = list(successors[start])
        while todo:
            node = todo.pop()
            if node not in seen:
                seen.add(node)
                todo += successors[node]
        reached[start] = seen
    return reached


def cycle_groups(nodes: Collection[GraphNode], edges: Iterable[PhaseEdge]) -> dict[GraphNode, int]:
    """The nodes that lie on a cycle, each with the number of its strongly connected component."""
    reached = reachability(nodes, edges)
    number: dict[GraphNode, int] = {}
    for i, node in enumerate(nodes):
        if node in reached[node] and node not in number:
            number.update({other: i for other in nodes if other in reached[node] and node in reached[other]})
    return number


def edges_on_cycles(
    nodes: Collection[GraphNode], edges: Collection[PhaseEdge], keep: Callable[[PhaseEdge], bool]
) -> Mapping[int, list[PhaseEdge]]:
    """The edges that lie on a cycle of the kept edges, by component."""
    kept = [edge for edge in edges if keep(edge)]
    number = cycle_groups(nodes, kept)
    result: dict[int, list[PhaseEdge]] = {}
    for edge in kept:
        if edge.source in number and number[edge.source] == number.get(edge.target):
            result.setdefault(number[edge.source], []).append(edge)
    return result


def _successors(nodes: Collection[GraphNode], edges: Iterable[PhaseEdge]) -> dict[GraphNode, list[GraphNode]]:
    successors: dict[GraphNode, list[GraphNode]] = {node: [] for node in nodes}
    for edge in edges:
        successors[edge.source].append(edge.target)
    return successors
