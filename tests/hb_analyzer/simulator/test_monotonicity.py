"""Less synchronisation never turns no into yes; so more never turns yes into no."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from hb_analyzer import analyse
from hb_analyzer.report import Report
from hb_analyzer.simulator.generate import program
from hb_analyzer.simulator.mutants import mutants


def comparable(report: Report) -> bool:
    """A program that deadlocks is refused as a whole, and an event with a defect orders nothing: taking out the very
    operation that was wrong cures both."""
    return not (report.undecided or report.deadlocks or report.overruns or report.arrivals)


@given(st.integers(0, 1 << 32), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_taking_out_a_wait_a_drain_or_a_barrier(seed: int, random: Random) -> None:
    family, drawn = program(seed)
    if family == "counters":
        return
    before = analyse(drawn)
    weaker = [
        mutant
        for mutant in mutants(drawn)
        if "without" in mutant.what
        and (mutant.kind in ("wait", "drain") or (mutant.kind == "barrier" and mutant.what.startswith("all roles")))
    ]
    if not weaker or not comparable(before):
        return
    mutant = random.choice(weaker)
    after = analyse(mutant.program)
    if comparable(after):
        for verdict in before.verdicts:
            assert verdict.overlap or not after.verdict(verdict.a, verdict.b).overlap, mutant.what
        assert {race.buffer for race in before.races} <= {race.buffer for race in after.races}, mutant.what
