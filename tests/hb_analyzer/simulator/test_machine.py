"""Executions step by step: memory, events, barriers."""

from __future__ import annotations

from dataclasses import replace

from hb_analyzer.model import (
    Access,
    Barrier,
    Buffer,
    Commit,
    Const,
    Drain,
    Event,
    Program,
    Role,
    Statement,
    Trigger,
    Wait,
)
from hb_analyzer.simulator.code import compile_program
from hb_analyzer.simulator.explore import explore
from hb_analyzer.simulator.layout import Coincide, Layout, everything, nothing
from hb_analyzer.simulator.machine import Machine
from tests.hb_analyzer.programs import load

A_W, A_R, B_W, B_R = Access("A", "w"), Access("A", "r"), Access("B", "w"), Access("B", "r")
HALF, OTHER = ((0, 2),), ((2, 4),)


def program(*bodies: tuple[Statement, ...], events: tuple[Event, ...] = (Event("e"), Event("f"))) -> Program:
    roles = tuple(Role(f"r{i}", body) for i, body in enumerate(bodies))
    return Program("p", (Buffer("A", 64, shape=(4,)), Buffer("B", 64, shape=(4,))), events, roles)


def seen(source: Program, coincide: Coincide = everything, warps: int = 1) -> set[tuple[str, ...]]:
    """Everything that any execution shows."""
    code = compile_program(source, {}, warps)
    found = explore(code, Layout(code, coincide))
    assert found.complete
    return {(kind, *subject) for kind, subject in found.findings}


def test_unordered_accesses_conflict() -> None:
    assert seen(program((A_W,), (B_R,))) == {("conflict", "A", "B")}
    assert seen(program((A_R,), (B_R,))) == set()
    assert seen(program((A_W,), (B_W,)), nothing) == set()


def test_ordered_accesses_do_not() -> None:
    assert seen(program((A_W, Trigger("e")), (Wait("e"), B_W))) == set()
    meet = Barrier("b", ("r0", "r1"))
    assert seen(program((A_W, meet), (meet, B_W))) == set()


def test_a_value_that_is_written_over_is_lost() -> None:
    assert seen(program((A_W, B_W, A_R))) == {("clobber", "A", "B")}
    assert seen(program((A_W, A_R, B_W, B_R))) == set()
    assert seen(program((A_W, B_W, A_W, A_R))) == set()
    assert seen(program((B_W, A_R))) == set()  # nobody wrote what it reads


def test_a_value_is_replaced_byte_by_byte() -> None:
    halves = (Access("A", "w", region=HALF), Access("A", "w", region=OTHER))
    assert seen(program((A_W, B_W, *halves, A_R))) == set()
    assert seen(program((A_W, B_W, halves[0], A_R))) == {("clobber", "A", "B")}
    assert seen(program((A_W, B_W, Access("A", "w", region=None), A_R))) == {("clobber", "A", "B")}


def test_a_copy_is_under_way_until_its_event() -> None:
    copy = load("A", "e", Const(0))
    assert seen(program((copy, Trigger("e"), B_W))) == {("conflict", "A", "B"), ("unawaited", "A")}
    assert seen(program((copy, Trigger("e"), Wait("e"), A_R, B_W))) == set()
    assert seen(program((copy, Trigger("f"), Wait("f"), B_W))) == {("conflict", "A", "B"), ("unawaited", "A")}


def test_a_matrix_instruction_is_under_way_until_its_drain() -> None:
    mma = replace(A_R, ends="group", proxy="async")
    assert seen(program((mma, Commit(), B_W))) == {("conflict", "A", "B")}
    assert seen(program((mma, Commit(), Drain(1), B_W))) == {("conflict", "A", "B")}
    assert seen(program((mma, Commit(), Drain(0), B_W))) == set()
    assert seen(program((mma, Drain(0), B_W))) == {("conflict", "A", "B")}


def test_what_nobody_awaits_never_ends() -> None:
    copy_out = replace(A_R, ends="never", proxy="async")
    assert seen(program((copy_out, B_W))) == {("conflict", "A", "B"), ("unawaited", "A")}


def test_the_last_thread_may_end_before_a_copy_has_landed() -> None:
    copy = load("A", "e", Const(0))
    assert seen(program((copy, Trigger("e")), (A_W,)), nothing) == {("race", "A"), ("unawaited", "A")}
    assert seen(program((copy, Trigger("e")), (B_W,)), nothing) == {("unawaited", "A")}
    assert seen(program((copy, Trigger("e")), (Wait("e"),))) == set(), "one role's wait is enough"
    again = program((copy, Trigger("e"), copy, Trigger("e")), (Wait("e"), Wait("e")))
    assert ("unawaited", "A") not in seen(again, nothing)


def test_a_write_without_fence_and_the_asynchronous_proxy() -> None:
    write, awaited = replace(A_W, fenced=False), (Trigger("e"), Wait("e"))
    copy_out = Access("A", "r", proxy="async")
    assert seen(program((write, copy_out))) == {("race", "A")}
    assert seen(program((write, A_R))) == set()
    assert seen(program((write, load("B", "e", Const(0)), *awaited))) == {("conflict", "A", "B")}


def test_races_inside_a_buffer() -> None:
    assert seen(program((A_W,), (A_R,)), nothing) == {("race", "A")}
    assert seen(program((Access("A", "w", region=HALF),), (Access("A", "w", region=OTHER),)), nothing) == set()


def test_deadlocks() -> None:
    assert seen(program((Wait("e"), Trigger("f")), (Wait("f"), Trigger("e")))) == {("deadlock", "r0", "r1")}
    assert seen(program((Barrier("b", ("r0", "r1")),), ())) == {("deadlock", "r0")}


def test_arrivals_have_no_name() -> None:
    """Two arrivals of one role complete a phase that needs two."""
    source = program((Trigger("e"), Trigger("e")), (A_W, Trigger("e")), (Wait("e"), B_W), events=(Event("e", 1, 2),))
    assert {("overrun", "e"), ("conflict", "A", "B")} <= seen(source)


def test_a_waiter_is_lapped() -> None:
    assert ("overrun", "e") in seen(program((Trigger("e"), Trigger("e")), (Wait("e"),)))
    assert seen(program((Trigger("e"), Wait("f"), Trigger("e")), (Wait("e"), Trigger("f"), Wait("e")))) == set()


def test_a_copy_whose_bytes_the_phase_does_not_expect() -> None:
    copy = load("A", "e", Const(0))
    source = program((copy, Trigger("e"), copy), (Trigger("e"),), (Wait("e"),), events=(Event("e", 1, 2),))
    assert ("overrun", "e") in seen(source)


def test_bytes_of_a_role_that_never_triggers_are_meant_for_no_phase() -> None:
    source = program((load("A", "e", Const(0)),), (Trigger("e"),))
    assert seen(source) == {("unawaited", "A")}


def test_one_warp_ahead() -> None:
    """Warps wait for their own part of a matrix group; they meet before any of them overwrites what it reads."""
    mma = replace(A_R, ends="group", proxy="async")
    assert seen(program((A_W, mma, Commit(), Drain(0), B_W)), warps=2) == set()
    # The first warp stores while the second one still reads, unless they meet in between.
    code = compile_program(program((mma, Commit(), Drain(0), B_W)), {}, warps=2)
    meetings = [i for i in code.threads[0].code if i.op.__class__ is Barrier]
    assert len(meetings) == 1


def test_a_copy_of_a_machine_goes_its_own_way() -> None:
    code = compile_program(program((A_W,), (B_R,)), {})
    machine = Machine(code, Layout(code, everything))
    machine.step(0)
    other = machine.copy()
    other.step(1)
    assert other.findings and not machine.findings
    assert machine.state() != other.state()
