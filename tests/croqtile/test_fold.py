"""Constant folding agrees with C, and evaluation with folding."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croqtile import fold, ir
from croqtile.irprint import expression

X = ir.Symbol("x", ir.SymbolKind.VALUE, "x")
VAR = ir.Var(X)
OPERATORS = ["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&&", "||"]


def lit(value: int) -> ir.IntLit:
    return ir.IntLit(value)


@pytest.mark.parametrize(
    ("op", "a", "b", "value"),
    [
        ("/", 7, 2, 3),
        ("/", -7, 2, -3),
        ("/", 7, -2, -3),
        ("%", 7, 3, 1),
        ("%", -7, 3, -1),
        ("%", 7, -3, 1),
        ("&&", 2, 3, 1),
        ("||", 0, 0, 0),
        ("<", 1, 2, 1),
        ("!=", 2, 2, 0),
    ],
)
def test_as_in_c(op: str, a: int, b: int, value: int) -> None:
    assert fold.binary(op, lit(a), lit(b)) == lit(value)


@pytest.mark.parametrize("op", ["/", "%"])
def test_division_by_zero_is_left(op: str) -> None:
    assert fold.binary(op, lit(1), lit(0)) == ir.Binary(op, lit(1), lit(0))
    assert fold.evaluate(ir.Binary(op, VAR, lit(0)), {X: 1}) is None


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (fold.binary("+", VAR, lit(0)), "x"),
        (fold.binary("+", lit(0), VAR), "x"),
        (fold.binary("-", VAR, lit(0)), "x"),
        (fold.binary("*", lit(1), VAR), "x"),
        (fold.binary("*", VAR, lit(0)), "0"),
        (fold.binary("-", fold.binary("+", VAR, lit(1)), lit(1)), "x"),
        (fold.binary("+", fold.binary("-", VAR, lit(3)), lit(1)), "x - 2"),
        (fold.binary("+", fold.binary("-", lit(1), VAR), lit(2)), "3 - x"),
        (fold.unary("-", ir.FloatLit("inf")), "-inf"),
        (fold.unary("-", ir.FloatLit("-1.0f")), "1.0f"),
        (fold.unary("!", lit(0)), "1"),
        (fold.select(lit(0), VAR, lit(4)), "4"),
        (fold.cdiv(lit(7), lit(2)), "4"),
        (fold.cdiv(VAR, lit(1)), "x"),
        (fold.cdiv(VAR, lit(2)), "cdiv(x, 2)"),
    ],
)
def test_simplifies(expr: ir.Expr, text: str) -> None:
    assert expression(expr) == text


def test_short_circuits() -> None:
    unknown = ir.Var(ir.Symbol("y", ir.SymbolKind.VALUE, "y"))
    assert fold.evaluate(ir.Binary("&&", lit(0), unknown), {}) == 0
    assert fold.evaluate(ir.Binary("||", lit(2), unknown), {}) == 1
    assert fold.evaluate(ir.Binary("&&", lit(1), unknown), {}) is None


def test_every_operator_on_small_numbers_agrees_with_evaluation() -> None:
    for op, a, b in itertools.product(OPERATORS, range(-3, 4), range(-3, 4)):
        if op not in "/%" or b:
            assert fold.binary(op, lit(a), lit(b)) == lit(fold.evaluate(ir.Binary(op, VAR, lit(b)), {X: a}) or 0)


TREES = st.recursive(
    st.one_of(st.integers(-9, 9), st.just("x")),
    lambda inner: st.tuples(st.sampled_from(OPERATORS), inner, inner),
    max_leaves=12,
)


def build(tree: object, folding: bool) -> ir.Expr:
    if isinstance(tree, tuple):
        op, left, right = tree
        made = build(left, folding), build(right, folding)
        return fold.binary(op, *made) if folding else ir.Binary(op, *made)
    return VAR if tree == "x" else lit(int(str(tree)))


@given(TREES, st.integers(-9, 9))
def test_folding_keeps_the_value(tree: object, x: int) -> None:
    plain = fold.evaluate(build(tree, folding=False), {X: x})
    if plain is not None:
        assert fold.evaluate(build(tree, folding=True), {X: x}) == plain
