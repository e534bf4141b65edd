"""Inline-assembly wrappers of single matrix instructions."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from croqtile.emit.wgmma import Instruction, wrapper
from croqtile.ir import Elem


def test_operands_in_shared_memory(golden: Callable[[str], None]) -> None:
    golden(wrapper(Instruction(64, Elem.F16, Elem.F16, Elem.F16)))


def test_a_in_registers_b_transposed(golden: Callable[[str], None]) -> None:
    golden(wrapper(Instruction(32, Elem.BF16, Elem.BF16, Elem.F32, a_registers=True, b_transposed=True)))


def test_eight_bit_operands_have_no_transposition(golden: Callable[[str], None]) -> None:
    golden(wrapper(Instruction(16, Elem.E4M3, Elem.E5M2, Elem.F32)))


@pytest.mark.parametrize(
    ("n", "accumulator", "registers"),
    [(8, Elem.F32, 4), (128, Elem.F32, 64), (128, Elem.F16, 32), (256, Elem.F32, 128)],
)
def test_every_accumulator_register_is_an_operand(n: int, accumulator: Elem, registers: int) -> None:
    instruction = Instruction(n, Elem.F16, Elem.F16, accumulator)
    text = wrapper(instruction)
    assert instruction.registers == registers
    assert len(re.findall(r'"\+[rf]"', text)) == registers
    # The last accumulator register, then A, B and the predicate.
    places = sorted({int(place) for place in re.findall(r"%(\d+)", text)})
    assert places == list(range(registers + 3))


def test_names_tell_instructions_apart() -> None:
    variants = {
        Instruction(64, a, a, accumulator, in_registers, transposed)
        for a in (Elem.F16, Elem.BF16)
        for accumulator in (Elem.F16, Elem.F32)
        for in_registers in (False, True)
        for transposed in (False, True)
    }
    assert len({variant.name for variant in variants}) == len(variants)


def test_depth_is_32_bytes() -> None:
    assert Instruction(64, Elem.F16, Elem.F16, Elem.F32).k == 16
    assert Instruction(64, Elem.E4M3, Elem.E4M3, Elem.F32).k == 32
