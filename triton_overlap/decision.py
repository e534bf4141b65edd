"""May a staging tile lie over a ring? The engine's verdict, on the part of the program that the two need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import chain, combinations

from hb_analyzer import analyse, explain_pair
from hb_analyzer.model import Loop, Name, Parameter, Program, Statement
from hb_analyzer.report import Report, Verdict
from triton_overlap.overlay import Overlay
from triton_overlap.roles import buffer_name
from triton_overlap.slices import slice_neighbourhood, slice_roles, touches
from triton_overlap.translate import Translation


def decide(translation: Translation, pair: Overlay, wide: bool = False) -> Verdict:
    """The engine's verdict on one overlap, from the part of the program that the pair needs (``wide``: all of its
    roles and their events)."""
    part, a, b = _part(translation, pair, wide), buffer_name(pair.staging), buffer_name(pair.ring)
    verdict = report_on(part).verdict(a, b)
    if verdict.overlap and not proved(part, {a, b}, lambda report: report.verdict(a, b).overlap):
        return replace(verdict, overlap=False, kind="unknown", why="an mbarrier may be overrun: nothing is proved")
    return verdict


def explain(translation: Translation, pair: Overlay) -> Verdict:
    """:func:`decide` with its evidence: ordering paths, or an interleaving that observes the overlap."""
    wide = not decide(translation, pair).overlap
    verdict = decide(translation, pair, wide)
    evidence = explain_pair(_part(translation, pair, wide), buffer_name(pair.staging), buffer_name(pair.ring))
    return evidence if evidence.overlap == verdict.overlap else verdict  # a yes without a proof has no evidence


def _part(translation: Translation, pair: Overlay, wide: bool) -> Program:
    part = slice_roles if wide else slice_neighbourhood
    return part(translation.program, buffer_name(pair.staging), buffer_name(pair.ring))


@lru_cache(maxsize=256)
def report_on(program: Program) -> Report:
    """The engine's report. Rewrites with other settings ask the same questions."""
    return analyse(program)


def proved(program: Program, buffers: set[str], holds: Callable[[Report], bool]) -> bool:
    """Is it a proof that the report on ``program`` ``holds``? The theorem (hb_analyzer/SOUNDNESS.md) asks for programs
    without overruns.

    The guard of a persistent kernel laps its waiter while the loop over K is empty. So where there are overruns, trip
    counts of 0 are set apart, and among these a case holds in spite of them if one role alone touches the buffers.
    """
    if not report_on(program).overruns:
        return holds(report_on(program))
    if any(parameter.minimum < 0 for parameter in program.parameters):
        return False
    names = [parameter.name for parameter in program.parameters if parameter.minimum == 0]
    for empty in chain.from_iterable(combinations(names, size) for size in range(len(names) + 1)):
        case = replace(program, parameters=tuple(_restricted(each, empty) for each in program.parameters))
        report = report_on(case)
        touching = sum(touches(tuple(_running(role.body, empty)), buffers) for role in program.roles)
        if not holds(report) or (report.overruns and touching > 1):
            return False
    return True


def _restricted(parameter: Parameter, empty: tuple[str, ...]) -> Parameter:
    if parameter.name in empty:
        return replace(parameter, maximum=0)
    return replace(parameter, minimum=max(1, parameter.minimum))


def _running(body: tuple[Statement, ...], empty: tuple[str, ...]) -> Iterator[Statement]:
    """Without the loops whose trip counts are 0."""
    for statement in body:
        if not isinstance(statement, Loop):
            yield statement
        elif not (isinstance(statement.trip, Name) and statement.trip.name in empty):
            yield replace(statement, body=tuple(_running(statement.body, empty)))
