"""Recognises programs of one loop, for which the distance form decides all trip counts at once.

Every role is straight-line operations, at most one loop, and more straight-line operations; loops of constant count
before and after it are laid out. The loops run N + c times, N being the program's one parameter; a role that runs
longer than another has its first iterations laid out before its loop, so that all loops run the same M times. Slots
are constants or, in and after the loop, (i + c) mod S, i being the iteration (M after the loop). Anything else is
outside the class: :class:`OutOfClassError` says what, and unrolling alone decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hb_analyzer.model import (
    OPERATORS,
    ZERO,
    Access,
    Barrier,
    BinOp,
    Commit,
    Const,
    Drain,
    If,
    IntExpr,
    Loop,
    Name,
    Opaque,
    Program,
    Role,
    Statement,
    Step,
    Trigger,
    Wait,
)

PRE, LOOP, POST = 0, 1, 2


class OutOfClassError(Exception):
    """The program is not of the single-loop class; the message says why."""


@dataclass(frozen=True)
class Linear:
    """constant + coefficient·i, taken modulo ``modulus`` if that is not 0."""

    constant: int
    coefficient: int = 0
    modulus: int = 0


@dataclass(frozen=True)
class Slot:
    """A constant slot, or (i + index) mod S if ``ring``, i being the iteration, or M after the loop."""

    index: int
    ring: bool = False


@dataclass(frozen=True, eq=False)
class Placed:
    """An operation at its place: role, segment, position in it, and its slots in normal form. Compared by identity."""

    op: Access | Trigger | Wait | Commit | Drain | Barrier
    role: int
    segment: int
    position: int
    slot: Slot
    event_slot: Slot


@dataclass
class Segments:
    """One role: the operations before its loop, of one iteration, and after it."""

    parts: tuple[list[Placed], list[Placed], list[Placed]] = field(default_factory=lambda: ([], [], []))
    has_loop: bool = False

    def all(self) -> list[Placed]:
        return [*self.parts[PRE], *self.parts[LOOP], *self.parts[POST]]


@dataclass(frozen=True)
class Trip:
    """A trip count: ``parameter`` + ``offset``."""

    parameter: str
    offset: int


def common_trip(program: Program) -> Trip:
    """M: the trip count that all loops share once longer ones have their first iterations laid out. Raises
    OutOfClassError if there is none."""
    trips = [
        _trip(statement.trip, program)
        for role in program.roles
        for statement in role.body
        if isinstance(statement, Loop) and not isinstance(statement.trip, Const)
    ]
    if not trips:
        raise OutOfClassError("no loop of variable count")
    if len({trip.parameter for trip in trips}) > 1:
        raise OutOfClassError("several trip counts")
    return min(trips, key=lambda trip: trip.offset)


def _trip(expr: IntExpr, program: Program) -> Trip:
    base, offset = expr, 0
    if isinstance(expr, BinOp) and expr.op in ("+", "-") and isinstance(expr.right, Const):
        base, offset = expr.left, expr.right.value if expr.op == "+" else -expr.right.value
    if not isinstance(base, Name) or base.name not in {parameter.name for parameter in program.parameters}:
        raise OutOfClassError(f"the trip count {expr}")
    return Trip(base.name, offset)


def single_loop(program: Program) -> list[Segments]:
    """The roles of ``program`` in normal form. Raises OutOfClassError."""
    common = common_trip(program)
    result = [_Reader(program, number, common).read(role) for number, role in enumerate(program.roles)]
    _classify_loopless(result)
    return result


class _Reader:
    """Reads one role; ``env`` holds counters as linear functions of the iteration."""

    def __init__(self, program: Program, role: int, common: Trip) -> None:
        self.program = program
        self.role = role
        self.common = common
        self.slots = {("buffer", buffer.name): buffer.slots for buffer in program.buffers}
        self.slots |= {("event", event.name): event.slots for event in program.events}
        self.segment = PRE
        self.env: dict[str, Linear] = {}
        self.result = Segments()

    def read(self, role: Role) -> Segments:
        self.env = dict.fromkeys(_counters(role.body), Linear(0))
        for statement in role.body:
            if isinstance(statement, Loop) and not isinstance(statement.trip, Const):
                self._main_loop(statement)
            else:
                self._straight(statement)
        return self.result

    def _main_loop(self, loop: Loop) -> None:
        if self.result.has_loop:
            raise OutOfClassError("a second loop")
        self.result.has_loop = True
        if any(isinstance(statement, Loop) for statement in loop.body):
            raise OutOfClassError("a nested loop")
        first = _trip(loop.trip, self.program).offset - self.common.offset
        for i in range(first):
            self.env[loop.counter] = Linear(i)
            for statement in loop.body:
                self._straight(statement)
        self.segment = LOOP
        start = dict(self.env)
        steps: dict[str, int] = {}
        for statement in loop.body:
            if isinstance(statement, Step):
                steps[statement.counter] = steps.get(statement.counter, 0) + statement.by
        for name, by in steps.items():
            self.env[name] = Linear(start[name].constant, by)
        self.env[loop.counter] = Linear(first, 1)
        for statement in loop.body:
            self._straight(statement)
        # After the loop, the iteration stands for M.
        self.segment = POST
        del self.env[loop.counter]
        for name, by in steps.items():
            self.env[name] = Linear(start[name].constant, by)
        self.env[self.common.parameter] = Linear(-self.common.offset, 1)

    def _straight(self, statement: Statement) -> None:
        if isinstance(statement, Loop):
            assert isinstance(statement.trip, Const)
            for i in range(statement.trip.value):
                self.env[statement.counter] = Linear(i)
                for inner in statement.body:
                    self._straight(inner)
            self.env.pop(statement.counter, None)
        elif isinstance(statement, If):
            raise OutOfClassError("a condition")
        elif isinstance(statement, Step):
            old = self.env.get(statement.counter)
            if old is not None:
                self.env[statement.counter] = Linear(old.constant + statement.by, old.coefficient)
        elif not isinstance(statement, Opaque):
            slot = event_slot = Slot(0)
            if isinstance(statement, Access):
                slot = self._slot(statement.slot, ("buffer", statement.buffer))
                if statement.event is not None:
                    event_slot = self._slot(statement.event_slot, ("event", statement.event))
            elif isinstance(statement, (Trigger, Wait)):
                slot = event_slot = self._slot(statement.slot, ("event", statement.event))
            part = self.result.parts[self.segment]
            part.append(Placed(statement, self.role, self.segment, len(part), slot, event_slot))

    def _slot(self, expr: IntExpr, key: tuple[str, str]) -> Slot:
        value = Linear(0) if expr is ZERO else self._linear(expr)
        if value.coefficient == 0:
            return Slot(value.constant)
        if value.modulus != self.slots[key] or value.coefficient != 1:
            raise OutOfClassError(f"slot {expr} is not (i + c) mod {self.slots[key]}")
        return Slot(value.constant, ring=True)

    def _linear(self, expr: IntExpr) -> Linear:
        if isinstance(expr, Const):
            return Linear(expr.value)
        if isinstance(expr, Name):
            if expr.name not in self.env:
                raise OutOfClassError(f"{expr.name} depends on the trip count")
            return self.env[expr.name]
        left, right = self._linear(expr.left), self._linear(expr.right)
        if left.coefficient == 0 and right.coefficient == 0:
            return Linear(OPERATORS[expr.op](left.constant, right.constant))
        if expr.op == "%" and right.coefficient == 0 and not left.modulus:
            modulus = right.constant
            coefficient = left.coefficient % modulus
            return Linear(left.constant % modulus, coefficient, modulus if coefficient else 0)
        if expr.op in ("+", "-") and not left.modulus and not right.modulus:
            sign = 1 if expr.op == "+" else -1
            return Linear(left.constant + sign * right.constant, left.coefficient + sign * right.coefficient)
        raise OutOfClassError(f"{expr} is not linear in the iteration")


def _counters(body: tuple[Statement, ...]) -> set[str]:
    names: set[str] = set()
    for statement in body:
        if isinstance(statement, Step):
            names.add(statement.counter)
        elif isinstance(statement, Loop):
            names |= _counters(statement.body)
    return names


def _classify_loopless(roles: list[Segments]) -> None:
    """Splits roles without a loop into what runs beside the others' prologues and what waits for their epilogues.

    Such a role is past the loop from its first barrier whose other members meet after their loops, or its first wait
    for an event that is triggered after the loops only.
    """
    changed = True
    while changed:
        changed = False
        late_barriers = {p.op.name for r in roles for p in r.parts[POST] if isinstance(p.op, Barrier)}
        early_barriers = {p.op.name for r in roles if r.has_loop for p in r.parts[PRE] if isinstance(p.op, Barrier)}
        triggered = [{p.op.event for r in roles for p in r.parts[s] if isinstance(p.op, Trigger)} for s in range(3)]
        late_events = triggered[POST] - triggered[PRE] - triggered[LOOP]
        for role in roles:
            if role.has_loop:
                continue
            for position, placed in enumerate(role.parts[PRE]):
                op = placed.op
                late = (isinstance(op, Barrier) and op.name in late_barriers - early_barriers) or (
                    isinstance(op, Wait) and op.event in late_events
                )
                if late:
                    moved = role.parts[PRE][position:]
                    del role.parts[PRE][position:]
                    role.parts[POST][:0] = [replace(p, segment=POST) for p in moved]
                    changed = True
                    break
