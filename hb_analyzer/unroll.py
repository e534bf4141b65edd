"""Runs a program at fixed parameter values: every role by itself, in program order.

:class:`Unroller` gives an :class:`~hb_analyzer.unrolling.Unrolling`, whose ``link`` then matches settings with waits.
Between these two steps the caller can learn which instances trigger which slots, and name the events that order
nothing.
"""

from __future__ import annotations

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
    Opaque,
    Operation,
    Program,
    Statement,
    Step,
    Trigger,
    Wait,
)
from hb_analyzer.unrolling import OUTSIDE, AccessInstance, ModelError, TooLargeError, Unrolling

Env = dict[str, int]

NODE_LIMIT = 400_000  # over all trip counts of a program: a second or two
RUN_LIMIT = 25_000  # at one trip count: the closure of so many nodes takes some 100 MB


def compile_expression(expr: IntExpr) -> Callable[[Env], int]:
    """``expr`` as a function of the environment: the same value as ``model.evaluate``, faster in loops."""
    if isinstance(expr, Const):
        value = expr.value
        return lambda env: value
    if isinstance(expr, Name):
        name = expr.name
        return lambda env: env[name]
    apply = OPERATORS[expr.op]
    left, right = compile_expression(expr.left), compile_expression(expr.right)
    if isinstance(expr.right, Const):
        constant = expr.right.value
        return lambda env: apply(left(env), constant)
    return lambda env: apply(left(env), right(env))


class Unroller:
    """Unrolls one program at any number of parameter values; compiled expressions are kept between runs."""

    def __init__(self, program: Program, tiles: str | None = None, limit: int = NODE_LIMIT) -> None:
        """``tiles``: the parameter whose loops at the ends of the roles number the tiles of nodes.
        ``limit``: nodes over all runs of this object; more raises TooLargeError."""
        self.program = program
        self.tiles = tiles
        self.budget = limit
        self._compiled: dict[int, Callable[[Env], int]] = {}
        self._buffer_slots = {buffer.name: buffer.slots for buffer in program.buffers}
        self._event_slots = {event.name: event.slots for event in program.events}
        self._counters = [sorted(_step_counters(role.body)) for role in program.roles]

    def run(self, values: Mapping[str, int]) -> Unrolling:
        """The program at these parameter values, not yet linked. Raises ModelError or TooLargeError."""
        result = Unrolling(self.program, dict(values))
        for index, role in enumerate(self.program.roles):
            env = {**values, **dict.fromkeys(self._counters[index], 0)}
            walk = _RoleWalk(self, result, index, env)
            try:
                walk.top(role.body)
            except KeyError as error:
                raise ModelError(f"role {role.name}: {error.args[0]!r} has no value here") from None
            except ZeroDivisionError:
                raise ModelError(f"role {role.name}: division by zero in an index or trip count") from None
        return result

    def value(self, expr: IntExpr, env: Env) -> int:
        if type(expr) is Const:
            return expr.value
        compiled = self._compiled.get(id(expr))
        if compiled is None:
            compiled = self._compiled[id(expr)] = compile_expression(expr)
        return compiled(env)

    def event_slot(self, event: str, expr: IntExpr, env: Env) -> int:
        return self._slot("event", event, self._event_slots.get(event), self.value(expr, env))

    def buffer_slot(self, buffer: str, expr: IntExpr, env: Env) -> int:
        return self._slot("buffer", buffer, self._buffer_slots.get(buffer), self.value(expr, env))

    @staticmethod
    def _slot(kind: str, name: str, slots: int | None, slot: int) -> int:
        if slots is None:
            raise ModelError(f"{kind} {name} is not declared")
        if not 0 <= slot < slots:
            raise ModelError(f"slot {slot} of {kind} {name} is out of range (it has {slots})")
        return slot


class _RoleWalk:
    """One role instance executing: its program-order chain, group state and counts."""

    def __init__(self, unroller: Unroller, result: Unrolling, role: int, env: Env) -> None:
        self.unroller = unroller
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

    def top(self, body: tuple[Statement, ...]) -> None:
        last = body[-1] if body else None
        if isinstance(last, Loop) and isinstance(last.trip, Name) and last.trip.name == self.unroller.tiles:
            self.block(body[:-1])
            self.loop(last, outermost=True)
        else:
            self.block(body)

    def block(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            _HANDLERS[type(statement)](self, statement)

    def loop(self, loop: Loop, outermost: bool = False) -> None:
        env, iteration = self.env, self.iteration
        outer = env.get(loop.counter)
        for i in range(self.unroller.value(loop.trip, env)):
            self.spend()  # iterations without nodes take time too
            env[loop.counter] = i
            self.iteration = (*iteration, i)
            if outermost:
                self.tile = i
            self.block(loop.body)
        self.iteration = iteration
        if outer is None:
            env.pop(loop.counter, None)
        else:
            env[loop.counter] = outer

    def branch(self, branch: If) -> None:
        self.block(branch.then if self.unroller.value(branch.condition, self.env) else branch.orelse)

    def step(self, step: Step) -> None:
        self.env[step.counter] += step.by

    def opaque(self, opaque: Opaque) -> None:
        """Nothing to execute: the buffers and events concerned are refused before any unrolling."""

    def spend(self) -> None:
        self.unroller.budget -= 1
        if self.unroller.budget < 0 or len(self.result.preds) > RUN_LIMIT:
            raise TooLargeError

    def append(self, op: Operation, slot: int = 0) -> int:
        """A new node at the end of this role's chain."""
        self.spend()
        node = self.result.add(op, self.role, self.iteration, slot, self.tile)
        if self.last is not None:
            self.result.preds[node].append(self.last)
        self.last = node
        return node

    def access(self, op: Access) -> None:
        result = self.result
        slot = self.unroller.buffer_slot(op.buffer, op.slot, self.env)
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
            key = (op.event, self.unroller.event_slot(op.event, op.event_slot, self.env))
            # Bytes belong to the setting that this role's next trigger of the slot closes.
            before = len(result.triggers.get(key, {}).get(self.role, ()))
            result.copies.setdefault(key, []).append((before, instance.index))

    def trigger(self, op: Trigger) -> None:
        slot = self.unroller.event_slot(op.event, op.slot, self.env)
        node = self.append(op, slot)
        self.result.triggers.setdefault((op.event, slot), {}).setdefault(self.role, []).append(node)

    def wait(self, op: Wait) -> None:
        slot = self.unroller.event_slot(op.event, op.slot, self.env)
        node = self.append(op, slot)
        self.result.waits.setdefault((op.event, slot), {}).setdefault(self.role, []).append(node)

    def commit(self, op: Commit) -> None:
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


_HANDLERS: dict[type, Callable[..., None]] = {
    Access: _RoleWalk.access,
    Trigger: _RoleWalk.trigger,
    Wait: _RoleWalk.wait,
    Commit: _RoleWalk.commit,
    Drain: _RoleWalk.drain,
    Barrier: _RoleWalk.barrier,
    Step: _RoleWalk.step,
    Opaque: _RoleWalk.opaque,
    Loop: _RoleWalk.loop,
    If: _RoleWalk.branch,
}


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
