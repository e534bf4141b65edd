"""Arithmetic on trip counts and loop counters, of which only the residue modulo some number may be known.

``modulus``: what counters are known up to. ``bounds``: what the path knows of the trip counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Union

from croqtile.validation.values import (
    UNKNOWN,
    Bounds,
    Count,
    Counted,
    Product,
    Quotient,
    Rest,
    Scalar,
    Trip,
    Undetermined,
    comparison,
    decide,
    signed,
)

_Counted = Union[Trip, Count, Rest]
_Bounds = Mapping[str, Bounds]


def counted(name: str, form: Sequence[str], args: Sequence[Scalar], bounds: _Bounds, modulus: int) -> Scalar:
    """What instruction ``name`` makes of trip counts, counters and numbers. Raises Undetermined."""
    first = args[0]
    second: Scalar = args[1] if len(args) > 1 else 0
    if name == "setp":
        return _compare(form, first, second, bounds) if len(args) == 2 else UNKNOWN
    if name == "add" and isinstance(first, int):
        first, second = second, first
    if isinstance(first, Product):
        return _shifted(first, second, modulus) if name == "shr" and isinstance(second, int) else UNKNOWN
    if isinstance(first, Quotient):
        return _of_quotient(name, first, second, bounds)
    if not isinstance(first, Counted):
        return UNKNOWN
    if isinstance(second, Counted):
        return _difference(first, second) if name == "sub" else UNKNOWN
    if not isinstance(second, int):
        return UNKNOWN
    if name in ("add", "sub"):
        return _moved(first, signed(second) if name == "add" else -signed(second))
    if _lowest(first, bounds) < 0:
        return UNKNOWN
    return 0 if name == "shr" and second == 31 else _divided(name, form, first, second, bounds, modulus)


def _residue(value: _Counted, divisor: int, bounds: _Bounds) -> int:
    """``value`` modulo a divisor of the modulus. Raises Undetermined."""
    if isinstance(value, Count):
        return value.value % divisor
    known = bounds[value.parameter]
    if known.exact is None and known.modulus % divisor:
        raise Undetermined(value.parameter, divisor)
    return (known.low + value.offset) % divisor


def _lowest(value: _Counted, bounds: _Bounds) -> int:
    return value.value if isinstance(value, Count) else bounds[value.parameter].low + value.offset


def _divided(name: str, form: Sequence[str], value: _Counted, number: int, bounds: _Bounds, modulus: int) -> Scalar:
    """What depends on the value modulo a divisor of the modulus alone."""
    if name == "mul" and "hi" in form:
        return _shifted(Product(value, number), 32, modulus)
    if name == "mul" and "wide" in form and form[-1] == "u32":
        return Product(value, number & 0xFFFFFFFF)
    mask = signed(number)
    if name == "rem" and mask > 0 and modulus % mask == 0:
        return _residue(value, mask, bounds)
    if name == "and":
        low = mask if mask >= 0 else ~mask
        if low & (low + 1) or modulus % (low + 1):
            return UNKNOWN
        rest = _residue(value, low + 1, bounds)
        return rest if mask >= 0 else _moved(value, -rest)
    return UNKNOWN


def _shifted(product: Product, by: int, modulus: int) -> Scalar:
    """(value · factor) >> by is value / divisor for values below 2³¹ if factor is just above 2^by / divisor
    (Granlund and Montgomery 1994, theorem 4.2)."""
    divisor = round((1 << by) / product.factor) if product.factor > 0 else 0
    excess = product.factor * divisor - (1 << by)
    exact = divisor > 1 and 0 < excess <= 1 << max(by - 31, 0)
    return Quotient(product.value, divisor) if exact and modulus % divisor == 0 else UNKNOWN


def _of_quotient(name: str, first: Quotient, second: Scalar, bounds: _Bounds) -> Scalar:
    if (name == "shr" and second == 31) or (name == "add" and second == 0):
        return 0 if name == "shr" else first
    if name == "mul" and second == first.divisor:
        return _moved(first.dividend, -_residue(first.dividend, first.divisor, bounds))
    return UNKNOWN


def _compare(form: Sequence[str], first: Scalar, second: Scalar, bounds: _Bounds) -> Scalar:
    question = comparison(form[0], first, second)
    if question is None:
        return UNKNOWN
    if form[-1][0] == "u" or form[0] in ("lo", "ls", "hi", "hs"):
        lowest = [_lowest(v, bounds) if isinstance(v, Counted) else signed(int(str(v))) for v in (first, second)]
        if min(lowest) < 0:
            return UNKNOWN
    known = bounds[question.parameter]
    if known.shifted and not question.comparable:
        known = Bounds(known.low)  # only the lower bound holds for the parameter itself
    answer = decide(question.test, known, question.number)
    return answer if isinstance(answer, int) else question


def _moved(value: _Counted, by: int) -> Scalar:
    if isinstance(value, Count):
        return Count(value.value + by)
    return replace(value, offset=value.offset + by)


def _difference(first: _Counted, second: _Counted) -> Scalar:
    if isinstance(first, Count) and isinstance(second, Count):
        return first.value - second.value & 0xFFFFFFFF
    if isinstance(first, Trip) and isinstance(second, Count):
        return Rest(first.parameter, first.offset - second.value)
    alike = type(first) is type(second)
    if isinstance(first, (Trip, Rest)) and isinstance(second, (Trip, Rest)) and alike:
        return first.offset - second.offset & 0xFFFFFFFF if first.parameter == second.parameter else UNKNOWN
    return UNKNOWN
