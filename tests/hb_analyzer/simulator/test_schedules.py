"""Schedules: all of them run to the end, and together they find what is there."""

from __future__ import annotations

from random import Random

import pytest

from hb_analyzer.simulator.code import compile_program
from hb_analyzer.simulator.layout import Layout, everything
from hb_analyzer.simulator.machine import Machine
from hb_analyzer.simulator.schedules import Schedule, delay_access, draw, favour, paced, priorities
from tests.hb_analyzer.programs import attention, gemm, persistent_gemm

KINDS = {
    "any": draw,
    "paced": paced,
    "priorities": priorities,
    "delay": lambda machine, random: favour(random, 0, ahead=False),
    "ahead": lambda machine, random: favour(random, 1, ahead=True),
    "access": delay_access,
}


def machine_of(seed: int) -> Machine:
    program, values = ((gemm(2, 2), {"N": 4}), (attention(2), {"N": 3}), (persistent_gemm(2), {"T": 2, "N": 3}))[
        seed % 3
    ]
    code = compile_program(program, values, 1 + seed % 2)
    return Machine(code, Layout(code, everything))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_every_schedule_ends(kind: str, seed: int) -> None:
    machine = machine_of(seed)
    choose: Schedule = KINDS[kind](machine, Random(seed))  # type: ignore[operator]
    while enabled := machine.enabled():
        process = choose(machine, enabled)
        assert process in enabled
        machine.step(process)
    assert machine.at == machine.lengths
    assert not machine.flying


def test_a_delayed_access_meets_what_nothing_orders() -> None:
    """With one access held up in each execution, a few executions show all conflicts."""
    found = set()
    for seed in range(40):
        code = compile_program(gemm(2, 2), {"N": 3})
        machine = Machine(code, Layout(code, everything))
        choose = delay_access(machine, Random(seed))
        while enabled := machine.enabled():
            machine.step(choose(machine, enabled))
        found |= {subject for kind, subject in machine.findings if kind == "conflict"}
    assert found == {("lhs", "out"), ("lhs", "rhs"), ("out", "rhs")}
