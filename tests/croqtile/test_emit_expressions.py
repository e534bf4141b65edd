"""Scalar expressions as C++ text."""

from __future__ import annotations

import pytest
from builder import at, cdiv, dim, expr, lit, op

from croqtile import ir
from croqtile.emit.expressions import Printer, is_floating

X, Y, Z = (ir.Symbol(name, ir.SymbolKind.VALUE, name) for name in "xyz")
F = ir.Symbol("f", ir.SymbolKind.VALUE, "f", ctype="float")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (op(op(X, "+", Y), "*", Z), "(x + y) * z"),
        (op(X, "+", op(Y, "*", Z)), "x + y * z"),
        (op(op(X, "-", Y), "-", Z), "x - y - z"),
        (op(X, "-", op(Y, "-", Z)), "x - (y - z)"),
        (op(X, "/", op(Y, "*", Z)), "x / (y * z)"),
        (op(op(X, "/", Y), "*", Z), "x / y * z"),
        (op(op(X, "%", 4), "+", 1), "x % 4 + 1"),
        (op(op(X, "<", Y), "&&", op(Y, "<", Z)), "x < y && y < z"),
        (op(op(X, "&&", Y), "||", Z), "(x && y) || z"),
        (op(op(X, "<", Y), "==", Z), "x < y == z"),
        (ir.Unary("-", op(X, "+", Y)), "-(x + y)"),
        (ir.Unary("!", op(X, "<", Y)), "!(x < y)"),
        (op(X, "-", lit(-3)), "x - -3"),
        (ir.Select(op(X, "<", Y), expr(X), op(Y, "+", 1)), "x < y ? x : y + 1"),
        (op(ir.Select(expr(X), expr(Y), expr(Z)), "*", 2), "(x ? y : z) * 2"),
        (ir.Select(expr(X), ir.Select(expr(Y), lit(1), lit(2)), expr(Z)), "x ? (y ? 1 : 2) : z"),
        (cdiv(op(X, "+", 1), 64), "divide_up(x + 1, 64)"),
        (ir.Intrinsic("__max", (expr(X), expr(Y))), "max(x, y)"),
        (ir.Intrinsic("__max", (expr(X), expr(F))), "fmaxf(x, f)"),
        (ir.Intrinsic("__exp2f", (expr(F),)), "exp2_approx(f)"),
        (ir.Intrinsic("__to", (expr(F),), ir.Elem.BF16), "round_bf16(f)"),
        (ir.FloatLit("-inf"), "-INFINITY"),
        (op(F, "*", ir.FloatLit("-inf")), "f * -INFINITY"),
        (ir.FloatLit("0.5f"), "0.5f"),
    ],
)
def test_text(expression: ir.Expr, text: str) -> None:
    assert Printer()(expression) == text


def test_operand_is_closed() -> None:
    assert Printer().operand(op(X, "+", 1)) == "(x + 1)"
    assert Printer().operand(expr(X)) == "x"


def test_substitutes_whole_expressions() -> None:
    slot = op(op(X, "+", 1), "%", 3)
    assert Printer({slot: "next"})(op(op(op(X, "+", 1), "%", 3), "*", 8)) == "next * 8"


def test_element_of_a_tensor() -> None:
    tensor = ir.Tensor("bias", ir.Elem.F16, (expr(dim("M")), lit(64)), at(1))
    element = ir.TensorElement(tensor, (expr(X), op(Y, "+", 1)))
    assert Printer()(element) == "static_cast<float>(bias[(x * static_cast<int64_t>(64) + y + 1)])"
    assert is_floating(element)


@pytest.mark.parametrize("elem", [ir.Elem.BF16, ir.Elem.E4M3, ir.Elem.E5M2])
def test_elements_of_short_floats_are_read_as_f32(elem: ir.Elem) -> None:
    element = ir.TensorElement(ir.Tensor("scale", elem, (lit(64),), at(1)), (expr(X),))
    assert Printer()(element) == "static_cast<float>(scale[x])"


def test_floating() -> None:
    assert not is_floating(op(X, "+", Y))
    assert is_floating(op(X, "+", F))
    assert not is_floating(op(F, "<", F))
    assert not is_floating(ir.Intrinsic("__to", (expr(F),), ir.Elem.S32))
