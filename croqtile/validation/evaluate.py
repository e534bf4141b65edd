"""What PTX instructions make of values: exact, or unknown."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace

from croqtile.validation import addresses
from croqtile.validation.values import (
    UNKNOWN,
    WARPGROUP,
    Bounds,
    Count,
    Counted,
    Lanes,
    Launch,
    Product,
    Question,
    Quotient,
    Rest,
    Scalar,
    Shared,
    Trip,
    Undetermined,
    Unknown,
    Value,
    Waited,
    comparison,
    decide,
    joined,
    signed,
    width,
)


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


def integer(name: str, form: tuple[str, ...], kind: str, args: tuple[int, ...]) -> int | None:
    """One integer instruction: ``name`` with its modifiers ``form`` on operands of type ``kind``; None if it is none
    of those that are evaluated. Raises ZeroDivisionError."""
    bits = width(kind)
    full = (1 << bits) - 1
    values = [signed(arg, bits) if kind[0] == "s" else arg & full for arg in args]
    if name == "setp":
        return int(_COMPARE[form[0]](values[0], values[1]))
    operation = _ARITHMETIC.get(name)
    if operation is None or (name == "mad" and "hi" in form):
        return None
    a, b, c = (*values, 0, 0)[:3]
    if name in ("shl", "shr"):
        b = min(args[1] & 0xFFFFFFFF, bits)  # more is as good as all of them
    result = operation(a, b, c)
    if name == "mul" and "hi" in form:
        result >>= bits
    return result & ((1 << 2 * bits) - 1 if "wide" in form else full)


class Evaluator:
    """Evaluates instructions. ``modulus``: what counters are known up to. ``trips``: each parameter's values at the
    ``count`` sample launches; a comparison of launch values that comes out alike at all samples is taken as decided."""

    def __init__(self, modulus: int, trips: dict[str, tuple[int, ...]], count: int) -> None:
        self.modulus, self.count = modulus, count
        self.trips = trips
        self._cache: dict[tuple[object, ...], Scalar] = {}
        self._lanes: dict[tuple[object, ...], Value] = {}

    def apply(self, opcode: str, args: tuple[Value, ...], bounds: dict[str, Bounds]) -> Value:
        if any(isinstance(arg, Lanes) for arg in args):
            if any(isinstance(arg, (Launch, Unknown)) for arg in args):
                return UNKNOWN  # no address depends on both thread and launch
            plain = not any(isinstance(arg, (*Counted, Quotient, Product)) for arg in args)
            key = (opcode, args)
            if plain and key in self._lanes:
                return self._lanes[key]
            rows = [arg.values if isinstance(arg, Lanes) else (arg,) * WARPGROUP for arg in args]
            result = joined(tuple(self.scalar(opcode, row, bounds) for row in zip(*rows, strict=True)))
            if plain:
                self._lanes[key] = result
            return result
        return self.scalar(opcode, args, bounds)  # type: ignore[arg-type]

    def scalar(self, opcode: str, args: tuple[Scalar, ...], bounds: dict[str, Bounds]) -> Scalar:
        if any(isinstance(arg, (Unknown, Question, Waited)) for arg in args) and opcode != "mov.pred":
            return UNKNOWN
        if any(isinstance(arg, (Trip, Rest, Quotient, Product)) for arg in args):
            return self._scalar(opcode, args, bounds)
        key = (opcode, args)
        if key not in self._cache:
            self._cache[key] = self._scalar(opcode, args, bounds)
        return self._cache[key]

    def _scalar(self, opcode: str, args: tuple[Scalar, ...], bounds: dict[str, Bounds]) -> Scalar:
        name, *form = opcode.split(".")
        kind = form[-1]
        if name == "mov" or name == "cvta":
            return args[0]
        if name == "selp":
            return (args[0] if args[2] else args[1]) if isinstance(args[2], int) else UNKNOWN
        if kind[0] == "f":
            return UNKNOWN
        if name == "cvt":
            return self._convert(form, args[0])
        if all(isinstance(arg, int) for arg in args):
            return self._integers(name, tuple(form), kind, args)  # type: ignore[arg-type]
        if any(isinstance(arg, Launch) for arg in args):
            return self._launch(name, tuple(form), kind, args)
        if any(isinstance(arg, Shared) for arg in args):
            return addresses.address(name, form, args)
        result = self._counted(name, form, args, bounds)
        if result is UNKNOWN and name != "setp" and all(isinstance(arg, (int, Trip)) for arg in args):
            return self._launch(name, tuple(form), kind, args)  # a trip count is a launch value, too
        return result

    def _convert(self, form: list[str], value: Scalar) -> Scalar:
        to, source = form[-2], form[-1]
        if to[0] == "f" or source[0] == "f":
            return UNKNOWN
        if isinstance(value, int):
            number = signed(value, width(source)) if source[0] == "s" else value & ((1 << width(source)) - 1)
            return number & ((1 << width(to)) - 1)
        if isinstance(value, Launch):
            return self.launch(tuple(int(str(self._convert(form, v))) for v in value.samples), to)
        return value if isinstance(value, (Shared, Quotient, *Counted)) and width(to) >= 32 else UNKNOWN

    def _integers(self, name: str, form: tuple[str, ...], kind: str, args: tuple[int, ...]) -> Scalar:
        if name == "setp" and len(args) != 2:
            return UNKNOWN
        try:
            result = integer(name, form, kind, args)
        except (ZeroDivisionError, KeyError):
            return UNKNOWN
        return UNKNOWN if result is None else result

    # -- values that the launch decides

    def _launch(self, name: str, form: tuple[str, ...], kind: str, args: tuple[Scalar, ...]) -> Scalar:
        rows = []
        for arg in args:
            found = self.samples(arg)
            if found is None:
                return UNKNOWN
            rows.append(found)
        results = []
        for row in zip(*rows, strict=True):
            result = self._integers(name, form, kind, row)
            if not isinstance(result, int):
                return UNKNOWN
            results.append(result)
        if name == "setp":
            return results[0] if len(set(results)) == 1 else UNKNOWN
        return self.launch(tuple(results), kind)

    def samples(self, value: Scalar) -> tuple[int, ...] | None:
        if isinstance(value, Launch):
            return value.samples
        if isinstance(value, int):
            return (value,) * self.count
        if isinstance(value, Trip):
            return tuple(v + value.offset & 0xFFFFFFFF for v in self.trips[value.parameter])
        return None

    def launch(self, samples: tuple[int, ...], kind: str) -> Scalar:
        """A launch value: a parameter of the program plus a constant, if it is one at every sample."""
        bits = width(kind)
        for parameter, values in self.trips.items():
            offset = signed(samples[0], bits) - values[0]
            if all(signed(a, bits) - b == offset for a, b in zip(samples, values, strict=True)):
                return Trip(parameter, offset)
        return Launch(samples)

    # -- trip counts and counters

    def residue(self, value: Trip | Count | Rest, divisor: int, bounds: dict[str, Bounds]) -> int:
        """``value`` modulo a divisor of the modulus. Raises Undetermined."""
        if isinstance(value, Count):
            return value.value % divisor
        known = bounds[value.parameter]
        if known.exact is None and known.modulus % divisor:
            raise Undetermined(value.parameter, divisor)
        return (known.low + value.offset) % divisor

    def _counted(self, name: str, form: list[str], args: tuple[Scalar, ...], bounds: dict[str, Bounds]) -> Scalar:
        first = args[0]
        second: Scalar = args[1] if len(args) > 1 else 0
        if name == "setp":
            return self._compare(form, first, second, bounds) if len(args) == 2 else UNKNOWN
        if name == "add" and isinstance(first, int):
            first, second = second, first
        if isinstance(first, Product):
            return self._shifted(first, second) if name == "shr" and isinstance(second, int) else UNKNOWN
        if isinstance(first, Quotient):
            return self._of_quotient(name, first, second, bounds)
        if not isinstance(first, Counted):
            return UNKNOWN
        if isinstance(second, Counted):
            return _difference(first, second) if name == "sub" else UNKNOWN
        if not isinstance(second, int):
            return UNKNOWN
        if name in ("add", "sub"):
            return _moved(first, signed(second) if name == "add" else -signed(second))
        if self.lowest(first, bounds) < 0:
            return UNKNOWN
        return 0 if name == "shr" and second == 31 else self._divided(name, form, first, second, bounds)

    def lowest(self, value: Trip | Count | Rest, bounds: dict[str, Bounds]) -> int:
        return value.value if isinstance(value, Count) else bounds[value.parameter].low + value.offset

    def _divided(
        self, name: str, form: list[str], value: Trip | Count | Rest, number: int, bounds: dict[str, Bounds]
    ) -> Scalar:
        """What depends on the value modulo a divisor of the modulus alone."""
        if name == "mul" and "hi" in form:
            return self._shifted(Product(value, number), 32)
        if name == "mul" and "wide" in form and form[-1] == "u32":
            return Product(value, number & 0xFFFFFFFF)
        mask = signed(number)
        if name == "rem" and mask > 0 and self.modulus % mask == 0:
            return self.residue(value, mask, bounds)
        if name == "and":
            low = mask if mask >= 0 else ~mask
            if low & (low + 1) or self.modulus % (low + 1):
                return UNKNOWN
            rest = self.residue(value, low + 1, bounds)
            return rest if mask >= 0 else _moved(value, -rest)
        return UNKNOWN

    def _shifted(self, product: Product, by: int) -> Scalar:
        """(value · factor) >> by is value / divisor for values below 2³¹ if factor is just above 2^by / divisor
        (Granlund and Montgomery 1994, theorem 4.2)."""
        divisor = round((1 << by) / product.factor) if product.factor > 0 else 0
        excess = product.factor * divisor - (1 << by)
        exact = divisor > 1 and 0 < excess <= 1 << max(by - 31, 0)
        return Quotient(product.value, divisor) if exact and self.modulus % divisor == 0 else UNKNOWN

    def _of_quotient(self, name: str, first: Quotient, second: Scalar, bounds: dict[str, Bounds]) -> Scalar:
        if (name == "shr" and second == 31) or (name == "add" and second == 0):
            return 0 if name == "shr" else first
        if name == "mul" and second == first.divisor:
            return _moved(first.dividend, -self.residue(first.dividend, first.divisor, bounds))
        return UNKNOWN

    def _compare(self, form: list[str], first: Scalar, second: Scalar, bounds: dict[str, Bounds]) -> Scalar:
        question = comparison(form[0], first, second)
        if question is None:
            return UNKNOWN
        if form[-1][0] == "u" or form[0] in ("lo", "ls", "hi", "hs"):
            lowest = [
                self.lowest(v, bounds) if isinstance(v, Counted) else signed(int(str(v))) for v in (first, second)
            ]
            if min(lowest) < 0:
                return UNKNOWN
        known = bounds[question.parameter]
        if known.shifted and not question.comparable:
            known = Bounds(known.low)  # only the lower bound holds for the parameter itself
        answer = decide(question.test, known, question.number)
        return answer if isinstance(answer, int) else question


def _moved(value: Trip | Count | Rest, by: int) -> Scalar:
    if isinstance(value, Count):
        return Count(value.value + by)
    return replace(value, offset=value.offset + by)


def _difference(first: Trip | Count | Rest, second: Trip | Count | Rest) -> Scalar:
    if isinstance(first, Count) and isinstance(second, Count):
        return first.value - second.value & 0xFFFFFFFF
    if isinstance(first, Trip) and isinstance(second, Count):
        return Rest(first.parameter, first.offset - second.value)
    alike = type(first) is type(second)
    if isinstance(first, (Trip, Rest)) and isinstance(second, (Trip, Rest)) and alike:
        return first.offset - second.offset & 0xFFFFFFFF if first.parameter == second.parameter else UNKNOWN
    return UNKNOWN
