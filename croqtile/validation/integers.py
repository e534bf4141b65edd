"""Arithmetic of PTX integer instructions on known numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from croqtile.validation.values import signed, width


def _quotient(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "lo": operator.lt,
    "ls": operator.le,
    "hi": operator.gt,
    "hs": operator.ge,
}


_ARITHMETIC: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda a, b, c: a + b,
    "sub": lambda a, b, c: a - b,
    "mul": lambda a, b, c: a * b,
    "mad": lambda a, b, c: a * b + c,
    "and": lambda a, b, c: a & b,
    "or": lambda a, b, c: a | b,
    "xor": lambda a, b, c: a ^ b,
    "not": lambda a, b, c: ~a,
    "neg": lambda a, b, c: -a,
    "abs": lambda a, b, c: abs(a),
    "min": lambda a, b, c: min(a, b),
    "max": lambda a, b, c: max(a, b),
    "shl": lambda a, b, c: a << b,
    "shr": lambda a, b, c: a >> b,
    "div": lambda a, b, c: _quotient(a, b),
    "rem": lambda a, b, c: a - _quotient(a, b) * b,
}


def integer(name: str, form: Sequence[str], kind: str, args: Sequence[int]) -> int | None:
    """One integer instruction: ``name`` with its modifiers ``form`` on operands of type ``kind``; None if it is none
    of those that are evaluated, or a division by zero."""
    bits = width(kind)
    full = (1 << bits) - 1
    values = [signed(arg, bits) if kind[0] == "s" else arg & full for arg in args]
    if name == "setp":
        return int(_COMPARE[form[0]](values[0], values[1])) if len(args) == 2 and form[0] in _COMPARE else None
    operation = _ARITHMETIC.get(name)
    if operation is None or (name == "mad" and "hi" in form):
        return None
    a, b = (*values, 0)[:2]
    c = args[2] if len(args) > 2 else 0  # as wide as the result
    if name in ("div", "rem") and b == 0:
        return None
    if name in ("shl", "shr"):
        b = min(args[1] & 0xFFFFFFFF, bits)  # more is as good as all of them
    result = operation(a, b, c)
    if name == "mul" and "hi" in form:
        result >>= bits
    return result & ((1 << 2 * bits) - 1 if "wide" in form else full)
