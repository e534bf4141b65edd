"""Evaluation of single instructions, for tests."""

from __future__ import annotations

from croqtile.validation.evaluate import Evaluator
from croqtile.validation.values import Bounds, Value

SIZES = (64, 100, 700, 4096)
TRIPS = tuple(-(-size // 64) for size in SIZES)
OPEN = {"n": Bounds(1)}


def run(opcode: str, *args: Value, bounds: dict[str, Bounds] | None = None) -> Value:
    return Evaluator(12, {"n": TRIPS}, 4).apply(opcode, args, bounds or OPEN)
