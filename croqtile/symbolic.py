"""Integer expressions of a kernel in the form that the analysis compares: affine sums over atoms.

Trip counts are compared by their normal form: two loops run equally often if their forms are the same. An *atom* is a
launch-time value (dimension, grid index), a counter, or an operation that is no sum (``* / % cdiv max min``, truth
values); its text is normalised, so that ``cdiv(K, 64)`` is one value wherever it is computed. ``parameters.py`` makes
launch-time sums into the parameters of the analysis.

Atoms know bounds, and guards (``if (k > 0)``) add facts to them: ``/`` and ``%`` mean the same in C and in the analysis
only for operands ≥ 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


class Untranslatable(Exception):
    """The expression is outside the analysis; the message says why, as a clause about it."""


@dataclass(frozen=True)
class Atom:
    """An integer that is no sum. ``kind``: "launch" (fixed at launch), "counter" (a loop's or a running one) or
    "operation" (on ``operands``). ``low``/``high``: bounds that always hold, None where unknown."""

    text: str
    kind: str
    low: int | None = None
    high: int | None = None
    op: str = ""
    operands: tuple[Affine, ...] = ()

    @property
    def launch_only(self) -> bool:
        return self.kind == "launch" or (self.kind == "operation" and all(a.launch_only for a in self.operands))

    def leaves(self) -> Iterator[Atom]:
        """The launch-time values and counters in it."""
        if self.kind != "operation":
            yield self
        for operand in self.operands:
            yield from operand.leaves()


@dataclass(frozen=True)
class Affine:
    """Σ coefficient · atom + constant; terms sorted by text, no coefficient 0."""

    terms: tuple[tuple[Atom, int], ...] = ()
    constant: int = 0

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def launch_only(self) -> bool:
        """Fixed at launch: no counter in it."""
        return all(atom.launch_only for atom, _ in self.terms)

    @property
    def is_one_atom(self) -> bool:
        return len(self.terms) == 1 and self.terms[0][1] == 1 and not self.constant

    def leaves(self) -> Iterator[Atom]:
        for atom, _ in self.terms:
            yield from atom.leaves()

    def counters(self) -> frozenset[str]:
        """Names of the counters that it mentions."""
        return frozenset(leaf.text for leaf in self.leaves() if leaf.kind == "counter")

    def __add__(self, other: Affine) -> Affine:
        return combine(self, other, 1)

    def __sub__(self, other: Affine) -> Affine:
        return combine(self, other, -1)

    def scaled(self, factor: int) -> Affine:
        if factor == 0:
            return Affine()
        return Affine(tuple((atom, coefficient * factor) for atom, coefficient in self.terms), self.constant * factor)

    def __str__(self) -> str:
        if self.is_one_atom:
            return self.terms[0][0].text
        text = ""
        for atom, coefficient in sorted(self.terms, key=lambda term: term[1] < 0):
            size = abs(coefficient)
            factor = atom.text if atom.op in _BARE else f"({atom.text})"
            piece = factor if size == 1 else f"{size} * {factor}"
            if not text:
                text = piece if coefficient > 0 else f"-{piece}"
            else:
                text += (" + " if coefficient > 0 else " - ") + piece
        if not text:
            return str(self.constant)
        if self.constant:
            text += (" + " if self.constant > 0 else " - ") + str(abs(self.constant))
        return text


Facts = tuple[Affine, ...]  # each known to be ≥ 0


def constant(value: int) -> Affine:
    return Affine((), value)


def launch_value(name: str, low: int | None, high: int | None = None) -> Affine:
    return Affine(((Atom(name, "launch", low, high), 1),))


def counter(name: str, low: int | None = 0, high: int | None = None) -> Affine:
    return Affine(((Atom(name, "counter", low, high), 1),))


def combine(a: Affine, b: Affine, sign: int) -> Affine:
    coefficients: dict[str, int] = {}
    atoms: dict[str, Atom] = {}
    for affine, factor in ((a, 1), (b, sign)):
        for atom, coefficient in affine.terms:
            atoms[atom.text] = atom
            coefficients[atom.text] = coefficients.get(atom.text, 0) + factor * coefficient
    terms = tuple((atoms[text], coefficients[text]) for text in sorted(coefficients) if coefficients[text])
    return Affine(terms, a.constant + sign * b.constant)


# --------------------------------------------------------------------------------------------------------------
# Bounds


def low(a: Affine, facts: Facts = ()) -> int | None:
    """A lower bound of ``a``, None if none is known. A fact f ≥ 0 gives a ≥ low(a − t·f) for every t ≥ 0."""
    best = _interval_low(a)
    for fact in facts:
        for times in _multiples(a, fact):
            found = _interval_low(a - fact.scaled(times))
            if found is not None and (best is None or found > best):
                best = found
    return best


def _multiples(a: Affine, fact: Affine) -> set[int]:
    """Multiples of ``fact`` that cancel an atom of ``a``."""
    in_fact = {atom.text: coefficient for atom, coefficient in fact.terms}
    shared = ((c, in_fact[atom.text]) for atom, c in a.terms if atom.text in in_fact)
    return {c // f for c, f in shared if c % f == 0 and c // f > 0}


def high(a: Affine, facts: Facts = ()) -> int | None:
    found = low(a.scaled(-1), facts)
    return None if found is None else -found


def _interval_low(a: Affine) -> int | None:
    total = a.constant
    for atom, coefficient in a.terms:
        bound = atom.low if coefficient > 0 else atom.high
        if bound is None:
            return None
        total += coefficient * bound
    return total


def at_least(a: Affine, bound: int, facts: Facts = ()) -> bool:
    """Is a ≥ bound in every execution (as far as we can prove)?"""
    found = low(a, facts)
    return found is not None and found >= bound


# --------------------------------------------------------------------------------------------------------------
# Operations. All take facts, because dividing and folding depend on what is known.


def multiply(a: Affine, b: Affine, facts: Facts) -> Affine:
    if a.is_constant:
        return b.scaled(a.constant)
    if b.is_constant:
        return a.scaled(b.constant)
    first, second = sorted((a, b), key=str)
    bound = 0 if at_least(a, 0, facts) and at_least(b, 0, facts) else None
    if at_least(a, 1, facts) and at_least(b, 1, facts):
        bound = 1
    return _operation("*", first, second, bound, None, f"{_operand(first)} * {_operand(second)}")


def divide(a: Affine, b: Affine, facts: Facts) -> Affine:
    """C division by b ≥ 1. It is floor division, and splits into parts, only where a ≥ 0."""
    _require(a, b, facts, "/")
    if not b.is_constant or not at_least(a, 0, facts):
        return _quotient("/", a, b, facts)
    quotient, rest = _split(a, b.constant)
    if rest.constant == b.constant - 1 and not rest.is_constant:
        return quotient + _quotient("cdiv", Affine(rest.terms), b, facts)
    return quotient + _quotient("/", rest, b, facts)


def round_up_divide(a: Affine, b: Affine, facts: Facts) -> Affine:
    """cdiv(a, b), in C (a + b − 1) / b, for b ≥ 1; see divide."""
    _require(a, b, facts, "cdiv")
    if not b.is_constant or not at_least(a, 1 - b.constant, facts):
        return _quotient("cdiv", a, b, facts)
    quotient, rest = _split(a, b.constant)
    return quotient + _quotient("cdiv", rest, b, facts)


def _quotient(op: str, a: Affine, b: Affine, facts: Facts) -> Affine:
    """``a / b`` or ``cdiv(a, b)`` as one atom, or a constant if the bounds leave one value."""
    text = f"cdiv({a}, {b})" if op == "cdiv" else f"{_operand(a)} / {_operand(b)}"
    if not b.is_constant:
        positive = op == "cdiv" and at_least(a, 1, facts)
        bound = int(positive) if at_least(a, 0, facts) and at_least(b, 1, facts) else None
        return _operation(op, a, b, bound, None, text)
    # C rounds negative quotients up, the analysis down: a lower bound is rounded down, an upper bound up.
    add = b.constant - 1 if op == "cdiv" else 0
    least, most = (None, None) if b.constant < 1 else (low(a, facts), high(a, facts))
    bounds = (
        None if least is None else (least + add) // b.constant,
        None if most is None else -(-(most + add) // b.constant) if most + add < 0 else (most + add) // b.constant,
    )
    if bounds[0] is not None and bounds[0] == bounds[1]:
        return constant(bounds[0])
    return _operation(op, a, b, bounds[0], bounds[1], text)


def remainder(a: Affine, b: Affine, facts: Facts) -> Affine:
    _require(a, b, facts, "%")
    if not b.is_constant:
        return _operation("%", a, b, 0, None, f"{_operand(a)} % {_operand(b)}")
    divisor = b.constant
    a = _unfold_remainders(a, divisor)
    # Whole multiples of the divisor drop out. Nothing else is touched: `(n - 1) % 2` keeps its relation to n.
    reduced = Affine(
        tuple((atom, c - int(c / divisor) * divisor) for atom, c in a.terms if c % divisor),
        a.constant - int(a.constant / divisor) * divisor,
    )
    if not at_least(reduced, 0, facts):
        reduced = Affine(reduced.terms, a.constant % divisor)
    if not at_least(reduced, 0, facts):
        reduced = a
    if at_least(reduced, 0, facts) and at_least(constant(divisor - 1) - reduced, 0, facts):
        return reduced
    return _operation("%", reduced, b, 0, divisor - 1, f"{_operand(reduced)} % {divisor}")


def _unfold_remainders(a: Affine, divisor: int) -> Affine:
    """(x % S + 1) → x + 1, for use under another % S: slots that count round stay one remainder."""
    result = constant(a.constant)
    for atom, coefficient in a.terms:
        inner = atom.op == "%" and atom.operands[1] == constant(divisor) and coefficient > 0
        result = result + (atom.operands[0] if inner else Affine(((atom, 1),))).scaled(coefficient)
    return result


def compare(op: str, a: Affine, b: Affine, facts: Facts) -> Affine:
    """``< <= > >= == !=`` as 0 or 1, decided where the bounds decide it."""
    if op in (">", ">="):
        return compare("<" if op == ">" else "<=", b, a, facts)
    gap = b - a
    if op in ("<", "<="):
        least = 1 if op == "<" else 0
        if at_least(gap, least, facts):
            return constant(1)
        if at_least(gap.scaled(-1), 1 - least, facts):
            return constant(0)
    else:
        if gap.is_constant or at_least(gap, 1, facts) or at_least(gap.scaled(-1), 1, facts):
            return constant(int((gap == constant(0)) == (op == "==")))
    return _operation(op, a, b, 0, 1, f"{_side(a)} {op} {_side(b)}")


def logical(op: str, a: Affine, b: Affine) -> Affine:
    """``&&`` and ``||``; operands are truth values (any integer)."""
    for known, other in ((a, b), (b, a)):
        if known.is_constant:
            decides = (known.constant != 0) == (op == "||")
            return constant(int(op == "||")) if decides else truth(other)
    return _operation(op, a, b, 0, 1, f"({a}) {op} ({b})")


def truth(a: Affine) -> Affine:
    """``a`` as 0 or 1."""
    if at_least(a, 0) and at_least(a.scaled(-1), -1):
        return a
    return compare("!=", a, constant(0), ())


def negate(a: Affine, facts: Facts) -> Affine:
    return compare("==", a, constant(0), facts)


def extreme(op: str, a: Affine, b: Affine, facts: Facts) -> Affine:
    """``max`` or ``min``."""
    for one, other in ((a, b), (b, a)):
        if at_least(one - other, 0, facts):
            return one if op == "max" else other
    lows, highs = (low(a, facts), low(b, facts)), (high(a, facts), high(b, facts))
    if op == "max":
        known = [bound for bound in lows if bound is not None]
        bound_low = max(known) if known else None
        bound_high = None if None in highs else max(bound for bound in highs if bound is not None)
    else:
        known = [bound for bound in highs if bound is not None]
        bound_high = min(known) if known else None
        bound_low = None if None in lows else min(bound for bound in lows if bound is not None)
    first, second = sorted((a, b), key=str)
    return _operation(op, first, second, bound_low, bound_high, f"{op}({first}, {second})")


def guard_facts(condition: Affine, holds: bool) -> Facts:
    """What follows from a condition being true (or false), as facts."""
    if len(condition.terms) != 1 or condition.constant or condition.terms[0][1] != 1:
        return ()
    atom = condition.terms[0][0]
    if not atom.operands:
        return ()
    a, b = atom.operands
    gap, one = b - a, constant(1)
    if atom.op in ("<", "<="):
        strict = atom.op == "<"
        if holds:
            return (gap - one if strict else gap,)
        return (gap.scaled(-1) if strict else gap.scaled(-1) - one,)
    if atom.op in ("==", "!="):
        if holds == (atom.op == "=="):
            return (gap, gap.scaled(-1))
        # Unequal, and known to lie on one side: at least one apart.
        return tuple(difference - one for difference in (gap, gap.scaled(-1)) if at_least(difference, 0))
    if (atom.op, holds) in (("&&", True), ("||", False)):
        return guard_facts(a, holds) + guard_facts(b, holds)
    return ()


def _operation(op: str, a: Affine, b: Affine, least: int | None, most: int | None, text: str) -> Affine:
    return Affine(((Atom(text, "operation", least, most, op, (a, b)), 1),))


def _split(a: Affine, divisor: int) -> tuple[Affine, Affine]:
    """a = divisor · quotient + rest, with 0 ≤ rest's constant < divisor and only indivisible terms in rest."""
    quotient, rest = [], []
    for atom, coefficient in a.terms:
        whole, left = divmod(coefficient, divisor)
        if left == 0:
            quotient.append((atom, whole))
        else:
            rest.append((atom, coefficient))
    whole, left = divmod(a.constant, divisor)
    return Affine(tuple(quotient), whole), Affine(tuple(rest), left)


def _require(a: Affine, b: Affine, facts: Facts, op: str) -> None:
    """Refuse what C and floor division may see differently. A launch-time value is only a name to us: no matter."""
    if a.launch_only and b.launch_only and op != "%":
        return
    if not at_least(b, 1, facts):
        raise Untranslatable(f"the divisor of `{_shown(op, a, b)}` is not provably positive")
    if not at_least(a, 0, facts):
        raise Untranslatable(f"`{a}` in `{_shown(op, a, b)}` is not provably ≥ 0, and C rounds negative values up")


def _shown(op: str, a: Affine, b: Affine) -> str:
    return f"cdiv({a}, {b})" if op == "cdiv" else f"{_operand(a)} {op} {_operand(b)}"


def _operand(a: Affine) -> str:
    """As an operand: in parentheses unless nothing can be mistaken. Equal texts must mean equal values."""
    bare = (a.is_constant and a.constant >= 0) or (a.is_one_atom and a.terms[0][0].op in _BARE)
    return str(a) if bare else f"({a})"


def _side(a: Affine) -> str:
    """As one side of a comparison: sums need no parentheses there."""
    return f"({a})" if a.is_one_atom and a.terms[0][0].op not in _BARE else str(a)


# Atoms that need no parentheses: names and calls.
_BARE = ("", "cdiv", "max", "min")
