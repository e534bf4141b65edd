"""Verdicts on the kernels that the analysis is about."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from hb_analyzer import analyse, explain_pair
from hb_analyzer.model import (
    Access,
    BinOp,
    Buffer,
    Const,
    Event,
    If,
    Loop,
    Name,
    Opaque,
    Parameter,
    Program,
    Role,
    Statement,
    Step,
    Trigger,
    Wait,
)
from hb_analyzer.report import Report
from hb_analyzer.traverse import walk
from tests.hb_analyzer.programs import attention, gemm, load, persistent_gemm, ring


def yes(report: Report) -> set[str]:
    return {f"{v.a}/{v.b}" for v in report.verdicts if v.overlap}


def one_role(*body: Statement) -> Program:
    return Program("p", (Buffer("A", 64), Buffer("B", 64)), (), (Role("r", body),))


def test_clobber_inside_one_role_is_refused_although_all_is_ordered() -> None:
    a, b = ("A", "B")
    report = analyse(one_role(Access(a, "w"), Access(b, "w"), Access(b, "r"), Access(a, "r")))
    assert report.verdict("A", "B").kind == "clobber"
    assert yes(analyse(one_role(Access(a, "w"), Access(a, "r"), Access(b, "w"), Access(b, "r")))) == {"A/B"}


def test_gemm_output_lies_over_the_operands() -> None:
    report = analyse(gemm())
    assert yes(report) == {"lhs/out", "out/rhs"}
    assert (report.baseline, report.placement.size) == (114688, 98304)
    assert report.notes == ()


def test_three_consumers_need_the_barrier() -> None:
    refused = analyse(gemm(consumers=3, stages=2))
    assert yes(refused) == set()
    assert refused.placement.size == refused.baseline == 131072
    assert refused.verdict("lhs", "out").kind == "conflict"
    accepted = analyse(gemm(consumers=3, stages=2, barrier=True))
    assert yes(accepted) == {"lhs/out", "out/rhs"}
    assert accepted.placement.size == 81920


def test_attention_output_lies_over_keys_and_values_but_these_do_not_over_each_other() -> None:
    assert yes(analyse(attention())) == {"kk/o", "o/v", "o/q"}
    assert yes(analyse(attention(consumers=2))) == set()
    assert yes(analyse(attention(consumers=2, barrier=True))) == {"kk/o", "o/v", "o/q"}


def test_cooperative_persistent_gemm_is_refused_with_the_interleaving() -> None:
    source = persistent_gemm()
    verdict = analyse(source).verdict("lhs", "out")
    assert verdict.kind == "conflict"
    assert dict(verdict.parameters) == {"T": 2, "N": 1}
    assert verdict.first is not None and verdict.first.iteration == (1, 0)
    steps = explain_pair(source, "out", "lhs").interleaving
    assert steps[-1].site.label == "write out[0]"
    assert "has not ended" in steps[-1].note


def test_persistent_gemm_is_accepted_with_an_epilogue_event_or_one_tile() -> None:
    assert yes(analyse(persistent_gemm(epilogue_event=True))) == {"lhs/out", "out/rhs"}
    assert yes(analyse(persistent_gemm(max_tiles=1))) == {"lhs/out", "out/rhs"}


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_every_ring_depth(stages: int) -> None:
    assert yes(analyse(gemm(stages=stages))) == {"lhs/out", "out/rhs"}


def test_early_release_is_a_race_inside_the_operand() -> None:
    # At most one group pending, and the newest stage is released: it may still be read.
    report = analyse(gemm(pending=1))
    assert {race.buffer for race in report.races} == {"lhs", "rhs"}
    assert report.races[0].interleaving


def test_a_release_one_stage_behind_is_sound() -> None:
    source = gemm(stages=4, pending=1, released_slots=3)
    consumer = source.roles[1]
    loops = [s for s in consumer.body if isinstance(s, Loop)]
    behind = replace(loops[0], body=(*loops[0].body[:-1], Trigger("empty", ring("k", 4, 3))))
    body = tuple(behind if statement is loops[0] else statement for statement in consumer.body)
    report = analyse(replace(source, roles=(source.roles[0], replace(consumer, body=body))))
    assert not (report.races or report.deadlocks or report.overruns)
    assert yes(report) == {"lhs/out", "out/rhs"}


def test_without_a_loop_back_order_the_next_copy_races() -> None:
    body = (Loop("i", Name("N"), (Access("A", "w"), Access("A", "r", ends="never", proxy="async"))),)
    source = replace(one_role(*body), parameters=(Parameter("N"),))
    (race,) = analyse(source).races
    assert dict(race.parameters) == {"N": 2}


def test_rings_of_three_and_four_slots() -> None:
    """A write after the loop meets the last read of a ring of three only through the ring of four."""
    three, four = ring("i", 3), ring("i", 4)
    giver = (Loop("i", Name("N"), (Wait("free3", three), load("A", "full3", three), Trigger("full3", three))),)
    taker = (
        *(Trigger("free3", Const(s)) for s in range(3)),
        Loop(
            "i",
            Name("N"),
            (Wait("full3", three), Access("A", "r", three), Trigger("free3", three), Trigger("done", four)),
        ),
    )
    last = (Loop("i", Name("N"), (Wait("done", four),)), Access("B", "w"))
    source = Program(
        "p",
        (Buffer("A", 192, slots=3), Buffer("B", 64)),
        (Event("full3", 3), Event("free3", 3), Event("done", 4)),
        (Role("giver", giver), Role("taker", taker), Role("last", last)),
        (Parameter("N"),),
    )
    assert yes(analyse(source)) == {"A/B"}
    shorter = replace(source.roles[2], body=(Loop("i", Name("M"), (Wait("done", four),)), Access("B", "w")))
    source = replace(source, roles=(*source.roles[:2], shorter), parameters=(Parameter("N"), Parameter("M", 0, 0)))
    assert yes(analyse(source)) == set()


def test_a_conflict_at_multiples_of_twelve_only() -> None:
    """Loads of iteration N − 1 meet the epilogue only where slot N mod 3 and slot N mod 4 are both slot 0."""
    both = BinOp(
        "&&",
        BinOp("==", BinOp("%", Name("N"), Const(3)), Const(0)),
        BinOp("==", BinOp("%", Name("N"), Const(4)), Const(0)),
    )
    positive = BinOp("&&", both, BinOp(">", Name("N"), Const(0)))
    roles = (
        Role("a", (If(positive, (Access("A", "w"),)),)),
        Role("b", (Loop("i", Name("N"), (Access("B", "w"),)),)),
    )
    source = Program("p", (Buffer("A", 64), Buffer("B", 64)), (), roles, (Parameter("N"),))
    verdict = analyse(source).verdict("A", "B")
    assert not verdict.overlap
    assert dict(verdict.parameters) == {"N": 12}


def every(period: int, counter: str = "i", shift: int = 0) -> BinOp:
    """In every ``period``-th iteration."""
    return BinOp("==", BinOp("%", BinOp("+", Name(counter), Const(shift)), Const(period)), Const(0))


WRITE_A, WRITE_B, READ_A = Access("A", "w"), Access("B", "w"), Access("A", "r")
LATE: dict[str, tuple[tuple[Statement, ...], int]] = {
    # A written in iteration 3 and read in 6, B written in 4.
    "written, overwritten and read in different iterations": (
        (
            Loop(
                "i",
                Name("N"),
                (If(every(4, shift=1), (WRITE_A,)), If(every(4), (WRITE_B,)), If(every(4, shift=2), (READ_A,))),
            ),
        ),
        7,
    ),
    "a counter that starts late": (
        (Step("c", 10), Loop("i", Name("N"), (If(BinOp("==", Name("i"), Name("c")), (WRITE_A,)),))),
        11,
    ),
    "a counter that starts late, in a loop": (
        (
            Loop("z", Const(30), (Step("c"),)),
            Loop("i", Name("N"), (Step("c", -1), If(BinOp("==", Name("c"), Const(0)), (WRITE_A,)))),
        ),
        30,
    ),
    "a counter that is stepped in every sixth iteration": (
        (Loop("i", Name("N"), (If(every(6), (Step("c"),)), If(BinOp("==", Name("c"), Const(5)), (WRITE_A,)))),),
        25,
    ),
    "a remainder of such a counter": (
        (Loop("i", Name("N"), (If(every(6), (Step("c"),)), If(every(6, "c", 1), (WRITE_A,)))),),
        25,
    ),
    "a difference as a condition": (
        (Loop("i", Name("N"), (If(BinOp("-", Name("i"), Const(30)), (), (WRITE_A,)),)),),
        31,
    ),
}


@pytest.mark.parametrize("what", LATE)
def test_what_happens_at_large_trip_counts_only(what: str) -> None:
    """Found by unrolling far enough: the distance form knows no conditions."""
    body, count = LATE[what]
    roles = (Role("a", body),) if WRITE_B in walk(body) else (Role("a", body), Role("b", (WRITE_B,)))
    verdict = analyse(Program("p", (Buffer("A", 64), Buffer("B", 64)), (), roles, (Parameter("N"),))).verdict("A", "B")
    assert verdict.kind in ("conflict", "clobber")
    assert dict(verdict.parameters) == {"N": count}


def test_barrier_storage_overlaps_nothing() -> None:
    source = gemm()
    source = replace(source, buffers=(*source.buffers, Buffer("bars", 64, 8, barrier_storage=True)))
    report = analyse(source)
    assert yes(report) == {"lhs/out", "out/rhs"}
    assert "mbarrier.inval" in report.verdict("bars", "out").why


def test_opaque_statements_refuse_their_buffers_and_silence_their_events() -> None:
    source = gemm()
    opaque = Opaque("pointer of unknown origin", buffers=("out",), where="k.co:9:3")
    roles = (replace(source.roles[0], body=(*source.roles[0].body, opaque)), source.roles[1])
    verdict = analyse(replace(source, roles=roles)).verdict("lhs", "out")
    assert (verdict.kind, verdict.why) == ("unknown", "out: pointer of unknown origin (k.co:9:3)")
    opaque = Opaque("wait under a data-dependent if", events=("full",))
    roles = (replace(source.roles[0], body=(*source.roles[0].body, opaque)), source.roles[1])
    report = analyse(replace(source, roles=roles))
    assert yes(report) == set()
    assert not report.deadlocks


def test_unequal_trip_counts_are_refused() -> None:
    source = gemm()
    producer = source.roles[0]
    loop = producer.body[0]
    assert isinstance(loop, Loop)
    other = replace(producer, body=(replace(loop, trip=Name("M")),))
    report = analyse(replace(source, roles=(other, source.roles[1]), parameters=(Parameter("N"), Parameter("M"))))
    assert yes(report) == set()
    assert report.deadlocks


def test_a_program_outside_the_model_is_refused_in_words() -> None:
    report = analyse(one_role(Access("A", "w"), Access("C", "w")))
    assert report.verdict("A", "B").kind == "unknown"
    assert "there is no buffer 'C'" in report.verdict("A", "B").why


def test_too_large_programs_are_refused() -> None:
    body: tuple[Statement, ...] = (Access("A", "w"), Access("B", "w"))
    for counter in "abcdef":
        body = (Loop(counter, Const(20), body),)
    report = analyse(one_role(*body))
    assert report.verdict("A", "B").kind == "unknown"
    assert "too large" in report.verdict("A", "B").why


def test_single_iteration_of_a_deep_ring() -> None:
    source = replace(gemm(stages=4), parameters=(Parameter("N", 1, 1),))
    assert yes(analyse(source)) == {"lhs/out", "out/rhs"}


def test_explain_gives_the_same_verdict() -> None:
    for source in (gemm(), gemm(3, 2), attention(), persistent_gemm()):
        report = analyse(source)
        for verdict in report.verdicts:
            explained = explain_pair(source, verdict.b, verdict.a)
            assert replace(explained, proof=(), interleaving=()) == verdict
            assert bool(explained.proof) == verdict.overlap
            assert bool(explained.interleaving) == (not verdict.overlap)


def test_explain_refuses_unknown_names() -> None:
    for pair in (("lhs", "lhs"), ("lhs", "nothing")):
        with pytest.raises(KeyError):
            explain_pair(gemm(), *pair)


def test_analysis_is_fast() -> None:
    def best(source: Program) -> float:
        times = []
        for _ in range(5):
            start = time.process_time()
            analyse(source)
            times.append(time.process_time() - start)
        return min(times)

    assert best(gemm(3, 4, barrier=True)) < 0.05
    assert best(attention(3, 2, barrier=True)) < 0.05
    assert best(persistent_gemm(epilogue_event=True)) < 1.0


def test_events_that_nobody_uses_change_nothing() -> None:
    source = gemm()
    assert yes(analyse(replace(source, events=(*source.events, Event("spare", 4, 2))))) == yes(analyse(source))
