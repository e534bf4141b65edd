"""The run behind the timeline."""

from __future__ import annotations

import pytest

from hb_analyzer.examples import example_paths
from hb_analyzer.model import (
    Access,
    Barrier,
    Buffer,
    Commit,
    Const,
    Drain,
    Event,
    Parameter,
    Program,
    Role,
    Trigger,
    Wait,
)
from hb_analyzer.pattern_load import load_pattern
from hb_analyzer.pattern_report import analyse_pattern
from hb_analyzer.sample_schedule import ISSUE, lifetimes, sample_run, trip_counts
from hb_analyzer.translate import to_program

BUFFERS = (Buffer("A", 64), Buffer("B", 64))


def program(*bodies: tuple[object, ...], events: tuple[Event, ...] = (Event("e"),)) -> Program:
    roles = tuple(Role(f"r{i}", body) for i, body in enumerate(bodies))  # type: ignore[arg-type]
    return Program("p", BUFFERS, events, roles)


def test_a_wait_holds_until_the_copy_has_landed() -> None:
    copy = Access("A", "w", ends="event", event="e", proxy="async", label="copy")
    run = sample_run(program((copy, Trigger("e")), (Wait("e"), Access("A", "r", label="use"))), {})
    first, second = run.blocks
    assert (first.begin, first.end, first.asynchronous) == (0, 1, True)
    assert (second.begin, second.end) == (1, 2)
    assert [(a.source, a.target, a.held) for a in run.arrows] == [("r0", "r1", True)]


def test_a_role_goes_on_while_its_copy_runs() -> None:
    copy = Access("A", "w", ends="event", event="e", proxy="async", label="copy")
    run = sample_run(program((copy, Trigger("e"), Access("B", "w", label="next"))), {})
    assert run.blocks[1].begin == pytest.approx(ISSUE)


def test_matrix_groups_end_at_their_drain() -> None:
    read = Access("A", "r", ends="group", proxy="async", label="mma")
    run = sample_run(program((read, Commit(), Drain(0), Access("B", "w", label="store"))), {})
    assert run.blocks[1].begin == 1


def test_a_barrier_waits_for_the_last() -> None:
    meet = Barrier("b", ("r0", "r1"))
    run = sample_run(program((Access("A", "w", label="long"), meet), (meet, Access("B", "w", label="after"))), {})
    assert run.barriers == [("b", 1, ("r0", "r1"))]
    assert run.blocks[1].begin == 1


def test_stuck_roles_are_named() -> None:
    run = sample_run(program((Wait("e", label="wait e"),)), {})
    assert run.stuck == ["r0: wait e"]


def test_slots_and_arrivals() -> None:
    both = (Trigger("e", Const(1)),)
    waits = (Wait("e", Const(1)), Access("A", "r", label="use"))
    run = sample_run(program(both, both, waits, events=(Event("e", slots=2, arrivals=2),)), {})
    assert not run.stuck
    alone = sample_run(program(both, waits, events=(Event("e", slots=2, arrivals=2),)), {})
    assert alone.stuck


def test_trip_counts_are_small_and_within_bounds() -> None:
    base = Program("p", (), (), (Role("r", ()),), (Parameter("N"), Parameter("M", 5), Parameter("T", 1, 1)))
    assert trip_counts(base, {"N": 4, "unknown": 9}) == {"N": 4, "M": 5, "T": 1}


@pytest.mark.parametrize("path", example_paths(), ids=lambda path: path.stem)
def test_no_two_lifetimes_meet_at_an_address(path: object) -> None:
    """What the placement lays over each other is not alive at the same time: here in one schedule, drawn; the
    verdicts say it of all."""
    analysis = analyse_pattern(load_pattern(str(path)))
    program = analysis.program
    if path.stem == "fa_kv_missing_signal":  # type: ignore[attr-defined]
        pytest.skip("its V_s is used without synchronisation")
    run = sample_run(program, trip_counts(program, {}))
    assert not run.stuck
    stride = {b.name: b.size // b.slots for b in program.buffers}
    placed = [
        (life, analysis.report.placement.offsets[life.buffer] + life.slot * stride[life.buffer])
        for life in lifetimes(run)
    ]
    assert placed
    for i, (one, low) in enumerate(placed):
        for other, other_low in placed[:i]:
            apart = low + stride[one.buffer] <= other_low or other_low + stride[other.buffer] <= low
            assert apart or one.end <= other.begin + 1e-9 or other.end <= one.begin + 1e-9, (one, other)


def test_lifetimes_begin_at_writes() -> None:
    write, read = Access("A", "w", label="w"), Access("A", "r", label="r")
    run = sample_run(program((write, read, write, read)), {})
    assert [(life.begin, life.end) for life in lifetimes(run)] == [(0, 2), (2, 4)]


def test_published_patterns_split_lifetimes_at_the_producer() -> None:
    path = next(path for path in example_paths() if path.stem == "choreo_fa_kv")
    run = sample_run(to_program(load_pattern(path)), {"N": 3})
    assert sum(life.buffer == "K_s" for life in lifetimes(run)) == 3
