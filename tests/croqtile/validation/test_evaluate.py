"""Evaluation of PTX instructions: exact, or unknown."""

from __future__ import annotations

import pytest

from croqtile.validation.evaluate import Evaluator
from croqtile.validation.values import UNKNOWN, Bounds, Lanes, Launch, Trip
from tests.croqtile.validation.evaluating import OPEN, SIZES, TRIPS, run


def test_lanes() -> None:
    threads = Lanes(tuple(range(128)))
    assert run("and.b32", threads, 0) == 0
    assert run("setp.ne.s32", threads, 0) == Lanes((0, *[1] * 127))
    assert run("add.s32", threads, UNKNOWN) is UNKNOWN


def test_what_is_made_of_lanes_with_a_trip_count_depends_on_the_path() -> None:
    evaluator = Evaluator(12, {"n": TRIPS}, 4)
    first = Lanes((1, *[0] * 127))
    counts = evaluator.apply("selp.b32", (Trip("n"), 0, first), OPEN)
    assert counts == Lanes((Trip("n"), *[0] * 127))
    assert evaluator.apply("setp.lt.s32", (counts, 5), {"n": Bounds(6)}) == Lanes((0, *[1] * 127))
    assert evaluator.apply("setp.lt.s32", (counts, 5), {"n": Bounds(1, 2)}) == 1


@pytest.mark.parametrize("opcode", ["add.sat.s32", "min.relu.s16", "add.s16x2", "cvt.sat.u8.s32", "fma.rn.bf16x2"])
def test_instructions_with_other_rules_are_unknown(opcode: str) -> None:
    assert run(opcode, *[0x7FFFFFFF, 1, 1][: 1 if opcode.startswith("cvt") else 2]) is UNKNOWN


def test_launch_values_become_trip_counts() -> None:
    size = Launch(SIZES)
    rounded = run("add.s32", size, 63)
    assert run("shr.s32", rounded, 6) == Trip("n")
    assert run("add.s32", run("shr.s32", rounded, 6), -2 & 0xFFFFFFFF) == Trip("n", -2)
    assert run("shl.b32", Trip("n"), 6) == Launch(tuple(64 * trip for trip in TRIPS))
    assert run("setp.gt.s32", size, 0) == 1
    assert run("setp.gt.s32", size, 64) is UNKNOWN
