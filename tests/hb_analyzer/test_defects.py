"""Deadlocks, overruns, arrivals."""

from __future__ import annotations

from dataclasses import replace

from hb_analyzer import analyse
from hb_analyzer.model import (
    Access,
    Barrier,
    Buffer,
    Const,
    Event,
    Loop,
    Name,
    Parameter,
    Program,
    Role,
    Statement,
    Trigger,
    Wait,
)
from hb_analyzer.report import Defect
from tests.hb_analyzer.programs import attention, gemm, load, persistent_gemm, ring


def program(*bodies: tuple[Statement, ...], events: tuple[Event, ...] = (Event("e"), Event("f"))) -> Program:
    roles = tuple(Role(f"r{i}", body) for i, body in enumerate(bodies))
    return Program("p", (Buffer("A", 64), Buffer("B", 64)), events, roles, (Parameter("N"),))


def trips(defect: Defect) -> int:
    return dict(defect.parameters)["N"]


def test_sound_kernels_have_no_defects() -> None:
    for source in (gemm(), gemm(3, 2, barrier=True), attention(2, 2, barrier=True), gemm(stages=1)):
        report = analyse(source)
        assert not (report.deadlocks or report.overruns or report.races or report.arrivals), source.name


def test_crossed_waits_deadlock() -> None:
    report = analyse(program((Wait("e"), Trigger("f")), (Wait("f"), Trigger("e"))))
    (deadlock,) = report.deadlocks
    assert deadlock.why == "circular wait: r0: wait e[0] → r1: wait f[0] → r0: wait e[0]"
    assert not report.verdict("A", "B").overlap


def test_a_missing_setting_deadlocks() -> None:
    report = analyse(program((Wait("e"),), ()))
    (deadlock,) = report.deadlocks
    assert deadlock.event == "e"
    assert "the slot is never set" in deadlock.why
    assert report.verdict("A", "B").kind == "unknown"


def test_unequal_barrier_arrivals_deadlock() -> None:
    meet = Barrier("b", ("r0", "r1"))
    report = analyse(program((Loop("i", Name("N"), (meet,)),), (meet,)))
    assert [trips(deadlock) for deadlock in report.deadlocks] == [0, 2]
    assert "r0 never arrives" in report.deadlocks[0].why
    assert "r1 never arrives" in report.deadlocks[1].why


def test_a_barrier_in_another_order_than_an_event_deadlocks() -> None:
    meet = Barrier("b", ("r0", "r1"))
    assert analyse(program((meet, Trigger("e")), (Wait("e"), meet))).deadlocks
    assert not analyse(program((Trigger("e"), meet), (Wait("e"), meet))).deadlocks


def test_a_barrier_alone_is_no_deadlock() -> None:
    meet = Barrier("b", ("r0", "r1"))
    assert not analyse(program((Loop("i", Name("N"), (meet, meet)),), (Loop("i", Name("N"), (meet, meet)),))).deadlocks


def test_three_of_four_slots_released_deadlocks_from_four_iterations_on() -> None:
    report = analyse(gemm(stages=4, released_slots=3))
    assert {trips(deadlock) for deadlock in report.deadlocks} == {4}


def test_all_slots_released_does_not_deadlock() -> None:
    assert not analyse(gemm(stages=4, released_slots=4)).deadlocks


def test_missing_arrivals_are_reported_and_order_nothing() -> None:
    report = analyse(gemm(consumers=2, stages=3, arrivals=1))
    (defect,) = report.arrivals
    assert defect.event == "empty"
    assert defect.why.startswith("empty[0] needs 1 arrivals for each setting, but 2 instances trigger it")
    assert {race.buffer for race in report.races} == {"lhs", "rhs"}
    assert not report.verdict("lhs", "out").overlap


def test_one_instance_triggering_twice_does_not_make_two_arrivals() -> None:
    report = analyse(program((Trigger("e"), Trigger("e")), (Wait("e"),), events=(Event("e", arrivals=2),)))
    assert [defect.event for defect in report.arrivals] == ["e"]


def test_slots_of_different_instances_are_counted_apart() -> None:
    # One slot for each of two warpgroups that take turns.
    turns = (Event("turn", 2),)
    first = (Trigger("turn", Const(1)), Wait("turn", Const(0)))
    second = (Wait("turn", Const(1)), Trigger("turn", Const(0)))
    report = analyse(program(first, second, events=turns))
    assert not report.arrivals
    assert not report.deadlocks


def test_a_lapped_waiter_is_an_overrun() -> None:
    giver = (Loop("i", Name("N"), (Trigger("e"),)),)
    taker = (Loop("i", Name("N"), (Wait("e"),)),)
    (overrun,) = analyse(program(giver, taker)).overruns
    assert overrun.event == "e"
    assert trips(overrun) == 2
    assert "setting 2 can come before wait 1" in overrun.why
    answered = (Loop("i", Name("N"), (Wait("e"), Trigger("f"))),)
    patient = (Loop("i", Name("N"), (Trigger("e"), Wait("f"))),)
    assert not analyse(program(patient, answered)).overruns


def test_an_arrival_for_the_next_setting_too_early_breaks_the_order() -> None:
    # r0 arrives twice while r1 has not arrived once: its second arrival completes the first setting.
    events = (Event("e", arrivals=2), Event("f"))
    source = program(
        (load("A", "f", Const(0)), Trigger("f"), Trigger("e"), Trigger("e")),
        (Wait("f"), Trigger("e"), Trigger("e")),
        (Wait("e"), load("B", "g", Const(0)), Trigger("g")),
        events=(*events, Event("g")),
    )
    report = analyse(source)
    assert [overrun.event for overrun in report.overruns] == ["e"]
    assert "arrival for setting 2 can come before setting 1" in report.overruns[0].why
    assert not report.verdict("A", "B").overlap


def test_a_copy_issued_before_the_previous_setting_overruns() -> None:
    slot = ring("i", 2)
    unguarded = (Loop("i", Name("N"), (load("A", "e", slot), Trigger("e", slot))),)
    source = program(unguarded, (), events=(Event("e", 2),))
    source = replace(source, buffers=(Buffer("A", 64, slots=2), Buffer("B", 64)))
    assert [overrun.event for overrun in analyse(source).overruns] == ["e"]


def test_an_epilogue_event_is_not_overrun_when_tiles_have_work() -> None:
    source = persistent_gemm(epilogue_event=True)
    assert "stored" in {overrun.event for overrun in analyse(source).overruns}, "without loads nobody waits in a tile"
    busy = replace(source, parameters=(Parameter("T"), Parameter("N", 1)))
    assert not analyse(busy).overruns


def test_arrivals_for_a_setting_that_never_completes_count_for_the_one_before() -> None:
    """Two arrivals of r0 set the event before r1 has written A: its wait orders nothing."""
    write_a, write_b = Access("A", "w"), Access("B", "w")
    twice = program(
        (Trigger("e"), Trigger("e")), (write_a, Trigger("e")), (Wait("e"), write_b), events=(Event("e", 1, 2),)
    )
    report = analyse(twice)
    assert [overrun.event for overrun in report.overruns] == ["e"]
    assert not report.verdict("A", "B").overlap
    once = program((Trigger("e"),), (write_a, Trigger("e")), (Wait("e"), write_b), events=(Event("e", 1, 2),))
    assert analyse(once).verdict("A", "B").overlap


def test_a_copy_after_the_last_trigger_lands_in_a_phase_that_waits_for_more() -> None:
    copy = load("A", "e", Const(0))
    report = analyse(program((copy, Trigger("e"), copy), (Trigger("e"),), (Wait("e"),), events=(Event("e", 1, 2),)))
    assert [overrun.event for overrun in report.overruns] == ["e"]


def test_a_copy_bound_by_a_role_that_never_triggers_the_event() -> None:
    """Its bytes can hold up a setting until an arrival for the next one has come."""
    copier = (load("A", "e", Const(0)),)
    report = analyse(program((Trigger("e"),), (Wait("e"), Access("B", "w")), copier))
    (defect,) = report.arrivals
    assert defect.event == "e" and "r2 binds copies to e[0]" in defect.why
    assert not report.verdict("A", "B").overlap
    assert not analyse(program((Trigger("f"),), (Wait("f"),), copier)).arrivals  # an event of its own


def test_arrivals_beyond_a_setting_that_never_completes_make_up_for_it() -> None:
    """The second and third arrival of r0 complete a setting that needs r1 as well."""
    late = (Trigger("e"), Wait("f"), Trigger("e"), Trigger("e"))
    report = analyse(program(late, (Trigger("e"), Wait("e"), Trigger("f")), events=(Event("e", 1, 2), Event("f"))))
    (overrun,) = report.overruns
    assert overrun.event == "e" and "too few arrivals" in overrun.why
