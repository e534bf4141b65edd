"""Proposals are checked by the engine: what is printed really makes the pair overlappable."""

from pathlib import Path

import builder as b
import pytest

import hb_analyzer
from croqtile.analyse import analyse
from croqtile.driver import compile_file
from croqtile.repair import repairs

SOURCE = b.tensor("source", b.dim("M"), b.dim("K"))
HAZARDS = Path(__file__).parent / "hazards"


def proposals(analysis, a, b_):
    found = list(repairs(analysis.program, analysis.report, analysis.report.verdict(a, b_)))
    for repair in found:
        report = hb_analyzer.analyse(repair.program)
        assert report.verdict(a, b_).overlap
        assert not (report.deadlocks or report.overruns or report.races)
    return [repair.text for repair in found]


def test_a_barrier_of_all_consumers():
    b.restart_lines()
    analysis = analyse(b.gemm(stages=2, consumers=3, barrier=False))
    store = next(line for line in analysis.report.verdict("lhs_s", "out_s").second.where.split(":")[1:2])
    assert proposals(analysis, "lhs_s", "out_s")[0] == f"`sync.wg 1, 2, 3;` before line {store}"


def test_an_event_between_two_roles_that_run_once():
    one, two = b.buffer("one", (64, 64)), b.buffer("two", (64, 64))
    first, second = b.copy_out(b.view(one), b.view(SOURCE)), b.store(b.view(two))
    kernel = b.kernel(
        b.roles(b.role((0,), b.store(b.view(one)), first), b.role((1,), second)),
        buffers=(one, two),
        tensors=(SOURCE,),
    )
    texts = proposals(analyse(kernel), "one", "two")
    event = f"an event that is set after line {first.span.line} and waited for before line {second.span.line}"
    assert event in texts


def test_an_event_in_every_tile_of_a_persistent_kernel():
    (analysis,) = compile_file(HAZARDS / "staging_across_tiles_racy.co", {}).analyses
    (text,) = proposals(analysis, "lhs_s", "out_s")
    assert text == (
        "an event that consumer sets once in advance and again after line 40, and that producer waits for at the head "
        "of its outer loop"
    )


@pytest.mark.parametrize("pair", [("lhs_s", "rhs_s")])
def test_nothing_is_proposed_for_what_is_used_at_the_same_time(pair):
    assert proposals(analyse(b.gemm()), *pair) == []


def test_nothing_is_proposed_for_an_accepted_pair():
    assert proposals(analyse(b.gemm()), "lhs_s", "out_s") == []
