"""Runs a program at fixed parameter values: every role by itself, in program order.

:class:`Unroller` gives an :class:`~hb_analyzer.unrolling.Unrolling`, whose ``link`` then matches settings with waits.
Between these two steps the caller can learn which instances trigger which slots, and name the events that order
nothing. Statements are compiled into functions once, and run at many parameter values.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping

from hb_analyzer.model import (
    OPERATORS,
    Access,
    Barrier,
    Commit,
    Const,
    Drain,
    If,
    IntExpr,
    Loop,
    Name,
    Operation,
    Program,
    Statement,
    Step,
    Trigger,
    Wait,
)
from hb_analyzer.unrolling import OUTSIDE, AccessInstance, ModelError, SlotKey, TooLargeError, Unrolling

Env = dict[str, int]
Value = Callable[[Env], int]
Action = Callable[["_RoleWalk"], None]

NODE_LIMIT = 400_000  # over all trip counts of a program: a second or two
RUN_LIMIT = 25_000  # at one trip count: the closure of so many nodes takes some 100 MB


def compile_expression(expr: IntExpr) -> Value:
    """``expr`` as a function of the environment: the same value as ``model.evaluate``, faster in loops."""
    if isinstance(expr, Const):
        value = expr.value
        return lambda env: value
    if isinstance(expr, Name):
        return operator.itemgetter(expr.name)
    apply = OPERATORS[expr.op]
    left, right = compile_expression(expr.left), compile_expression(expr.right)
    if isinstance(expr.right, Const):
        constant = expr.right.value
        if isinstance(expr.left, Name):
            name = expr.left.name
            return lambda env: apply(env[name], constant)
        return lambda env: apply(left(env), constant)
    return lambda env: apply(left(env), right(env))


class Unroller:
    """Unrolls one program at any number of parameter values; compiled statements are kept between runs."""

    def __init__(self, program: Program, tiles: str | None = None, limit: int = NODE_LIMIT) -> None:
        """``tiles``: the parameter whose loops at the ends of the roles number the tiles of nodes.
        ``limit``: nodes over all runs of this object; more raises TooLargeError."""
        self.program = program
        self.tiles = tiles
        self.budget = limit
        self._buffer_slots = {buffer.name: buffer.slots for buffer in program.buffers}
        self._event_slots = {event.name: event.slots for event in program.events}
        self._counters = [sorted(_step_counters(role.body)) for role in program.roles]
        self._compiled: dict[int, list[Action]] = {}  # by role

    def run(self, values: Mapping[str, int]) -> Unrolling:
        """The program at these parameter values, not yet linked. Raises ModelError or TooLargeError."""
        result = Unrolling(self.program, dict(values))
        for index, role in enumerate(self.program.roles):
            env = {**values, **dict.fromkeys(self._counters[index], 0)}
            walk = _RoleWalk(self, result, index, env)
            try:
                if index not in self._compiled:
                    self._compiled[index] = self._role(role.body)
                for action in self._compiled[index]:
                    action(walk)
                walk.end()
            except KeyError as error:
                raise ModelError(f"role {role.name}: {error.args[0]!r} has no value here") from None
            except ZeroDivisionError:
                raise ModelError(f"role {role.name}: division by zero in an index or trip count") from None
        return result

    # ----------------------------------------------------------------------------------------------------------
    # Statements as functions of the walk

    def _role(self, body: tuple[Statement, ...]) -> list[Action]:
        last = body[-1] if body else None
        if isinstance(last, Loop) and isinstance(last.trip, Name) and last.trip.name == self.tiles:
            return [*self._block(body[:-1]), self._loop(last, outermost=True)]
        return self._block(body)

    def _block(self, body: tuple[Statement, ...]) -> list[Action]:
        return [self._statement(statement) for statement in body]

    def _statement(self, statement: Statement) -> Action:
        if isinstance(statement, Loop):
            return self._loop(statement)
        if isinstance(statement, If):
            return self._branch(statement)
        if isinstance(statement, Access):
            slot = self._slot("buffer", statement.buffer, self._buffer_slots, statement.slot)
            event_slot = self._slot("event", str(statement.event), self._event_slots, statement.event_slot)
            return lambda walk: walk.access(statement, slot, event_slot)
        if isinstance(statement, Trigger):
            slot = self._slot("event", statement.event, self._event_slots, statement.slot)
            return lambda walk: walk.synchronise(statement, slot, walk.triggers)
        if isinstance(statement, Wait):
            slot = self._slot("event", statement.event, self._event_slots, statement.slot)
            return lambda walk: walk.synchronise(statement, slot, walk.waits)
        if isinstance(statement, Step):
            return lambda walk: walk.step(statement)
        if isinstance(statement, Commit):
            return lambda walk: walk.commit()
        if isinstance(statement, Drain):
            return lambda walk: walk.drain(statement)
        if isinstance(statement, Barrier):
            return lambda walk: walk.barrier(statement)
        return lambda walk: None  # Opaque: its buffers and events are refused before any unrolling

    def _loop(self, loop: Loop, outermost: bool = False) -> Action:
        trip, body = compile_expression(loop.trip), self._block(loop.body)
        return lambda walk: walk.loop(loop.counter, trip(walk.env), body, outermost)

    def _branch(self, branch: If) -> Action:
        condition = compile_expression(branch.condition)
        then, orelse = self._block(branch.then), self._block(branch.orelse)

        def action(walk: _RoleWalk) -> None:
            for chosen in then if condition(walk.env) else orelse:
                chosen(walk)

        return action

    @staticmethod
    def _slot(kind: str, name: str, declared: Mapping[str, int], expr: IntExpr) -> Value:
        """``expr`` as a slot of this buffer or event, checked when it is used."""
        value, slots = compile_expression(expr), declared.get(name)

        def slot(env: Env) -> int:
            number = value(env)
            if slots is None:
                raise ModelError(f"{kind} {name} is not declared")
            if not 0 <= number < slots:
                raise ModelError(f"slot {number} of {kind} {name} is out of range (it has {slots})")
            return number

        return slot


class _RoleWalk:
    """One role instance executing: its program-order chain, group state and counts."""

    def __init__(self, unroller: Unroller, result: Unrolling, role: int, env: Env) -> None:
        self.unroller = unroller
        self.budget = unroller.budget
        self.result = result
        self.role = role
        self.env = env
        self.iteration: tuple[int, ...] = ()
        self.tile = OUTSIDE
        self.last: int | None = None  # last node of the chain
        self.open_group: list[AccessInstance] = []
        self.groups: list[list[AccessInstance]] = []
        self.drained = 0  # groups known to be complete
        self.meetings: dict[str, int] = {}
        self.triggers: defaultdict[SlotKey, list[int]] = defaultdict(list)
        self.waits: defaultdict[SlotKey, list[int]] = defaultdict(list)

    def end(self) -> None:
        self.unroller.budget = self.budget
        for own, counted in ((self.triggers, self.result.triggers), (self.waits, self.result.waits)):
            for key, nodes in own.items():
                counted.setdefault(key, {})[self.role] = nodes

    def loop(self, counter: str, count: int, body: list[Action], outermost: bool) -> None:
        env, iteration = self.env, self.iteration
        outer = env.get(counter)
        for i in range(count):
            self.spend()  # iterations without nodes take time too
            env[counter] = i
            self.iteration = (*iteration, i)
            if outermost:
                self.tile = i
            for action in body:
                action(self)
        self.iteration = iteration
        if outer is None:
            env.pop(counter, None)
        else:
            env[counter] = outer

    def step(self, step: Step) -> None:
        self.env[step.counter] += step.by

    def spend(self) -> None:
        self.budget -= 1
        if self.budget < 0 or len(self.result.preds) > RUN_LIMIT:
            raise TooLargeError

    def append(self, op: Operation, slot: int = 0) -> int:
        """A new node at the end of this role's chain."""
        self.spend()
        preds = [] if self.last is None else [self.last]
        self.last = self.result.add(op, self.role, self.iteration, slot, self.tile, preds)
        return self.last

    def access(self, op: Access, slot_of: Value, event_slot_of: Value) -> None:
        result = self.result
        slot = slot_of(self.env)
        node = self.append(op, slot)
        instance = AccessInstance(len(result.accesses), op, slot, node)
        result.accesses.append(instance)
        if op.ends == "here":
            instance.end = node
        elif op.ends == "group":
            self.open_group.append(instance)
        elif op.ends == "event":
            if op.event is None:
                raise ModelError(f"an access of {op.buffer} ends at an event but names none")
            key = (op.event, event_slot_of(self.env))
            # Bytes belong to the setting that this role's next trigger of the slot closes.
            before = len(self.triggers.get(key, ()))
            result.copies.setdefault(key, []).append((before, instance.index))

    def synchronise(self, op: Trigger | Wait, slot_of: Value, counted: defaultdict[SlotKey, list[int]]) -> None:
        slot = slot_of(self.env)
        counted[op.event, slot].append(self.append(op, slot))

    def commit(self) -> None:
        self.groups.append(self.open_group)
        self.open_group = []

    def drain(self, op: Drain) -> None:
        node = self.append(op)
        while self.drained < len(self.groups) - op.pending:
            for instance in self.groups[self.drained]:
                instance.end = node
            self.drained += 1

    def barrier(self, op: Barrier) -> None:
        count = self.meetings.get(op.name, 0)
        self.meetings[op.name] = count + 1
        node = self.result.meeting(op, count, self.role, self.iteration, self.tile)
        if self.last is not None:
            self.result.preds[node].append(self.last)
        self.last = node


def unroll(program: Program, values: Mapping[str, int], silent: Collection[str] = ()) -> Unrolling:
    """``program`` at these parameter values, linked. Raises ModelError or TooLargeError."""
    result = Unroller(program).run(values)
    result.link(silent)
    return result


def _step_counters(body: tuple[Statement, ...]) -> set[str]:
    names: set[str] = set()
    for statement in body:
        if isinstance(statement, Step):
            names.add(statement.counter)
        elif isinstance(statement, Loop):
            names |= _step_counters(statement.body)
        elif isinstance(statement, If):
            names |= _step_counters(statement.then) | _step_counters(statement.orelse)
    return names
