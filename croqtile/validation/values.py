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
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Union

WARPGROUP = 128


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

    def __hash__(self) -> int:
        return self._hash

    @cached_property  # it is looked up often, and long
    def _hash(self) -> int:
        return hash(self.samples)


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

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.values)


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


def joined(values: tuple[Scalar, ...]) -> Value:
    return values[0] if all(value == values[0] for value in values) else Lanes(values)


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
