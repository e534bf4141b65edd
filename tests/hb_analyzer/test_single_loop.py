"""The normal form of single-loop programs."""

from __future__ import annotations

import pytest

from hb_analyzer.model import (
    Access,
    Barrier,
    BinOp,
    Buffer,
    Const,
    Event,
    If,
    IntExpr,
    Loop,
    Name,
    Parameter,
    Program,
    Role,
    Statement,
    Step,
    Trigger,
    Wait,
)
from hb_analyzer.single_loop import LOOP, POST, PRE, OutOfClassError, Slot, Trip, common_trip, single_loop
from tests.hb_analyzer.programs import gemm, persistent_gemm, ring


def program(*bodies: tuple[Statement, ...]) -> Program:
    roles = tuple(Role(f"r{i}", body) for i, body in enumerate(bodies))
    return Program("p", (Buffer("A", 64, slots=4),), (Event("e"), Event("f")), roles, (Parameter("N"),))


def loop(*body: Statement) -> Loop:
    return Loop("i", Name("N"), body)


def slot_of(expr: IntExpr, *steps: Statement) -> Slot:
    (role,) = single_loop(program((loop(Access("A", "w", expr), *steps),)))
    return role.parts[LOOP][0].slot


def test_segments() -> None:
    producer, consumer = single_loop(gemm(stages=3))
    assert [len(part) for part in producer.parts] == [0, 4, 0]
    assert [len(part) for part in consumer.parts] == [3, 6, 3]
    assert [placed.segment for placed in consumer.all()] == [PRE] * 3 + [LOOP] * 6 + [POST] * 3
    assert [placed.event_slot for placed in consumer.parts[PRE]] == [Slot(0), Slot(1), Slot(2)]


def test_slots() -> None:
    assert slot_of(Const(3)) == Slot(3)
    assert slot_of(ring("i", 4)) == Slot(0, ring=True)
    assert slot_of(ring("i", 4, 3)) == Slot(3, ring=True)
    assert slot_of(BinOp("%", BinOp("-", Name("i"), Const(1)), Const(4))) == Slot(3, ring=True)
    assert slot_of(ring("c", 4), Step("c")) == Slot(0, ring=True)
    assert slot_of(ring("c", 4), Step("c", 5)) == Slot(0, ring=True)
    assert slot_of(ring("c", 4), Step("c", 4)) == Slot(0)


def test_counters_that_step_before_the_loop_and_within_an_iteration() -> None:
    body = (Step("c", 2), loop(Step("c"), Access("A", "w", ring("c", 4))))
    (role,) = single_loop(program(body))
    assert role.parts[LOOP][0].slot == Slot(3, ring=True)


@pytest.mark.parametrize(
    ("bodies", "reason"),
    [
        (((Access("A", "w"),),), "no loop of variable count"),
        (((loop(), loop()),), "a second loop"),
        (((Loop("i", BinOp("*", Name("N"), Const(2)), ()),),), "the trip count (N * 2)"),
        (((Loop("i", Name("M"), ()),),), "the trip count M"),
        (((Access("A", "w", Name("N")), loop()),), "depends on the trip count"),
        (((loop(If(Name("i"), ())),),), "a condition"),
        (((loop(Loop("j", Const(2), ())),),), "a nested loop"),
        (((loop(Access("A", "w", ring("i", 2))),),), "is not (i + c) mod 4"),
        (((loop(Access("A", "w", BinOp("%", BinOp("*", Name("i"), Const(2)), Const(4)))),),), "not linear"),
        (((loop(), Access("A", "w", Name("i"))),), "depends on the trip count"),
    ],
)
def test_outside_the_class(bodies: tuple[tuple[Statement, ...], ...], reason: str) -> None:
    with pytest.raises(OutOfClassError) as caught:
        single_loop(program(*bodies))
    assert reason in str(caught.value)


def test_slots_after_the_loop_count_from_its_end() -> None:
    after = (Access("A", "w", ring("c", 4, 1)), Access("A", "w", ring("N", 4, 2)))
    (role,) = single_loop(program((loop(Step("c")), *after)))
    assert [placed.slot for placed in role.parts[POST]] == [Slot(1, ring=True), Slot(2, ring=True)]


def test_longer_loops_have_their_first_iterations_laid_out() -> None:
    shorter = Loop("i", BinOp("-", Name("N"), Const(1)), (Access("A", "r", ring("i", 4)),))
    source = program((loop(Access("A", "w", ring("i", 4)), Step("c")), Access("A", "r", ring("c", 4))), (shorter,))
    assert common_trip(source) == Trip("N", -1)
    producer, consumer = single_loop(source)
    assert [placed.slot for placed in producer.all()] == [Slot(0), Slot(1, ring=True), Slot(1, ring=True)]
    assert [placed.slot for placed in consumer.all()] == [Slot(0, ring=True)]
    # M = N − 1: slot N − 1 after the loop is slot M.
    after = program((loop(),), (shorter, Access("A", "r", BinOp("%", BinOp("-", Name("N"), Const(1)), Const(4)))))
    assert single_loop(after)[1].parts[POST][0].slot == Slot(0, ring=True)


def test_nested_kernels_are_outside() -> None:
    with pytest.raises(OutOfClassError):
        single_loop(persistent_gemm())


def test_constant_loops_around_the_main_one_are_laid_out() -> None:
    (role,) = single_loop(program((Loop("s", Const(4), (Access("A", "w", Name("s")),)), loop())))
    assert [placed.slot for placed in role.parts[PRE]] == [Slot(s) for s in range(4)]


def test_roles_without_a_loop_are_split_where_they_wait_for_epilogues() -> None:
    meet = Barrier("b", ("r0", "r1"))
    early_and_late = (Wait("e"), Trigger("e"), meet, Access("A", "r"))
    _, other = single_loop(program((loop(), meet), early_and_late))
    assert [len(part) for part in other.parts] == [2, 0, 2]
    _, other = single_loop(program((loop(), Trigger("f")), (Trigger("e"), Wait("f"), Access("A", "r"))))
    assert [len(part) for part in other.parts] == [1, 0, 2]
    _, third = single_loop(program((Wait("e"), loop()), (Trigger("e"), Access("A", "r"))))
    assert [len(part) for part in third.parts] == [2, 0, 0]
