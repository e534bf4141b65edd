"""The kernel IR as text: whole programs, after check and after lower, and single expressions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from croqtile import ir
from croqtile.irprint import expression, print_kernel
from tests.croqtile.tile import GEMM, SOFTMAX, checked, lowered

Golden = Callable[[str], None]


@pytest.mark.parametrize("program", [GEMM, SOFTMAX], ids=["gemm", "softmax"])
def test_checked(tmp_path: Path, golden: Golden, program: str) -> None:
    golden(print_kernel(checked(tmp_path, program)))


@pytest.mark.parametrize("program", [GEMM, SOFTMAX], ids=["gemm", "softmax"])
def test_lowered(tmp_path: Path, golden: Golden, program: str) -> None:
    golden(print_kernel(lowered(tmp_path, program)))


A, B = (ir.Var(ir.Symbol(name, ir.SymbolKind.VALUE, name)) for name in "ab")
ONE = ir.IntLit(1)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (ir.Binary("-", A, ir.Binary("-", B, ONE)), "a - (b - 1)"),
        (ir.Binary("-", ir.Binary("-", A, B), ONE), "a - b - 1"),
        (ir.Binary("*", ir.Binary("+", A, B), ONE), "(a + b) * 1"),
        (ir.Binary("/", A, ir.Binary("*", B, ONE)), "a / (b * 1)"),
        (ir.Binary("+", A, ir.IntLit(-1)), "a + (-1)"),
        (ir.Unary("-", ir.Binary("+", A, B)), "-(a + b)"),
        (ir.Unary("!", A), "!a"),
        (ir.Binary("&&", ir.Binary("<", A, B), ir.Binary("==", A, ONE)), "a < b && a == 1"),
        (ir.Binary("+", ir.Select(A, B, ONE), ONE), "(a ? b : 1) + 1"),
        (ir.Select(A, ir.FloatLit("-inf"), B), "a ? -inf : b"),
        (ir.Intrinsic("__to", (A,), ir.Elem.BF16), "__to<bf16>(a)"),
        (ir.Intrinsic("cdiv", (A, B)), "cdiv(a, b)"),
    ],
)
def test_expressions(expr: ir.Expr, text: str) -> None:
    assert expression(expr) == text
