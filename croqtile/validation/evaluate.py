"""What PTX instructions make of values: exact, or unknown."""

from __future__ import annotations

from collections.abc import Mapping

from croqtile.validation import addresses
from croqtile.validation.counters import counted
from croqtile.validation.integers import integer
from croqtile.validation.values import (
    UNKNOWN,
    WARPGROUP,
    Bounds,
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
    Unknown,
    Value,
    Waited,
    joined,
    signed,
    width,
)

_OPEN = (Unknown, Question, Waited)  # of these, nothing is made
_BOUNDED = (Trip, Rest, Quotient, Product)
_INTEGERS = frozenset(("pred", *(f"{kind}{bits}" for kind in "bsu" for bits in (8, 16, 32, 64))))
_MODIFIERS = frozenset(("lo", "hi", "wide", "cc"))  # not, for instance, saturation


class Evaluator:
    """Evaluates instructions. ``modulus``: what counters are known up to. ``trips``: each parameter's values at the
    ``count`` sample launches; a comparison of launch values that comes out alike at all samples is taken as decided."""

    def __init__(self, modulus: int, trips: dict[str, tuple[int, ...]], count: int) -> None:
        self.modulus, self.count = modulus, count
        self.trips = trips
        self._known: dict[tuple[str, tuple[Value, ...]], Value] = {}  # what does not depend on bounds
        self._launched: dict[tuple[str, tuple[Scalar, ...]], Scalar] = {}

    def apply(self, opcode: str, args: tuple[Value, ...], bounds: Mapping[str, Bounds]) -> Value:
        known = self._known.get((opcode, args))
        if known is not None:
            return known
        lanes = any(isinstance(arg, Lanes) for arg in args)
        result = (self._lanes if lanes else self._scalar)(opcode, args, bounds)  # type: ignore[arg-type]
        if not any(map(_bounded, args)):
            self._known[opcode, args] = result
        return result

    def _lanes(self, opcode: str, args: tuple[Value, ...], bounds: Mapping[str, Bounds]) -> Value:
        if any(isinstance(arg, (Launch, Unknown)) for arg in args):
            return UNKNOWN  # no address depends on both thread and launch
        rows = [arg.values if isinstance(arg, Lanes) else (arg,) * WARPGROUP for arg in args]
        return joined(tuple(self._scalar(opcode, row, bounds) for row in zip(*rows, strict=True)))

    def _scalar(self, opcode: str, args: tuple[Scalar, ...], bounds: Mapping[str, Bounds]) -> Scalar:
        if opcode != "mov.pred" and any(isinstance(arg, _OPEN) for arg in args):
            return UNKNOWN
        name, *form = opcode.split(".")
        kind = form[-1]
        if name == "mov" or name == "cvta":
            return args[0]
        if name == "selp":
            return (args[0] if args[2] else args[1]) if isinstance(args[2], int) else UNKNOWN
        if name == "cvt":
            return self._convert(form, args[0])
        if kind not in _INTEGERS or (name != "setp" and not _MODIFIERS.issuperset(form[:-1])):
            return UNKNOWN
        if all(isinstance(arg, int) for arg in args):
            result = integer(name, form, kind, args)  # type: ignore[arg-type]
            return UNKNOWN if result is None else result
        if any(isinstance(arg, Launch) for arg in args):
            return self._launch(opcode, args)
        if any(isinstance(arg, Shared) for arg in args):
            return addresses.address(name, form, args)
        made = counted(name, form, args, bounds, self.modulus)
        if made is UNKNOWN and name != "setp" and all(isinstance(arg, (int, Trip)) for arg in args):
            return self._launch(opcode, args)  # a trip count is a launch value, too
        return made

    def _convert(self, form: list[str], value: Scalar) -> Scalar:
        to, source = form[-2:]
        if len(form) > 2 or not _INTEGERS.issuperset(form):
            return UNKNOWN
        if isinstance(value, int):
            number = signed(value, width(source)) if source[0] == "s" else value & ((1 << width(source)) - 1)
            return number & ((1 << width(to)) - 1)
        if isinstance(value, Launch):
            return self.launch(tuple(int(str(self._convert(form, v))) for v in value.samples), to)
        return value if isinstance(value, (Shared, Quotient, *Counted)) and width(to) >= 32 else UNKNOWN

    # -- values that the launch decides

    def _launch(self, opcode: str, args: tuple[Scalar, ...]) -> Scalar:
        if (opcode, args) not in self._launched:
            self._launched[opcode, args] = self._at_samples(opcode, args)
        return self._launched[opcode, args]

    def _at_samples(self, opcode: str, args: tuple[Scalar, ...]) -> Scalar:
        name, *form = opcode.split(".")
        kind = form[-1]
        rows = []
        for arg in args:
            found = self.samples(arg)
            if found is None:
                return UNKNOWN
            rows.append(found)
        results = []
        for row in zip(*rows, strict=True):
            result = integer(name, form, kind, row)
            if result is None:
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


def _bounded(value: Value) -> bool:
    """Does what is made of it depend on the bounds?"""
    return any(map(_bounded, value.values)) if isinstance(value, Lanes) else isinstance(value, _BOUNDED)
