"""Analyse a pattern: inference, translation, the engine's report, and the groups that share addresses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from . import noacyclic
from .infer import Inference, infer
from .model import Program
from .pattern import Pattern, PhaseId
from .phase_graph import Meeting
from .report import Placement, Report
from .translate import to_program


@dataclass(frozen=True)
class PatternAnalysis:
    """A pattern with everything that was found out about it.

    ``ablation``: by the unsound rule of ``noacyclic.py``; ``inference`` then has no loops and no carried events.
    """

    pattern: Pattern
    inference: Inference
    program: Program
    report: Report
    ablation: bool = False

    def to_json(self) -> dict[str, Any]:
        """The report's JSON, with the phases, the edges and the groups."""
        return {
            **self.report.to_json(),
            "ablation": self.ablation,
            "groups": [list(group) for group in sharing_groups(self.report.placement)],
            "phases": [
                {
                    "role": id.role,
                    "label": phase.label,
                    "loop": list(self.inference.loops[id]),
                    "waits": [signal.event for signal in phase.waits],
                    "triggers": [signal.event for signal in phase.triggers],
                    "buffers": list(phase.buffers),
                }
                for id, phase in self.pattern.phases()
            ],
            "edges": [edge.to_json() for edge in described_edges(self.pattern, self.inference)],
            "notes": [*self.report.notes, *ignored_notes(self.pattern)],
        }


def analyse_pattern(pattern: Pattern, ablation: bool | None = None) -> PatternAnalysis:
    """Analyse a pattern; by the ablation's rule if ``ablation``, or, if None, where the environment asks for it."""
    from . import analyse  # late, so that patterns can be read and drawn without the engine

    inference = infer(pattern)
    program = to_program(pattern, inference)
    if noacyclic.selected() if ablation is None else ablation:
        one_iteration = Inference(inference.edges, dict.fromkeys(inference.loops, ()))
        unsound = noacyclic.analyse_without_acyclic(pattern)
        return PatternAnalysis(pattern, one_iteration, program, unsound, ablation=True)
    report = analyse(program)
    shared = _listed_by_consumers(pattern)
    if report.races and shared:
        # The file cannot say that consumers only read a buffer, or write different parts of it. For the verdicts on
        # pairs they may write it all; a race *between consumers* for that reason alone would be noise.
        again = analyse(to_program(pattern, inference, only_read=frozenset(shared)))
        if len(again.races) < len(report.races):
            assumed = tuple(f'consumers do not conflict inside "{name}": {roles}' for name, roles in shared.items())
            report = replace(report, races=again.races, assumptions=(*report.assumptions, *assumed))
    return PatternAnalysis(pattern, inference, program, report)


def _listed_by_consumers(pattern: Pattern) -> dict[str, str]:
    """Buffers that several roles other than producers only list, with those roles, in patterns that name a producer."""
    if not any(group.is_producer for group in pattern.groups):
        return {}
    shared: dict[str, str] = {}
    for buffer in pattern.buffers:
        roles = [
            group.name
            for group in pattern.groups
            if not group.is_producer
            and any(a.buffer == buffer.name and a.mode == "rw?" for phase in group.phases for a in phase.accesses)
        ]
        if len(roles) > 1:
            shared[buffer.name] = f'{", ".join(roles)} list it without "reads" or "writes"'
    return shared


# ---------------------------------------------------------------------------------------------------------------
# What people want to see of it


@dataclass(frozen=True)
class DescribedEdge:
    """An ordering edge in words: ``kind`` is "program", "loop", "event", "carried" or "barrier"."""

    kind: str
    name: str
    source: str
    target: str
    why: str = ""

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind, "name": self.name, "from": self.source, "to": self.target, "why": self.why}


def described_edges(pattern: Pattern, inference: Inference) -> list[DescribedEdge]:
    """Every ordering edge: program order, the way back of loops, events (carried ones with the reason), barriers."""
    described = []
    for edge in inference.edges:
        source, target = edge.source, edge.target
        if edge.kind == "event":
            if isinstance(source, Meeting) or isinstance(target, Meeting):
                continue  # the way through the barrier is told by the barrier
            # A trigger before the loop is an edge of its own, inside no iteration; the loop's own trigger is carried.
            carried = edge.name in inference.carried and inference.looped(source) and inference.looped(target)
            kind, why = ("carried", inference.carried[edge.name]) if carried else ("event", "")
            described.append(
                DescribedEdge(kind, edge.name, phase_name(pattern, source), phase_name(pattern, target), why)
            )
        elif edge.kind == "program":
            assert isinstance(source, PhaseId) and isinstance(target, PhaseId)
            described.append(DescribedEdge("program", "", phase_name(pattern, source), phase_name(pattern, target)))
        elif isinstance(target, PhaseId):
            # A barrier orders what the other members did before it.
            before = [e.source for e in inference.edges if e.kind == "barrier" and e.target == source]
            for other in before:
                if isinstance(other, PhaseId) and other.role != target.role:
                    names = phase_name(pattern, other), phase_name(pattern, target)
                    described.append(DescribedEdge("barrier", edge.name, *names))
    return described + _loop_edges(pattern, inference)


def _loop_edges(pattern: Pattern, inference: Inference) -> list[DescribedEdge]:
    edges = []
    for group in pattern.groups:
        ids = [PhaseId(group.name, i) for i in range(len(group.phases))]
        for loop in dict.fromkeys(name for id in ids for name in inference.loops[id]):
            inside = [id for id in ids if loop in inference.loops[id]]
            names = phase_name(pattern, inside[-1]), phase_name(pattern, inside[0])
            edges.append(DescribedEdge("loop", loop, *names, why="next iteration"))
    return edges


def phase_name(pattern: Pattern, id: PhaseId) -> str:
    return f"{id.role}: {pattern.phase(id).label}"


def sharing_groups(placement: Placement) -> list[tuple[str, ...]]:
    """Sets of buffers that share addresses (directly or through a third one), by offset."""
    groups: list[set[str]] = []
    order = sorted(placement.offsets, key=lambda name: (placement.offsets[name], name))
    for name in order:
        touching = [group for group in groups if any(placement.intersect(name, other) for other in group)]
        merged = {name}.union(*touching)
        groups = [group for group in groups if group not in touching] + [merged]
    return [tuple(name for name in order if name in group) for group in groups if len(group) > 1]


def ignored_notes(pattern: Pattern) -> list[str]:
    return [f"{path} is no key of the format and was ignored" for path in pattern.ignored]
