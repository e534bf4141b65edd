"""Arithmetic on addresses whose base is not known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from croqtile.validation.values import UNKNOWN, Shared
from tests.croqtile.validation.evaluating import run


@given(
    st.integers(0, 227), st.integers(0, 1023), st.integers(0, 1023), st.sampled_from(["and.b32", "or.b32", "xor.b32"])
)
def test_addresses_hold_for_every_base(base: int, offset: int, mask: int, opcode: str) -> None:
    """Whatever the base is, arithmetic on its symbol gives what arithmetic on its number gives."""
    place = Shared("memory", 1024, offset + 2048)
    for number in (mask, 0x3FC00 | mask, 0x3FFFF):
        symbolic, concrete = run(opcode, place, number), run(opcode, base * 1024 + offset + 2048, number)
        if isinstance(symbolic, Shared):
            assert base * 1024 + symbolic.offset == concrete
        elif symbolic is not UNKNOWN:
            assert symbolic == concrete


def test_rounding_the_base_up() -> None:
    up = run("and.b32", run("add.s32", Shared("memory", 128), 1023), -1024 & 0xFFFFFFFF)
    assert up == Shared("up(memory, 1024)", 1024)
    assert run("and.b32", Shared("memory", 128, 512), -1024 & 0xFFFFFFFF) is UNKNOWN


def test_matrix_descriptors() -> None:
    place = Shared("memory", 1024, 8192)
    shifted = run("shr.u32", run("and.b32", place, 0x3FC00), 4)
    assert shifted == Shared("memory", 1024, 512, 4)
    high = 1 << 62 | 64 << 32 | 1 << 16
    assert run("or.b64", run("cvt.u64.u32", shifted), high + 2) == Shared("memory", 1024, 512 + 2 + high, 4)
    assert run("or.b64", shifted, high + 64) is UNKNOWN  # a bit that the base may have, too
