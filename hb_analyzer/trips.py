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
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import lcm, prod

from hb_analyzer.composite_trips import UnboundedError, name_composite_trips
from hb_analyzer.model import (
    Const,
    Drain,
    If,
    Loop,
    Name,
    Program,
    Role,
    Statement,
    Trigger,
    names_in,
)
from hb_analyzer.relations import name_relations
from hb_analyzer.traverse import expressions_of, statements, walk
from hb_analyzer.trip_shape import Shape

Values = dict[str, int]
_VALUATION_LIMIT = 20_000


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
    shape = Shape({parameter.name for parameter in program.parameters})
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
