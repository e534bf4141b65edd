"""Operands, for the threads that walk together."""

from __future__ import annotations

import pytest

from croqtile.validation.events import Refusal
from croqtile.validation.operands import Constants, Operands
from croqtile.validation.values import UNKNOWN, Lanes, Map, Shared, Value
from tests.croqtile.validation.walking import prepared


def operands(threads: frozenset[int] = frozenset(range(128)), **registers: Value) -> Operands:
    named = {f"%{name}": value for name, value in registers.items()}
    return Operands(Constants(prepared("ret;"), 0), threads, named, {})


def test_texts() -> None:
    at = operands(r1=7)
    assert (at.operand("%r1"), at.operand("%r2"), at.operand("0x10U"), at.operand("-1")) == (7, UNKNOWN, 16, -1)
    assert at.operand("bars") == Shared("bars", 8) and at.operand("n") == Map(0) and at.operand("elsewhere") is UNKNOWN
    assert at.operand("%tid.x") == Lanes(tuple(range(128))) and at.operand("%tid.y") == 0


def test_places() -> None:
    at = operands(r1=Shared("memory", 1024, 64), r2=3)
    assert at.place("[%r1 + 8]", 5) == Shared("memory", 1024, 72) and at.place("[bars]", 5) == Shared("bars", 8)
    with pytest.raises(Refusal, match=r"the address \[%r2\] is not recovered \(3\)") as refusal:
        at.place("[%r2]", 5)
    assert refusal.value.line == 5
    with pytest.raises(Refusal, match="the operand %r3 is not recovered"):
        at.number("%r3", 5)
    with pytest.raises(Refusal, match="the tensor map"):
        at.map_of("[%r2, {%r7}]", 5)
    assert at.map_of("[n, {%r7}]", 5) == Map(0).parameter


def test_one_value_for_these_threads() -> None:
    lanes = Lanes((1, *[0] * 127))
    assert operands(frozenset((0,)), r1=lanes).number("%r1", 5) == 1
    with pytest.raises(Refusal, match="not recovered"):
        operands(r1=lanes).number("%r1", 5)


def test_footprints() -> None:
    each = Lanes(tuple(Shared("memory", 1024, 16 * thread) for thread in range(128)))
    assert operands(r1=each).footprint("[%r1]", 16, 32, 5) == (
        "memory",
        tuple(((1 << 512) - 1) << 512 * warp for warp in range(4)),
    )
    assert operands(r1=each).footprint("[%r1]", 16, 8, 5)[1][0] == (1 << 128) - 1  # the first 8 lanes
    assert operands(frozenset((33,)), r1=each).footprint("[%r1]", 4, 32, 5)[1] == (0, 15 << 528, 0, 0)
    mixed = Lanes((Shared("memory", 1024), *[Shared("bars", 8)] * 127))
    with pytest.raises(Refusal, match="is in bars and in memory"):
        operands(r1=mixed).footprint("[%r1]", 4, 32, 5)
    with pytest.raises(Refusal, match=r"not recovered \(unknown\)"):
        operands().footprint("[%r1]", 4, 32, 5)
