"""What other rules accept that is wrong, and what caution without analysis costs.

Rules, each a set of pairs of buffers that it lets share addresses:

* *all pairs ordered*: every two different phases, one of each buffer, reach each other in some direction, and no phase
  uses both. The published test. An event edge that would close a cycle orders nothing (the "acyclic constraint"), or,
  as an ablation, it does;
* *no reuse across roles*: buffers that more than one role touches keep their own place, as stock Triton has it;
* *this analysis*.

For the first, programs are drawn at random and run: a pair that it accepts and that an execution shows to conflict, or
to lose a value, in a program that is otherwise in order, is a wrong answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import combinations

from hb_analyzer.model import Access, Program
from hb_analyzer.noacyclic import analyse_without_acyclic
from hb_analyzer.pattern import Pattern, PhaseId
from hb_analyzer.pattern_load import parse_pattern
from hb_analyzer.pattern_out import NotExpressible, program_to_pattern
from hb_analyzer.phase_graph import PhaseEdge, nodes_of, phase_edges, reachability
from hb_analyzer.placement import place
from hb_analyzer.report import Report
from hb_analyzer.simulator.code import walk
from hb_analyzer.simulator.generate import program as draw_program
from hb_analyzer.simulator.layout import everything, overlay
from hb_analyzer.simulator.witness import Execution, Sampler, minimise, search

Pair = tuple[str, str]
Rule = Callable[[Pattern], "set[Pair]"]

ORDERED, ORDERED_CYCLIC = "all pairs ordered", "all pairs ordered, cycles kept"


def all_pairs_ordered(pattern: Pattern) -> set[Pair]:
    """The published rule, with the acyclic constraint applied in the order of the file."""
    edges = phase_edges(pattern)
    kept = [edge for edge in edges if edge.kind != "event"]
    for edge in edges:
        if edge.kind == "event" and not _closes_cycle(pattern, kept, edge):
            kept.append(edge)
    reached = reachability(nodes_of(pattern, edges), kept)
    users: dict[str, list[PhaseId]] = {buffer.name: [] for buffer in pattern.buffers}
    for id, phase in pattern.phases():
        for name in phase.buffers:
            users[name].append(id)

    def ordered(a: str, b: str) -> bool:
        return all(p != q and (q in reached[p] or p in reached[q]) for p in users[a] for q in users[b])

    return {(a, b) for a, b in combinations(sorted(users), 2) if ordered(a, b)}


def all_pairs_ordered_with_cycles(pattern: Pattern) -> set[Pair]:
    """The ablation: every event edge is kept."""
    return {(v.a, v.b) for v in analyse_without_acyclic(pattern).verdicts if v.overlap}


RULES: dict[str, Rule] = {ORDERED: all_pairs_ordered, ORDERED_CYCLIC: all_pairs_ordered_with_cycles}


def _closes_cycle(pattern: Pattern, kept: list[PhaseEdge], edge: PhaseEdge) -> bool:
    if edge.source == edge.target:
        return True
    return edge.source in reachability(nodes_of(pattern, [*kept, edge]), kept)[edge.target]


# ---------------------------------------------------------------------------------------------------------------
# What a rule accepts that is wrong


@dataclass
class Verdicts:
    """Pairs that a rule accepts over all programs: proved by this analysis too, shown to be wrong, neither."""

    accepted: int = 0
    proved: int = 0
    wrong: int = 0
    smallest: dict[str, tuple[int, Execution, Pair]] = field(default_factory=dict)  # kind -> (phases, execution, pair)


@dataclass
class Comparison:
    programs: int = 0
    rules: dict[str, Verdicts] = field(default_factory=lambda: {name: Verdicts() for name in RULES})


def compare_rules(seeds: Iterable[int], analyse: Callable[[Program], Report], schedules: int = 60) -> Comparison:
    """Draws programs, keeps those that run in order and that a pattern can say, and tries the rules on them."""
    result = Comparison()
    for seed in seeds:
        _, drawn = draw_program(seed)
        pattern = _as_pattern(drawn)
        if pattern is None:
            continue
        seen: dict[tuple[str, Pair], int] = {}  # finding -> seed of an execution that shows it
        sound = True
        for number, (_, _, machine, _) in enumerate(Sampler(drawn, warps=(1,)).executions(seed, schedules)):
            for kind, subject in machine.findings:
                if kind in ("conflict", "clobber"):
                    seen.setdefault((kind, (subject[0], subject[1])), seed + number)
                else:
                    sound = False
            if not sound:
                break
        if sound:
            result.programs += 1
            _judge(drawn, pattern, seen, analyse(drawn), result)
    return result


def _judge(
    drawn: Program, pattern: Pattern, seen: dict[tuple[str, Pair], int], report: Report, result: Comparison
) -> None:
    size = sum(len(group.phases) for group in pattern.groups)
    for name, rule in RULES.items():
        verdicts = result.rules[name]
        for pair in rule(pattern):
            verdicts.accepted += 1
            verdicts.proved += report.verdict(*pair).overlap
            kinds = [kind for kind in ("conflict", "clobber") if (kind, pair) in seen]
            verdicts.wrong += bool(kinds)
            if kinds and size < verdicts.smallest.get(kinds[0], (1 << 30,))[0]:
                execution = _example(drawn, kinds[0], pair, seen[kinds[0], pair])
                if execution is not None:
                    verdicts.smallest[kinds[0]] = (size, execution, pair)


def _example(drawn: Program, kind: str, pair: Pair, seed: int) -> Execution | None:
    for coincide in (overlay(*pair), everything):
        found = search(Sampler(drawn, coincide, warps=(1,)), [(kind, pair)], seed, 20)
        if found is not None:
            return minimise(found, coincide)
    return None


def _as_pattern(drawn: Program) -> Pattern | None:
    try:
        return parse_pattern(json.dumps(program_to_pattern(drawn)), "drawn")
    except (NotExpressible, ValueError):
        return None


# ---------------------------------------------------------------------------------------------------------------
# What refusing costs


@dataclass(frozen=True)
class Cost:
    """Bytes of shared memory with every buffer apart, without reuse across roles, and by this analysis."""

    apart: int
    within_roles: int
    analysed: int


def cost_of_caution(program: Program, report: Report) -> Cost:
    """``within_roles``: pairs that this analysis proves, and of which both buffers belong to the same single role."""
    users: dict[str, set[str]] = {buffer.name: set() for buffer in program.buffers}
    for role in program.roles:
        for statement in walk(role.body):
            if isinstance(statement, Access):
                users[statement.buffer].add(role.name)
    blocks = {buffer.name: (buffer.size, buffer.align) for buffer in program.buffers}
    kept = [
        frozenset((v.a, v.b))
        for v in report.verdicts
        if not (v.overlap and users[v.a] == users[v.b] and len(users[v.a]) == 1)
    ]
    return Cost(report.baseline, place(blocks, kept).size, report.placement.size)
