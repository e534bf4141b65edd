"""What a PTX register may hold, and what instructions make of it. Whatever is not known exactly is :data:`UNKNOWN`.

The values
    int       a known number, unsigned, as wide as its register
    Shared    an address in shared memory, or what a matrix descriptor makes of one: (base >> shift) + offset
    Launch    a number that only the launch knows (parameters, block indices), by its values at sample launches
    Trip      a launch-time parameter of the analysed program (a trip count), plus a constant
    Count     a loop counter whose value is known up to a multiple of the modulus
    Rest      a counter that runs down from a trip count, known up to the same multiple
    Map       a tensor map: the number of the kernel's parameter
    Waited    the predicate that a test of an mbarrier sets
    Question  a comparison with a trip count that is open
    Lanes     one value for each of the 128 threads of a warpgroup
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Union

WARPGROUP = 128
WINDOW_BITS = 18  # addresses of shared memory are below 256 KiB (sm_90: 227 KiB per CTA, 1 KiB of the system before it)


class Unknown:
    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = Unknown()


@dataclass(frozen=True)
class Shared:
    """``base`` names a variable, or ``up(variable, n)``: its address rounded up to n; a multiple of ``align``."""

    base: str
    align: int
    offset: int = 0
    shift: int = 0


@dataclass(frozen=True)
class Launch:
    samples: tuple[int, ...]


@dataclass(frozen=True)
class Trip:
    parameter: str
    offset: int = 0


@dataclass(frozen=True)
class Count:
    """``value`` + modulus · j, for the same unknown j ≥ 0 in all counters and in the parameters."""

    value: int


@dataclass(frozen=True)
class Rest:
    """parameter − modulus · j + offset, with the j of :class:`Count`: what is left of a trip count."""

    parameter: str
    offset: int = 0


@dataclass(frozen=True)
class Quotient:
    """(trip or count) / divisor, as multiplication by a reciprocal leaves it."""

    dividend: Union[Trip, Count, Rest]
    divisor: int


@dataclass(frozen=True)
class Product:
    """(trip or count) · factor, of which a shift makes a quotient."""

    value: Union[Trip, Count, Rest]
    factor: int


@dataclass(frozen=True)
class Map:
    parameter: int


@dataclass(frozen=True)
class Waited:
    barrier: Shared
    parity: int


@dataclass(frozen=True)
class Question:
    """The predicate ``parameter test number``, open so far. ``comparable``: its number goes with the bounds of the
    parameter also where these are shifted."""

    test: str
    parameter: str
    number: int
    comparable: bool


@dataclass(frozen=True)
class Lanes:
    values: tuple[Scalar, ...]


Scalar = Union[int, Shared, Launch, Trip, Count, Rest, Quotient, Product, Map, Waited, Question, Unknown]
Value = Union[Scalar, Lanes]


Counted = (Trip, Count, Rest)


class Undetermined(Exception):
    """What an instruction makes of a parameter depends on its residue modulo ``modulus``."""

    def __init__(self, parameter: str, modulus: int) -> None:
        super().__init__()
        self.parameter, self.modulus = parameter, modulus


@dataclass(frozen=True)
class Bounds:
    """What a path through the program knows of a parameter: low ≤ parameter ≤ high (None: no bound), and parameter ≡
    residue (modulo ``modulus``).

    ``shifted``: the bounds are those of parameter − j · (modulus of the counters), with the j of :class:`Count`."""

    low: int
    high: int | None = None
    shifted: bool = False
    modulus: int = 1
    residue: int = 0

    @property
    def exact(self) -> int | None:
        return self.low if self.low == self.high else None

    def narrowed(self) -> Bounds:
        """Both ends on the residue."""
        high = self.high
        if high is not None:
            high -= (high - self.residue) % self.modulus
        return replace(self, low=self.low + (self.residue - self.low) % self.modulus, high=high)

    def split(self, modulus: int) -> list[Bounds]:
        """All residues that are possible modulo a multiple of ``modulus``."""
        whole = math.lcm(self.modulus, modulus)
        residues = range(self.residue, whole, self.modulus)
        cases = [replace(self, modulus=whole, residue=residue).narrowed() for residue in residues]
        return [case for case in cases if case.high is None or case.low <= case.high]


def signed(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def width(type_name: str) -> int:
    """Bits of ``s32``, ``b64``, …; predicates count as 1."""
    return 1 if type_name == "pred" else int(type_name[1:])


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
COMPARISONS = frozenset(_COMPARE)


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
    sample launches; a comparison of launch values that comes out alike at all samples is taken as decided."""

    def __init__(self, modulus: int, trips: dict[str, tuple[int, ...]]) -> None:
        self.modulus = modulus
        self.trips = trips
        self.decided = 0  # comparisons of launch values that were decided by the samples
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
            return _shared(name, form, args)
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
            if len(set(results)) > 1:
                return UNKNOWN
            self.decided += 1
            return results[0]
        return self.launch(tuple(results), kind)

    def samples(self, value: Scalar) -> tuple[int, ...] | None:
        count = len(next(iter(self.trips.values()), ()))
        if isinstance(value, Launch):
            return value.samples
        if isinstance(value, int):
            return (value,) * (count or 1)
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


def joined(values: tuple[Scalar, ...]) -> Value:
    return values[0] if all(value == values[0] for value in values) else Lanes(values)


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


_SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


def comparison(test: str, first: Scalar, second: Scalar) -> Question | None:
    """``first test second`` as a question about a parameter. None if it is none."""
    test = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(test, test)
    if isinstance(second, (Trip, Rest)):
        first, second, test = second, first, _SWAPPED[test]
    if not isinstance(first, (Trip, Rest)) or not isinstance(second, (int, Count)):
        return None
    if isinstance(first, Rest) and isinstance(second, Count):
        return None
    number = signed(second) if isinstance(second, int) else second.value
    comparable = isinstance(first, Rest) or isinstance(second, Count)
    return Question(test, first.parameter, number - first.offset, comparable)


def decide(test: str, bounds: Bounds, number: int) -> Scalar:
    """Is ``parameter test number``, for all values of the parameter? 1, 0, or unknown."""
    low, high = bounds.low, bounds.high
    below = high is not None and high < number
    above = low > number
    same = low == high == number
    other = (number - bounds.residue) % bounds.modulus != 0
    known = {
        "lt": (below, above or low == number),
        "ge": (above or low == number, below),
        "gt": (above, below or high == number),
        "le": (below or high == number, above),
        "eq": (same, below or above or other),
        "ne": (below or above or other, same),
    }[test]
    return 1 if known[0] else 0 if known[1] else UNKNOWN


def refine(test: str, bounds: Bounds, number: int, holds: bool) -> Bounds:
    """What is known once ``parameter test number`` is found to hold (or not)."""
    if not holds:
        test = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}[test]
    low, high = bounds.low, bounds.high
    if test in ("ge", "gt", "eq"):
        low = max(low, number + (test == "gt"))
    if test in ("le", "lt", "eq"):
        high = number - (test == "lt") if high is None else min(high, number - (test == "lt"))
    if test == "ne" and low == number:
        low += 1
    return replace(bounds, low=low, high=high).narrowed()


def _shared(name: str, form: list[str], args: tuple[Scalar, ...]) -> Scalar:
    """Arithmetic with one address. Exact for every base that is a multiple of its alignment."""
    numbers = [arg for arg in args if isinstance(arg, int)]
    places = [arg for arg in args if isinstance(arg, Shared)]
    if len(places) == 2 and name == "sub" and replace(places[0], offset=0) == replace(places[1], offset=0):
        return places[0].offset - places[1].offset & 0xFFFFFFFF
    if len(places) != 1 or len(numbers) != len(args) - 1:
        return UNKNOWN
    place = places[0]
    bits = width(form[-1])
    if name == "add" or (name == "sub" and isinstance(args[0], Shared)):
        number = signed(numbers[0], bits)
        return replace(place, offset=place.offset + (number if name == "add" else -number))
    if name == "mad" and isinstance(args[2], Shared) and "hi" not in form:
        number = signed(numbers[0], bits) * signed(numbers[1], bits)
        return replace(place, offset=place.offset + number)
    number = numbers[0] & ((1 << bits) - 1)
    unit = place.align >> place.shift
    if name == "shr" and isinstance(args[0], Shared):
        if place.offset % (1 << number) or place.offset < 0 or unit >> number == 0:
            return UNKNOWN
        return replace(place, offset=place.offset >> number, shift=place.shift + number)
    if unit == 0 or place.offset < 0:
        return UNKNOWN
    inside = place.offset % unit
    outside = place.offset - inside
    if name == "and":
        return _masked(place, number, bits)
    if name == "or":
        high = number // unit * unit
        if high % (1 << (WINDOW_BITS - place.shift)) or outside >> (WINDOW_BITS - place.shift):
            return UNKNOWN
        return replace(place, offset=outside + (inside | number % unit) + high)
    if name == "xor" and number < unit:
        return replace(place, offset=outside + (inside ^ number))
    return UNKNOWN


def _masked(place: Shared, mask: int, bits: int) -> Scalar:
    unit = place.align >> place.shift
    inside = place.offset % unit
    if mask < unit:
        return inside & mask
    window = (1 << (WINDOW_BITS - place.shift)) - 1
    if (mask | (unit - 1)) & window == window:  # keeps every bit of the base
        return replace(place, offset=place.offset - inside + (inside & mask))
    step = (1 << bits) - mask
    rounds = step > unit and step & (step - 1) == 0 and place.offset == step - 1
    if rounds and place.shift == 0:  # (base + step − 1) & −step
        return Shared(f"up({place.base}, {step})", step)
    return UNKNOWN
