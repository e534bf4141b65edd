"""Exhaustive exploration: complete, and much smaller than all interleavings."""

from __future__ import annotations

from random import Random

import pytest

from hb_analyzer.simulator.code import Code, compile_program
from hb_analyzer.simulator.explore import explore
from hb_analyzer.simulator.generate import straight
from hb_analyzer.simulator.layout import Layout, everything, nothing
from hb_analyzer.simulator.machine import Machine
from hb_analyzer.simulator.witness import replay, run
from tests.hb_analyzer.programs import attention, gemm


def brute_force(code: Code, layout: Layout, limit: int = 60_000) -> set[object] | None:
    """Every state, every transition, no reduction; None if there are too many."""
    found: set[object] = set()
    seen: set[object] = set()
    stack = [Machine(code, layout)]
    while stack:
        machine = stack.pop()
        if machine.state() in seen:
            found |= machine.findings.keys()
            continue
        seen.add(machine.state())
        if len(seen) > limit:
            return None
        enabled = machine.enabled()
        if not enabled:
            machine.finish()
        found |= machine.findings.keys()
        for process in enabled:
            child = machine.copy()
            child.step(process)
            stack.append(child)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_the_reduction_loses_nothing(seed: int) -> None:
    """Deadlocks after an overrun are not compared: which of the two a run counts depends on its order."""
    code = compile_program(straight(Random(seed)), {})
    layout = Layout(code, everything)
    expected = brute_force(code, layout)
    if expected is None:
        return
    found = explore(code, layout)
    assert found.complete
    assert found.findings.keys() == expected


@pytest.mark.parametrize("seed", range(40, 70))
def test_no_random_schedule_finds_more(seed: int) -> None:
    code = compile_program(straight(Random(seed)), {}, 1 + seed % 2)
    layout = Layout(code, everything)
    found = explore(code, layout, limit=20_000)
    if found.complete:
        for number in range(30):
            machine, _ = run(code, layout, Random(number))
            assert machine.findings.keys() <= found.findings.keys()


def test_every_finding_has_a_schedule_that_shows_it() -> None:
    code = compile_program(attention(2), {"N": 2})
    layout = Layout(code, everything)
    found = explore(code, layout)
    assert len(found.schedules) >= 3
    for key, schedule in found.schedules.items():
        finding, _ = replay(code, layout, schedule, key)
        assert finding is not None and finding.key == key


def test_sound_kernels_are_covered_completely() -> None:
    code = compile_program(gemm(2, 4, barrier=True), {"N": 3})
    found = explore(code, Layout(code, nothing))
    assert found.complete and not found.findings
    assert found.states < 2_000


def test_a_limit_is_said() -> None:
    code = compile_program(gemm(2, 2), {"N": 4})
    assert not explore(code, Layout(code, everything), limit=50).complete
