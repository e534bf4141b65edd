"""One program, the engine's report on it, and what executions show: do they agree?

The claims that a trial tests, each a name in ``Trial.broken`` if it fails:

* *overlap*: a pair that may overlap is not seen to conflict or to clobber, under any placement;
* *placement*: with the report's placement nothing is seen at all, blocks are aligned and inside, refused pairs apart;
* *deadlock*, *overrun*, *race*, *unawaited*: what is seen of these was reported.

A program that the engine does not decide (it says so, and refuses every pair) has no claims but the first two. An event
that cannot be right (arrival counts, overruns) is reported as such, and then orders nothing for the engine, while the
simulated machine still counts its arrivals: what gets stuck there is no deadlock of the program's making.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import combinations
from random import Random

from hb_analyzer.model import Program
from hb_analyzer.report import Report, Verdict
from hb_analyzer.simulator.layout import placed
from hb_analyzer.simulator.machine import Finding
from hb_analyzer.simulator.witness import Key, Sampler, run

Analyse = Callable[[Program], Report]


@dataclass
class Trial:
    """What came out. ``broken``: claim and finding; ``witnessed``, ``unwitnessed``: refusals."""

    report: Report
    broken: list[tuple[str, str]] = field(default_factory=list)
    seen: set[Key] = field(default_factory=set)
    accepted: int = 0
    witnessed: int = 0
    unwitnessed: list[tuple[Verdict, str]] = field(default_factory=list)  # with the explanation
    executions: int = 0
    transitions: int = 0


def trial(program: Program, analyse: Analyse, seed: int, schedules: int = 12, effort: int = 60) -> Trial:
    """``schedules``: executions that test the claims; ``effort``: more of them in search of witnesses."""
    result = Trial(analyse(program))
    sampler = Sampler(program)
    _claims(program, sampler, result, seed, schedules)
    _placement(program, result, seed, max(2, schedules // 4))
    _witnesses(program, result, seed, effort)
    return result


def _claims(program: Program, sampler: Sampler, result: Trial, seed: int, schedules: int) -> None:
    for _, _, machine, _ in sampler.executions(seed, schedules):
        result.executions += 1
        result.transitions += machine.steps
        result.seen |= machine.findings.keys()
        result.broken += broken_claims(result.report, machine.findings.values())


def broken_claims(report: Report, findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """The claims of a report that findings of one execution contradict, with the finding."""
    unclear = bool(report.arrivals or report.overruns)
    broken = []
    for finding in findings:
        if finding.kind in ("conflict", "clobber"):
            if report.verdict(*finding.subject).overlap:
                broken.append(("overlap", f"{finding.kind} {', '.join(finding.subject)}"))
        elif report.undecided or report.deadlocks:
            continue
        elif finding.kind == "race":
            if finding.subject[0] not in {race.buffer for race in report.races}:
                broken.append(("race", finding.subject[0]))
        elif finding.kind == "unawaited":
            if finding.subject[0] not in {d.buffer for d in report.unawaited} and not unclear:
                broken.append(("unawaited", finding.subject[0]))
        elif finding.kind == "overrun":
            if finding.subject[0] not in {d.event for d in (*report.overruns, *report.arrivals)} and not unclear:
                broken.append(("overrun", finding.subject[0]))
        elif finding.kind == "deadlock" and not unclear:
            broken.append(("deadlock", ", ".join(finding.subject)))
    return broken


def _placement(program: Program, result: Trial, seed: int, schedules: int) -> None:
    placement = result.report.placement
    for buffer in program.buffers:
        low = placement.offsets[buffer.name]
        if low % buffer.align or low < 0 or low + buffer.size > placement.size:
            result.broken.append(("placement", f"{buffer.name} at {low}"))
    for a, b in combinations(program.buffers, 2):
        x, y = placement.offsets[a.name], placement.offsets[b.name]
        if x < y + b.size and y < x + a.size and not result.report.verdict(a.name, b.name).overlap:
            result.broken.append(("placement", f"{a.name} over {b.name}"))
    if placement.size < result.report.baseline:
        for _, _, machine, _ in Sampler(program, placed(placement)).executions(seed + (1 << 40), schedules):
            result.executions += 1
            result.transitions += machine.steps
            for finding in machine.findings.values():
                if finding.kind in ("conflict", "clobber"):
                    result.broken.append(("placement", f"{finding.kind} {', '.join(finding.subject)}"))


# ---------------------------------------------------------------------------------------------------------------
# Precision: is there an execution behind every no?


def _witnesses(program: Program, result: Trial, seed: int, effort: int) -> None:
    report = result.report
    missing: list[Verdict] = []
    for verdict in report.verdicts:
        if verdict.overlap:
            result.accepted += 1
        elif _witness_of(verdict, result.seen):
            result.witnessed += 1
        elif report.deadlocks:
            result.unwitnessed.append((verdict, "the program deadlocks: all pairs are refused"))
        elif verdict.kind == "unknown":
            result.unwitnessed.append((verdict, "not decided: too many trip counts, or outside of the model"))
        else:
            missing.append(verdict)
    random = Random(seed)
    for number in range(effort):
        if not missing:
            break
        # Half of the search at the trip counts of the report, where it says that something happens.
        hint = dict(random.choice(missing).parameters) if number % 2 == 0 else {}
        known = {p.name for p in program.parameters}
        sampler = Sampler(program, warps=(1,), fixed={n: v for n, v in hint.items() if n in known})
        code, layout = sampler.compiled(random)
        machine, _ = run(code, layout, random)
        result.executions += 1
        result.transitions += machine.steps
        result.broken += broken_claims(report, machine.findings.values())
        found = [verdict for verdict in missing if _witness_of(verdict, machine.findings.keys())]
        result.witnessed += len(found)
        missing = [verdict for verdict in missing if verdict not in found]
    orderless = bool(report.arrivals or report.overruns)
    for verdict in missing:
        why = "an event with a defect orders nothing for the engine" if orderless else "no execution found"
        result.unwitnessed.append((verdict, why))


def _witness_of(verdict: Verdict, seen: Iterable[Key]) -> bool:
    keys = {("conflict", (verdict.a, verdict.b)), ("clobber", (verdict.a, verdict.b))}
    return not keys.isdisjoint(seen)
