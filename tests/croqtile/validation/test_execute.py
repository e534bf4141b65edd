"""What single instructions make of registers."""

from __future__ import annotations

from croqtile.validation.execute import Executor
from croqtile.validation.state import State
from croqtile.validation.values import UNKNOWN, Bounds, Launch, Trip, Value
from tests.croqtile.validation.walking import prepared

ALL = frozenset(range(128))


def last(body: str, diverged: bool = False) -> Value:
    """What %r9 holds after the body, which needs no branches."""
    program = prepared(body + " bar.sync %r9; ret;")
    executor = Executor(program, 1, ALL)
    state: State[None] = State(0, {}, {"n": Bounds(1)}, None, diverged)
    for position, instruction in enumerate(program.entry.instructions[:-2]):
        state.position = position
        if program.effects[position].pure:
            executor.compute(state, instruction)
        else:
            assert executor.execute(state, instruction) is None
    return state.registers["%r9"]


def test_special_registers() -> None:
    assert last("mov.u32 %r1, %tid.x; shr.u32 %r9, %r1, 7;") == 1
    assert last("mov.u32 %r1, %laneid; and.b32 %r9, %r1, 32;") == 0
    assert last("mov.u32 %r1, %ntid.x; mov.u32 %r9, %r1;") == 128
    assert last("mov.u32 %r9, %clock;") is UNKNOWN


def test_parameters_of_the_kernel() -> None:
    assert last("ld.param.u32 %r9, [n];") == Trip("n")
    assert last("ld.param.u32 %r9, [other];") == Launch((7, 7, 7, 9))
    assert last("ld.param.u64 %r9, [n];") is UNKNOWN
    assert last("ld.param.v2.u32 {%r8, %r9}, [n];") is UNKNOWN
    assert last("ld.global.u32 %r9, [%rd1];") is UNKNOWN


def test_a_value_of_one_lane_for_its_warp() -> None:
    """Known while no branch has divided the threads."""
    body = "mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, {}; shfl.sync.idx.b32 %r9, %r2, 0, 31, -1;"
    assert last(body.format(7)) == 1
    assert last(body.format(5)) not in (1, UNKNOWN)  # the number of the warp
    assert last(body.format(7), diverged=True) is UNKNOWN
    assert last(body.format(7).replace("31", "15")) is UNKNOWN
    assert last(body.format(7).replace("idx", "bfly")) is UNKNOWN


def test_of_two_targets_neither_is_known() -> None:
    assert last("setp.eq.s32 %p1|%p2, 1, 1; selp.b32 %r9, 1, 2, %p1;") is UNKNOWN
