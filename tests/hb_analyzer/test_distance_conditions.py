"""The distance form agrees with unrolling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hb_analyzer.conditions import Pair, atoms_by_buffer
from hb_analyzer.distance_conditions import DistanceDecision, decide_by_distance
from hb_analyzer.model import (
    Access,
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
from hb_analyzer.single_loop import OutOfClassError
from hb_analyzer.sweep import Sweep, sweep
from hb_analyzer.trips import domain_of
from tests.hb_analyzer.programs import attention, gemm, ring
from tests.hb_analyzer.random_programs import ordered_program, pipelined_program, single_loop_program


def unrolled(program: Program) -> tuple[Sweep, set[str]]:
    """What unrolling at one and more iterations finds, and the events that must be silent for it."""
    names = sorted(buffer.name for buffer in program.buffers)
    targets = {*combinations(names, 2), *((name, name) for name in names)}
    silent: set[str] = set()
    while True:
        found, arrivals = sweep(domain_of(program), atoms_by_buffer(program), silent, targets)
        silent |= arrivals.keys()
        if not found.broken:
            return found, silent
        silent |= found.broken.keys()


def by_distance(program: Program, silent: set[str]) -> DistanceDecision | None:
    try:
        return decide_by_distance(program, silent, atoms_by_buffer(program), program.parameters[0].minimum)
    except OutOfClassError:
        return None


def refused(decision: DistanceDecision) -> set[Pair]:
    return {*decision.refused, *((name, name) for name in decision.races)}


def agree(program: Program) -> bool:
    """Asserts agreement; false if the program is outside the class of the distance form."""
    found, silent = unrolled(program)
    decision = by_distance(program, silent)
    if decision is None:
        return False
    assert decision.deadlock == bool(found.deadlocks)
    if not decision.deadlock:
        assert refused(decision) == {finding.pair for finding, _ in found.findings}
        assert not decision.broken
        assert decision.unawaited.keys() == found.unawaited.keys()
        assert decision.lapped <= {defect.event for defect in found.overruns}
    return True


GENERATORS = [single_loop_program, pipelined_program, ordered_program]


@pytest.mark.parametrize("generator", GENERATORS)
@given(random=st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_random_programs(generator: Callable[[Random], Program], random: Random) -> None:
    agree(generator(random))


@pytest.mark.parametrize("generator", GENERATORS)
def test_most_random_programs_are_in_the_class(generator: Callable[[Random], Program]) -> None:
    """Guards the test above against generators that drift out of the class."""
    assert sum(agree(generator(Random(seed))) for seed in range(60)) >= 30


@pytest.mark.slow
@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("block", range(10))
def test_many_random_programs(generator: Callable[[Random], Program], block: int) -> None:
    for seed in range(block * 500, block * 500 + 500):
        agree(generator(Random(seed)))


KERNELS: list[Callable[[], Program]] = [
    lambda: gemm(stages=1),
    lambda: gemm(stages=4, pending=1),
    lambda: gemm(3, 3),
    lambda: gemm(3, 3, barrier=True),
    lambda: attention(3, 2),
    lambda: attention(2, 2, barrier=True),
]


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels(kernel: Callable[[], Program]) -> None:
    assert agree(replace(kernel(), parameters=(Parameter("N", 1),)))


def one_role(*statements: Statement, slots: int = 1) -> DistanceDecision:
    buffers = (Buffer("A", 64 * slots, slots=slots), Buffer("B", 64))
    program = Program("p", buffers, (), (Role("r", statements),), (Parameter("N"),))
    return decide_by_distance(program, (), atoms_by_buffer(program))


def test_a_value_carried_to_the_next_iteration_is_clobbered() -> None:
    body = (Access("A", "r"), Access("A", "w"), Access("B", "w"))
    decision = one_role(Access("A", "w"), Loop("i", Name("N"), body))
    assert decision.refused["A", "B"][0] == "clobber"
    body = (Access("A", "w"), Access("A", "r"), Access("B", "w"))
    assert not one_role(Access("A", "w"), Loop("i", Name("N"), body)).refused


def test_slots_decide_which_write_restores_a_value() -> None:
    write, read = Access("A", "w", ring("i", 3)), Access("A", "r", ring("i", 3, 1))
    # Read two iterations after it was written; B is written in between.
    decision = one_role(Loop("i", Name("N"), (Access("B", "w"), write, read)), slots=3)
    assert decision.refused["A", "B"][0] == "clobber"
    decision = one_role(Loop("i", Name("N"), (Access("B", "w"), write, Access("A", "r", ring("i", 3)))), slots=3)
    assert not decision.refused


def test_running_slots_before_and_after_the_loop() -> None:
    loop = Loop("i", Name("N"), (Access("A", "w", ring("i", 3)),))
    # Slot N − 1 is written again after B, slot N is not.
    restored = (loop, Access("B", "w"), Access("A", "w", ring("N", 3, 2)))
    assert not one_role(*restored, Access("A", "r", ring("N", 3, 2)), slots=3).refused
    assert one_role(*restored, Access("A", "r", ring("N", 3)), slots=3).refused
    with pytest.raises(OutOfClassError, match="running and by constant slots"):
        one_role(loop, Access("A", "r"), slots=3)


def test_a_slot_filled_before_the_loop_is_restored_only_where_the_loop_writes_it_again() -> None:
    fill, spoil = Access("A", "w", Const(2)), Access("B", "w")
    again = Loop("i", Name("N"), (Access("A", "w", ring("i", 3)), Access("A", "r", ring("i", 3))))
    assert not one_role(fill, spoil, again, slots=3).refused
    ahead = Loop("i", Name("N"), (Access("A", "r", ring("i", 3)), Access("A", "w", ring("i", 3))))
    assert one_role(fill, spoil, ahead, slots=3).refused


def test_the_least_trip_count_counts_between_prologue_and_epilogue() -> None:
    prologue = (Trigger("e", Const(0)), Access("A", "w"), Trigger("e", Const(1)))
    giver = (*prologue, Loop("i", Name("N"), (Trigger("e", ring("i", 2)),)))
    taker = (Loop("i", Name("N"), (Wait("e", ring("i", 2)),)), Access("B", "w"))
    program = Program(
        "p", (Buffer("A", 8), Buffer("B", 8)), (Event("e", 2),), (Role("g", giver), Role("t", taker)), (Parameter("N"),)
    )
    atoms = atoms_by_buffer(program)
    assert decide_by_distance(program, (), atoms, 1).refused
    assert not decide_by_distance(program, (), atoms, 2).refused
