"""Building :mod:`croqtile.ir` expressions with integer constants folded, and evaluating them.

Integers follow C: division truncates towards zero, ``%`` has the sign of the dividend, comparisons give 0 or 1.
Floating-point expressions are left as they are written, except for the sign of a literal.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from croqtile import ir


def _divide(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": lambda a, b: a - _divide(a, b) * b,
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "&&": lambda a, b: int(bool(a) and bool(b)),
    "||": lambda a, b: int(bool(a) or bool(b)),
}

ZERO = ir.IntLit(0)
ONE = ir.IntLit(1)


def integer(expr: ir.Expr) -> int | None:
    """The value of a folded constant, else None."""
    return expr.value if isinstance(expr, ir.IntLit) else None


def binary(op: str, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """``left op right``. A constant division by zero stays as it is (the checker refuses it where it is written)."""
    a, b = integer(left), integer(right)
    if a is not None and b is not None and not (op in "/%" and b == 0):
        return ir.IntLit(_OPERATORS[op](a, b))
    if op == "+" and (a == 0 or b == 0):
        return right if a == 0 else left
    if (op == "-" and b == 0) or (op in "*/" and b == 1):
        return left
    if op == "*" and a == 1:
        return right
    if op == "*" and (a == 0 or b == 0):
        return ZERO
    if op in "+-" and b is not None and isinstance(left, ir.Binary) and left.op in ("+", "-"):
        start, inner = integer(left.left), integer(left.right)
        if start is not None:  # (1 - x) + 1
            return binary(left.op, ir.IntLit(start + b if op == "+" else start - b), left.right)
        if inner is not None:  # (x + 1) - 1
            total = (inner if left.op == "+" else -inner) + (b if op == "+" else -b)
            return binary("+" if total >= 0 else "-", left.left, ir.IntLit(abs(total)))
    return ir.Binary(op, left, right)


def unary(op: str, operand: ir.Expr) -> ir.Expr:
    """``-operand`` or ``!operand``."""
    value = integer(operand)
    if value is not None:
        return ir.IntLit(-value if op == "-" else int(not value))
    if op == "-" and isinstance(operand, ir.FloatLit):
        return ir.FloatLit(operand.text[1:] if operand.text.startswith("-") else "-" + operand.text)
    return ir.Unary(op, operand)


def select(condition: ir.Expr, yes: ir.Expr, no: ir.Expr) -> ir.Expr:
    value = integer(condition)
    if value is not None:
        return yes if value else no
    return ir.Select(condition, yes, no)


def cdiv(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """Ceiling division of integers ≥ 0."""
    x, y = integer(a), integer(b)
    if x is not None and y:
        return ir.IntLit(-_divide(-x, y) if x < 0 else -(-x // y))
    return a if y == 1 else ir.Intrinsic("cdiv", (a, b))


def evaluate(expr: ir.Expr, values: Mapping[ir.Symbol, int]) -> int | None:
    """The value of an integer expression under ``values``, or None if it needs anything else."""
    if isinstance(expr, ir.IntLit):
        return expr.value
    if isinstance(expr, ir.Var):
        return values.get(expr.symbol)
    if isinstance(expr, ir.Unary):
        operand = evaluate(expr.operand, values)
        return None if operand is None else (-operand if expr.op == "-" else int(not operand))
    if isinstance(expr, ir.Binary):
        left = evaluate(expr.left, values)
        if left is not None and expr.op in ("&&", "||") and bool(left) == (expr.op == "||"):
            return int(bool(left))
        right = evaluate(expr.right, values)
        if left is None or right is None or (expr.op in "/%" and right == 0):
            return None
        return _OPERATORS[expr.op](left, right)
    if isinstance(expr, ir.Select):
        condition = evaluate(expr.condition, values)
        return None if condition is None else evaluate(expr.yes if condition else expr.no, values)
    if isinstance(expr, ir.Intrinsic) and expr.name == "cdiv":
        a, b = (evaluate(arg, values) for arg in expr.args)
        return None if a is None or not b else -(-a // b)
    return None
