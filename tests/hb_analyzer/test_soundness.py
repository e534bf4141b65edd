"""What the engine accepts, no schedule breaks; and more synchronisation never costs a verdict."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hb_analyzer.decide import Decision, decide
from hb_analyzer.model import Program
from tests.hb_analyzer.oracle import Observed, observe
from tests.hb_analyzer.programs import attention, gemm, persistent_gemm
from tests.hb_analyzer.random_programs import (
    irregular_program,
    nested_program,
    single_loop_program,
    synchronisations,
    without,
)


def check(program: Program, random: Random, schedules: int = 8) -> tuple[Decision, Observed]:
    """Runs ``program`` at small trip counts; what is observed must have been refused or reported."""
    decision = decide(program)
    total = Observed()
    for _ in range(4):
        values = {
            p.name: min(p.minimum + random.randint(0, 5), p.maximum if p.maximum is not None else 99)
            for p in program.parameters
        }
        seen = observe(program, values, random, schedules)
        assert seen.pairs <= decision.refused.keys(), values
        if seen.stuck and not decision.silent:
            assert decision.deadlocks, values
        if not decision.deadlocks:
            assert seen.races <= {name for name, _ in decision.races}, values
        total.pairs |= seen.pairs
        total.races |= seen.races
    return decision, total


@given(st.randoms(use_true_random=False), st.integers(0, 1 << 32))
@settings(max_examples=120, deadline=None)
def test_random_single_loops(random: Random, schedules: int) -> None:
    check(single_loop_program(random, minimum=random.randint(0, 1)), Random(schedules))


@given(st.randoms(use_true_random=False), st.integers(0, 1 << 32))
@settings(max_examples=60, deadline=None)
def test_random_persistent_kernels(random: Random, schedules: int) -> None:
    check(nested_program(random), Random(schedules))


@given(st.randoms(use_true_random=False), st.integers(0, 1 << 32))
@settings(max_examples=100, deadline=None)
def test_random_irregular_loops(random: Random, schedules: int) -> None:
    check(irregular_program(random), Random(schedules))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_many_random_programs(block: int) -> None:
    for seed in range(block * 100, block * 100 + 100):
        random = Random(seed)
        check(single_loop_program(random, minimum=0), random)
        check(nested_program(random), random)
        check(irregular_program(random), random)


@pytest.mark.parametrize(
    ("program", "broken"),
    [
        (gemm(2, 2), {("lhs", "out"), ("out", "rhs"), ("lhs", "rhs")}),
        (gemm(2, 2, barrier=True), {("lhs", "rhs")}),
        (attention(2), {("kk", "q"), ("kk", "v"), ("q", "v")}),
        (persistent_gemm(2), {("lhs", "out"), ("out", "rhs"), ("lhs", "rhs")}),
        (persistent_gemm(2, epilogue_event=True), {("lhs", "rhs")}),
    ],
    ids=("gemm", "gemm-barrier", "attention", "persistent", "persistent-guarded"),
)
def test_the_oracle_sees_every_refusal_of_the_kernels(program: Program, broken: set[tuple[str, str]]) -> None:
    """The schedules are strong enough: each refused pair of the standard kernels is seen to break."""
    decision, seen = check(program, Random(1), schedules=60)
    assert seen.pairs == decision.refused.keys() == broken


@given(st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_removing_a_wait_or_drain_never_turns_no_into_yes(random: Random) -> None:
    program = single_loop_program(random, damage=random.random() < 0.5)
    places = synchronisations(program)
    if not places:
        return
    before = decide(program)
    after = decide(without(program, random.choice(places)))
    # A program that deadlocks is refused for that; fewer waits may cure it.
    if not before.deadlocks and not after.deadlocks:
        assert before.refused.keys() <= after.refused.keys()
        assert before.races.keys() <= after.races.keys()
