"""Arithmetic on trip counts and counters."""

from __future__ import annotations

import pytest

from croqtile.validation.values import UNKNOWN, Bounds, Count, Launch, Question, Rest, Trip, Undetermined
from tests.croqtile.validation.evaluating import TRIPS, run


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
