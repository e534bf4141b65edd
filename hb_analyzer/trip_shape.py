"""What the expressions of a program ask of the trip counts that are tried: see ``trips.py``.

Thresholds, factors, moduli and divisors of conditions and slots, conditions of a period, and how far and how slowly
running counters get.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import lcm, prod

from hb_analyzer.composite_trips import UnboundedError
from hb_analyzer.model import BinOp, Const, If, IntExpr, Loop, Name, Statement, Step, evaluate, names_in
from hb_analyzer.relations import COMPARISONS, atoms_of
from hb_analyzer.traverse import expressions_of

_THRESHOLDS = {*COMPARISONS, "max", "min"}


@dataclass
class Shape:
    """What the expressions of a program ask of the bound: thresholds, factors, moduli, divisors."""

    parameters: set[str]
    offset: int = 0
    scale: int = 1
    factors: dict[IntExpr, int] = field(default_factory=dict)  # of conditions that relate several counts
    phases: int = 1  # stretches of iterations of one loop, each of a length that only the launch knows
    moduli: set[int] = field(default_factory=set)
    divisors: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    compared: set[str] = field(default_factory=set)  # names in conditions and trip counts
    periods: dict[str, int] = field(default_factory=dict)  # parameter -> M of the conditions in its loops
    slow: dict[str, dict[IntExpr, int]] = field(default_factory=dict)  # parameter -> conditions of Steps of one role, M
    stretches: dict[str, int] = field(default_factory=dict)  # parameter -> how much more slowly counters run there
    stepped: Counter[str] = field(default_factory=Counter)  # how far running counters get outside of variable loops

    def role(self, body: tuple[Statement, ...]) -> None:
        self.slow = {}
        self.body(body, {})
        for name, periods in self.slow.items():
            self.stretches[name] = lcm(self.stretches.get(name, 1), prod(periods.values()))

    def body(self, body: tuple[Statement, ...], own: Mapping[str, frozenset[str]], times: int = 1) -> None:
        """``own``: the names in the trip counts of the loops around, by loop counter. ``times``: how often this runs;
        0 if only the launch knows."""
        for statement in body:
            if isinstance(statement, Loop):
                self.trip(statement.trip)
                inside = times * max(0, statement.trip.value) if isinstance(statement.trip, Const) else 0
                changing = sum(1 if name in own else 2 for name in names_in(statement.trip) - self.parameters)
                if changing + sum(bool(names - self.parameters) for names in own.values()) > 1 and _steps(
                    statement.body
                ):
                    # Its remainders recur after a multiple of their modulus that depends on the depth.
                    raise UnboundedError(f"a counter runs on in a loop of count {statement.trip}, which itself changes")
                self.body(statement.body, {**own, statement.counter: names_in(statement.trip)}, inside)
            elif isinstance(statement, If):
                self.condition(statement.condition, own)
                if _steps(statement.then) != _steps(statement.orelse):
                    for name in self.concerned(statement.condition, own):
                        self.slow.setdefault(name, {})[statement.condition] = _period(statement.condition)
                self.body((*statement.then, *statement.orelse), own, times)
            elif isinstance(statement, Step):
                self.stepped[statement.counter] += times * abs(statement.by)
            else:
                for expr in expressions_of(statement):
                    self.visit(expr)

    def trip(self, expr: IntExpr) -> None:
        """A trip count: a constant, or names with coefficients ±1 and a constant, or max/min of such."""
        if isinstance(expr, Const):
            return
        if isinstance(expr, BinOp) and expr.op in ("max", "min"):
            self.trip(expr.left)
            self.trip(expr.right)
        elif (constant := _unit_linear(expr)) is None:
            raise UnboundedError(f"the trip count {expr} is not a sum of counts and constants")
        else:
            self.offset += abs(constant)
        # A count such as N − M, or N − t in a loop over t, is large only if N exceeds M or t by that much.
        self.phases = max(self.phases, len(names_in(expr)))
        self.compared |= names_in(expr)
        self.visit(expr)

    def condition(self, expr: IntExpr, own: Mapping[str, frozenset[str]]) -> None:
        """A branch. One on a counter and another count cuts the loop in two stretches, unless that is the loop's own
        trip count, so that the cut lies at a fixed distance from its end."""
        for atom in atoms_of(expr):
            names = names_in(atom)
            ends: set[str] = set().union(*(own.get(name, ()) for name in names))
            self.phases += max(0, len(_compared(atom) - ends) - 1)
            self.factors[atom] = _factor(atom)
            self.compared |= names
        if _period(expr) > 1:
            for name in self.concerned(expr, own):
                self.periods[name] = lcm(self.periods.get(name, 1), _period(expr))
        threshold = self.visit(expr)  # of `i − 30` as a truth value, say
        self.offset += threshold

    def concerned(self, expr: IntExpr, own: Mapping[str, frozenset[str]]) -> set[str]:
        """The parameters through whose loops a condition runs; all of them if it depends on a running counter."""
        found: set[str] = set()
        left = [*names_in(expr)]
        while left:
            name = left.pop()
            if name in self.parameters:
                found.add(name)
            elif name in own:
                left += own[name]
            else:
                return self.parameters
        return found

    def visit(self, expr: IntExpr) -> int:
        """Collects from ``expr``; returns the sum of its constants that can act as thresholds."""
        if isinstance(expr, Const):
            return abs(expr.value)
        if isinstance(expr, Name):
            self.names.add(expr.name)
            return 0
        left, right = self.visit(expr.left), self.visit(expr.right)
        op = expr.op
        if op in ("%", "/", "cdiv"):
            if not isinstance(expr.right, Const):
                raise UnboundedError(f"{expr} divides by something that only the launch knows")
            if names_in(expr.left):
                if op == "%":
                    self.moduli.add(max(1, abs(expr.right.value)))
                else:
                    self.divisors.add(_product(expr, ("/", "cdiv")))
            return 0 if op == "%" else left
        if op == "*":
            if names_in(expr.left) and names_in(expr.right):
                raise UnboundedError(f"{expr} multiplies two counts")
            if names_in(expr):
                self.scale = max(self.scale, _product(expr, ("*",)))
            return left * right
        if op in _THRESHOLDS:
            self.offset += (left + right) * prod(self.divisors)
            return 0
        return left + right


def _product(expr: IntExpr, operators: tuple[str, ...]) -> int:
    """The largest product of constants by which a count is multiplied, or divided, inside each other."""
    if not isinstance(expr, BinOp):
        return 1
    largest = max(_product(expr.left, operators), _product(expr.right, operators))
    if expr.op in operators:
        for side in (expr.left, expr.right):
            # A name is no constant, and what divides by zero is refused where it is run.
            with suppress(KeyError, ZeroDivisionError):
                largest *= max(1, abs(evaluate(side, {})))
    return largest


def _compared(expr: IntExpr) -> frozenset[str]:
    """The names of which not only a remainder counts."""
    if isinstance(expr, BinOp) and expr.op != "%":
        return _compared(expr.left) | _compared(expr.right)
    return names_in(expr) if isinstance(expr, Name) else frozenset()


def _factor(condition: IntExpr) -> int:
    """The factor of a count in a condition that relates it to another one: it may have to be so much larger."""
    shape = Shape(set())
    shape.visit(condition)
    return shape.scale if len(names_in(condition)) > 1 else 1


def _period(condition: IntExpr) -> int:
    """After how many iterations what a condition says of remainders recurs; 1 if it mentions none."""
    shape = Shape(set())
    shape.visit(condition)
    return lcm(1, *shape.moduli) * (prod(shape.divisors) if shape.moduli else 1)


def _steps(
    body: tuple[Statement, ...], trips: tuple[IntExpr, ...] = ()
) -> Counter[tuple[str, int, tuple[IntExpr, ...]]]:
    """The Steps of a branch, each with the trip counts of the loops of the branch around it."""
    found: Counter[tuple[str, int, tuple[IntExpr, ...]]] = Counter()
    for statement in body:
        if isinstance(statement, Step):
            found[statement.counter, statement.by, trips] += 1
        elif isinstance(statement, Loop):
            found += _steps(statement.body, (*trips, statement.trip))
        elif isinstance(statement, If):
            for branch in (statement.then, statement.orelse):
                found += _steps(branch, (*trips, statement.condition))
    return found


def _unit_linear(expr: IntExpr) -> int | None:
    """The constant of an expression that is ± names ± constants; None for any other."""
    if isinstance(expr, Const):
        return expr.value
    if isinstance(expr, Name):
        return 0
    if expr.op not in ("+", "-"):
        return None
    left, right = _unit_linear(expr.left), _unit_linear(expr.right)
    if left is None or right is None:
        return None
    return left + right if expr.op == "+" else left - right
