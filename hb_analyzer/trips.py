"""Which parameter values to unroll, so that what holds at them holds for every trip count.

The order between iterations of loops repeats: an edge (p, i) → (q, i + d) exists for every i, d is at most the depth of
a ring, and slots repeat with the least common multiple L of all slot counts and moduli. A shortest path from a write
w to a clobbering write x and on to a read r passes every ring at most once on each leg, so it spans at most 2·S
iterations, S being the summed depth of the rings that start with free slots (at least the deepest ring); the slots of
w and r differ by at most L. Hence whatever happens at a larger trip count happens, shifted by a multiple of L, at one
of 0 … 2·S + L. Constants in conditions (look-ahead, peeled iterations) shift the places where behaviour changes, so
they are added; factors stretch the period, and a condition on two counts cuts a loop into stretches of any length, so
these multiply. Independent and nested counts take the Cartesian product.

Of a condition that holds in every M-th iteration only, w may wait until iteration M − 1, the next x up to M iterations
more, and the next r M after that (more would leave x unordered with some w or r). So 3·M are added for the trip counts
concerned. A counter that is stepped under such a condition runs up to M times more slowly, which stretches everything.

What these rules do not cover (counts that are products of counters, two counts whose relation is not visible) is
reported, never guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from math import lcm, prod

from hb_analyzer.composite_trips import UnboundedError, name_composite_trips
from hb_analyzer.model import (
    BinOp,
    Const,
    Drain,
    If,
    IntExpr,
    Loop,
    Name,
    Program,
    Role,
    Statement,
    Step,
    Trigger,
    evaluate,
    names_in,
)
from hb_analyzer.relations import atoms_of, name_relations
from hb_analyzer.traverse import expressions_of, statements, walk

Values = dict[str, int]
_VALUATION_LIMIT = 20_000
_COMPARISONS = {"<", "<=", ">", ">=", "==", "!=", "max", "min"}


@dataclass(frozen=True)
class Domain:
    """The program with its composite trip counts named, and the values of each parameter to try.

    ``prefix`` names a parameter whose smaller values need not be tried (see :func:`_prefix_parameter`)."""

    program: Program
    ranges: dict[str, range]
    bound: int  # 2·S + L and the constants
    period: int  # L
    prefix: str | None = None

    def valuations(self, whole: bool = True) -> Iterator[Values]:
        """The Cartesian product, small values first. ``whole=False``: only the largest value of ``prefix``."""
        names = list(self.ranges)
        axes = [self.ranges[name][-1:] if name == self.prefix and not whole else self.ranges[name] for name in names]
        for values in sorted(product(*axes), key=lambda v: (sum(v), v)):
            yield dict(zip(names, values, strict=True))


def domain_of(program: Program) -> Domain:
    """The trip counts that decide ``program``. Raises UnboundedError."""
    program = name_composite_trips(name_relations(program))
    shape = _Shape({parameter.name for parameter in program.parameters})
    for role in program.roles:
        shape.role(role.body)
    slots = [buffer.slots for buffer in program.buffers] + [event.slots for event in program.events]
    period = lcm(1, *slots, *shape.moduli) * prod(shape.divisors)
    begun = sum(count for counter, count in shape.stepped.items() if counter in shape.compared)
    bound = 2 * _depth(program) * prod(shape.divisors) + period + shape.offset + begun
    stretch = max(shape.scale, prod(shape.factors.values())) * shape.phases
    ranges: dict[str, range] = {}
    used = shape.names
    for parameter in program.parameters:
        if parameter.name not in used:
            continue
        most = bound + 3 * shape.periods.get(parameter.name, 0)
        most *= stretch * shape.stretches.get(parameter.name, 1)
        high = max(0, parameter.minimum) + most
        if parameter.maximum is not None:
            high = min(high, parameter.maximum)
        if high < parameter.minimum:
            raise UnboundedError(f"parameter {parameter.name} has no value: its maximum is below its minimum")
        ranges[parameter.name] = range(parameter.minimum, high + 1)
    if prod(map(len, ranges.values())) > _VALUATION_LIMIT:
        raise UnboundedError(
            f"too many combinations of trip counts: {' × '.join(f'{len(r)} of {n}' for n, r in ranges.items())}"
        )
    return Domain(program, ranges, bound * stretch, period, _prefix_parameter(program))


def _depth(program: Program) -> int:
    """How many iterations a shortest path can span in one direction: the deepest ring, or the summed depth of the rings
    that start with free slots (set in a loop of variable count, and before it), or the matrix groups left pending."""
    advance: Counter[str] = Counter()
    for role in program.roles:
        advance |= _advance(role.body)
    looped = {inner.event for body in _variable_loops(program) for inner in walk(body) if isinstance(inner, Trigger)}
    credit = sum(
        event.slots * (event.initial + -(-advance[event.name] // event.slots))
        for event in program.events
        if event.name in looped
    )
    pending = max((drain.pending for drain in statements(program) if isinstance(drain, Drain)), default=0)
    slots = [buffer.slots for buffer in program.buffers] + [event.slots for event in program.events]
    return max([1, credit, pending, *slots])


def _advance(body: tuple[Statement, ...]) -> Counter[str]:
    """How often each event is triggered outside the loops of variable count."""
    counts: Counter[str] = Counter()
    for statement in body:
        if isinstance(statement, Trigger):
            counts[statement.event] += 1
        elif isinstance(statement, Loop) and isinstance(statement.trip, Const):
            for event, count in _advance(statement.body).items():
                counts[event] += count * max(0, statement.trip.value)
        elif isinstance(statement, If):
            counts += _advance(statement.then) + _advance(statement.orelse)
    return counts


def _variable_loops(program: Program) -> Iterator[tuple[Statement, ...]]:
    return (s.body for s in statements(program) if isinstance(s, Loop) and not isinstance(s.trip, Const))


@dataclass
class _Shape:
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
        if op in _COMPARISONS:
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
    shape = _Shape(set())
    shape.visit(condition)
    return shape.scale if len(names_in(condition)) > 1 else 1


def _period(condition: IntExpr) -> int:
    """After how many iterations what a condition says of remainders recurs; 1 if it mentions none."""
    shape = _Shape(set())
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


# --------------------------------------------------------------------------------------------------------------
# The tile loop of persistent kernels


def _prefix_parameter(program: Program) -> str | None:
    """A parameter M such that running M' < M tiles is a prefix of running M.

    That is so if M occurs only as the trip count of loops that end their roles. If moreover no edge of the graph for M
    leads from a later tile to an earlier one, the graph for M' is the part of it before tile M', with the same order
    and the same ends, so every defect, conflict and clobber at M' shows at M.
    """
    last = {role.body[-1].trip for role in program.roles if role.body and isinstance(role.body[-1], Loop)}
    candidates = {trip.name for trip in last if isinstance(trip, Name)} & {p.name for p in program.parameters}
    for name in sorted(candidates):
        if all(_only_ends(role, name) for role in program.roles) and _has_inner(program, name):
            return name
    return None


def _only_ends(role: Role, name: str) -> bool:
    body = role.body
    if body and isinstance(body[-1], Loop) and body[-1].trip == Name(name):
        body = (*body[:-1], *body[-1].body)
    return not any(name in names_in(expr) for statement in walk(body) for expr in expressions_of(statement))


def _has_inner(program: Program, name: str) -> bool:
    """Is there another parameter? With one loop alone the small trip counts are cheap, and no shortcut is taken."""
    used = {n for statement in statements(program) for expr in expressions_of(statement) for n in names_in(expr)}
    return any(parameter.name in used for parameter in program.parameters if parameter.name != name)
