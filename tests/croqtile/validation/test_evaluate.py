"""Evaluation of PTX instructions: exact, or unknown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croqtile.validation.evaluate import Evaluator
from croqtile.validation.values import (
    UNKNOWN,
    Bounds,
    Count,
    Lanes,
    Launch,
    Question,
    Rest,
    Shared,
    Trip,
    Undetermined,
    Value,
    decide,
    refine,
)

SIZES = (64, 100, 700, 4096)
TRIPS = tuple(-(-size // 64) for size in SIZES)
OPEN = {"n": Bounds(1)}


def run(opcode: str, *args: Value, bounds: dict[str, Bounds] | None = None) -> Value:
    return Evaluator(12, {"n": TRIPS}, 4).apply(opcode, args, bounds or OPEN)


def test_integers_wrap_and_have_signs() -> None:
    assert run("add.s32", 0xFFFFFFFF, 2) == 1
    assert run("shr.s32", -8 & 0xFFFFFFFF, 1) == -4 & 0xFFFFFFFF
    assert run("shr.u32", -8 & 0xFFFFFFFF, 31) == 1
    assert run("mul.wide.u32", 0xFFFFFFFF, 2) == 0x1FFFFFFFE
    assert run("mul.hi.s32", 10, 1431655766) == 3
    assert run("div.s32", -7 & 0xFFFFFFFF, 2) == -3 & 0xFFFFFFFF
    assert run("rem.s32", -7 & 0xFFFFFFFF, 2) == -1 & 0xFFFFFFFF
    assert run("setp.lt.s32", -1 & 0xFFFFFFFF, 0) == 1 and run("setp.lt.u32", -1 & 0xFFFFFFFF, 0) == 0
    assert run("selp.b32", 5, 6, 0) == 6
    assert run("div.s32", 1, 0) is UNKNOWN and run("prmt.b32", 1, 2, 3) is UNKNOWN and run("add.f32", 1, 2) is UNKNOWN


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


def test_lanes() -> None:
    threads = Lanes(tuple(range(128)))
    assert run("and.b32", threads, 0) == 0
    assert run("setp.ne.s32", threads, 0) == Lanes((0, *[1] * 127))
    assert run("add.s32", threads, UNKNOWN) is UNKNOWN


def test_launch_values_become_trip_counts() -> None:
    size = Launch(SIZES)
    rounded = run("add.s32", size, 63)
    assert run("shr.s32", rounded, 6) == Trip("n")
    assert run("add.s32", run("shr.s32", rounded, 6), -2 & 0xFFFFFFFF) == Trip("n", -2)
    assert run("shl.b32", Trip("n"), 6) == Launch(tuple(64 * trip for trip in TRIPS))
    assert run("setp.gt.s32", size, 0) == 1
    assert run("setp.gt.s32", size, 64) is UNKNOWN


def test_comparisons_with_trip_counts() -> None:
    assert run("setp.lt.s32", 0, Trip("n")) == 1
    assert run("setp.lt.s32", 1, Trip("n")) == Question("gt", "n", 1, False)
    assert run("setp.ge.s32", Trip("n", -1), 3) == Question("ge", "n", 4, False)
    shifted = {"n": Bounds(3, 3, shifted=True)}
    assert run("setp.lt.s32", 3, Trip("n"), bounds=shifted) == Question("gt", "n", 3, False)  # n may be greater
    assert run("setp.lt.s32", Count(3), Trip("n"), bounds=shifted) == 0
    assert run("setp.eq.s32", Rest("n", -3), 0, bounds=shifted) == 1
    assert run("setp.lt.u32", Trip("n", -5), 2) is UNKNOWN  # may be negative


def test_residues() -> None:
    known = {"n": Bounds(5, None, modulus=6, residue=5)}
    assert run("and.b32", Trip("n"), 1, bounds=known) == 1
    assert run("rem.s32", Trip("n", 2), 3, bounds=known) == 1
    assert run("sub.s32", Trip("n"), run("and.b32", Trip("n"), -2 & 0xFFFFFFFF, bounds=known)) == 1
    with pytest.raises(Undetermined):
        run("and.b32", Trip("n"), 1)
    assert run("and.b32", Count(7), 3) == 3
    assert run("and.b32", Count(7), 7) is UNKNOWN  # 8 does not divide the modulus


def test_division_by_reciprocals() -> None:
    known = {"n": Bounds(7, 7)}
    third = run("shr.u64", run("mul.wide.u32", Trip("n"), 0xAAAAAAAB, bounds=known), 33, bounds=known)
    assert run("sub.s32", Trip("n"), run("mul.lo.s32", third, 3, bounds=known), bounds=known) == 1
    high = run("mul.hi.s32", Trip("n"), 1431655766, bounds=known)
    assert run("sub.s32", Trip("n"), run("mul.lo.s32", high, 3, bounds=known), bounds=known) == 1
    other = run("mul.hi.s32", Trip("n"), 1431655000, bounds=known)  # the reciprocal of nothing
    assert run("mul.lo.s32", other, 3, bounds=known) == Launch(tuple(trip * 1431655000 // 2**32 * 3 for trip in TRIPS))


@given(
    st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne"]),
    st.integers(0, 12),
    st.none() | st.integers(0, 12),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(-2, 14),
)
def test_bounds(test: str, low: int, extra: int | None, modulus: int, residue: int, number: int) -> None:
    """Decisions hold for every value within the bounds, and refinement loses none."""
    bounds = Bounds(low, None if extra is None else low + extra, modulus=modulus, residue=residue % modulus).narrowed()
    values = [v for v in range(low, 60) if v % modulus == residue % modulus and (extra is None or v <= low + extra)]
    truth = {"lt": int.__lt__, "le": int.__le__, "gt": int.__gt__, "ge": int.__ge__, "eq": int.__eq__, "ne": int.__ne__}
    holds = [truth[test](value, number) for value in values]
    answer = decide(test, bounds, number)
    if isinstance(answer, int):
        assert all(h == bool(answer) for h in holds)
    for side in (True, False):
        after = refine(test, bounds, number, side)
        for value, hold in zip(values, holds, strict=True):
            if hold == side:
                assert after.low <= value and (after.high is None or value <= after.high)
