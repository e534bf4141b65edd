"""Expressions as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hb_analyzer.expressions import ExpressionError, bare, parse_expression
from hb_analyzer.model import BinOp, Const, IntExpr, Name, evaluate

NAMES = ("i", "k.count", "n_1")
LEAVES = st.one_of(st.integers(0, 99).map(Const), st.sampled_from(NAMES).map(Name))
OPERATORS = st.sampled_from(
    ["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "cdiv", "max", "min"]
)
EXPRESSIONS: st.SearchStrategy[IntExpr] = st.recursive(
    LEAVES, lambda inner: st.builds(BinOp, OPERATORS, inner, inner), max_leaves=12
)


@given(EXPRESSIONS)
def test_text_and_back(expr: IntExpr) -> None:
    assert parse_expression(str(expr)) == expr
    assert parse_expression(bare(expr)) == expr


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 3 - 2", 5),
        ("7 / 2 % 2", 1),
        ("1 < 2 == 1", 1),
        ("1 || 0 && 0", 1),
        ("-3 + 5", 2),
        ("!0", 1),
        ("!(3 > 2)", 0),
        ("cdiv(7, 2)", 4),
        ("max(1, min(9, 4))", 4),
        ("cdiv + 1", 8),  # a name, where no parenthesis follows
    ],
)
def test_precedence(text: str, value: int) -> None:
    assert evaluate(parse_expression(text), {"cdiv": 7}) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'expected a number or a name, found the end in expression ""'),
        ("1 +", 'expected a number or a name, found the end in expression "1 +"'),
        ("(1", 'missing ")" in expression "(1"'),
        ("1 2", 'unexpected "2" in expression "1 2"'),
        ("a ? b", 'unexpected "?" in expression "a ? b"'),
        ("cdiv(1)", 'missing "," in expression "cdiv(1)"'),
        ("(" * 60 + "1" + ")" * 60, "expression nested more than 50 deep"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)
    assert str(caught.value) == message
