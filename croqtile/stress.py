"""Builds for stress tests: what they may poison by the word of the analysis, and deliberately wrong ones.

A stress build delays every role at random, starts with shared memory full of NaN, and just before each write puts NaN
over what the analysis calls dead (``emit/stress.py``). A wrong build shows that such a test can fail: two buffers lie
on each other although the analysis forbids it, or the waits for an event are left out. It is for tests only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from croqtile.analyse import Analysis
from hb_analyzer import model
from hb_analyzer.report import Placement
from hb_analyzer.traverse import walk


@dataclass(frozen=True)
class Wrong:
    """What a deliberately wrong build does: ``overlap`` two buffers, leave out the waits for the event ``unwaited``."""

    overlap: tuple[str, str] | None = None
    unwaited: str | None = None


@dataclass(frozen=True)
class Stress:
    """How one kernel is stressed. ``accepted``: pairs of buffers that the analysis lets overlap (in a wrong build, the
    pair that it should not, too). ``slots``: buffers of which the analysis has shown that a write into a slot comes
    after all accesses to what the slot held. ``warning``: what is wrong with the build; empty for a right one."""

    accepted: frozenset[frozenset[str]]
    slots: frozenset[str]
    unwaited: frozenset[str] = frozenset()
    warning: str = ""


class CannotBeWrongError(Exception):
    """The kernel has no such buffers or event, or the overlap is one that the analysis accepts."""


def stress_of(analysis: Analysis, wrong: Wrong = Wrong()) -> tuple[Stress, Placement]:
    """How to stress an analysed kernel, and its placement. Raises CannotBeWrongError."""
    report = analysis.report
    accepted = {frozenset((v.a, v.b)) for v in report.verdicts if v.overlap}
    placement, warning = analysis.placement, ""
    if wrong.overlap:
        placement = _on_each_other(analysis, wrong.overlap)
        accepted.add(frozenset(wrong.overlap))
        warning = f"{' and '.join(wrong.overlap)} lie on each other, which the analysis forbids"
    unwaited: frozenset[str] = frozenset()
    if wrong.unwaited:
        if wrong.unwaited not in {event.name for event in analysis.kernel.events}:
            raise CannotBeWrongError(f"{analysis.kernel.name} has no event `{wrong.unwaited}`")
        unwaited = frozenset((wrong.unwaited,))
        warning += f"{', ' if warning else ''}the waits for {wrong.unwaited} are left out"
    return Stress(frozenset(accepted), _proved_slots(analysis), unwaited, warning), placement


def _on_each_other(analysis: Analysis, pair: tuple[str, str]) -> Placement:
    """The placement in force, with the smaller buffer of ``pair`` moved to where the larger one starts."""
    placement, names = analysis.placement, {buffer.name for buffer in analysis.kernel.buffers}
    for name in pair:
        if name not in names:
            raise CannotBeWrongError(f"{analysis.kernel.name} has no buffer `{name}`: {', '.join(sorted(names))}")
    if pair[0] == pair[1] or analysis.report.verdict(*pair).overlap:
        raise CannotBeWrongError(f"{pair[0]} and {pair[1]} may overlap: that is no wrong build")
    small, large = sorted(pair, key=lambda name: placement.sizes[name])
    return replace(placement, offsets={**placement.offsets, small: placement.offsets[large]})


def _proved_slots(analysis: Analysis) -> frozenset[str]:
    """Buffers without a race that nothing keeps the analysis from deciding on."""
    report = analysis.report
    if report.deadlocks or report.overruns or report.arrivals or report.undecided:
        return frozenset()
    doubtful = {defect.buffer for defect in report.races}
    doubtful |= {name for v in report.verdicts if v.kind == "unknown" for name in (v.a, v.b)}
    for role in analysis.program.roles:
        for statement in walk(role.body):
            if isinstance(statement, model.Opaque):
                doubtful |= set(statement.buffers)
    return frozenset(buffer.name for buffer in analysis.kernel.buffers) - doubtful
