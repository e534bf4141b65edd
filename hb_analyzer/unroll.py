"""Unrolls a program at fixed parameter values into a finite happens-before graph.

Nodes are operation instances. An access has a *begin* node and an *end* node: the same node for ordinary loads and
stores, the setting that its bytes complete for a bulk copy in, the covering drain for a matrix instruction; an access
that nobody awaits has no end. A setting of an event slot is a node of its own unless one trigger alone makes it. A
barrier meeting is one node on the program order of all its members, so that it orders everything before it (in any
member) before everything after it, without edges between the participants themselves.

Two steps: :func:`unroll` runs every role by itself; :meth:`Unrolling.link` then matches settings with waits. Between
them the caller can learn which instances trigger which slots (``triggers``) and name the events that order nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Union

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
from hb_analyzer.report import Site

Env = dict[str, int]
SlotKey = tuple[str, int]  # (event name, slot)

NODE_LIMIT = 400_000  # over all trip counts of a program
OUTSIDE = -1  # `tile` of a node outside the tile loop


class ModelError(ValueError):
    """The program breaks a rule of the model (a slot out of range, an unbound name, …); the message says which."""


class TooLargeError(Exception):
    """Unrolling would exceed the node budget."""


@dataclass
class AccessInstance:
    """One execution of an access. ``end`` is None if it never ends."""

    index: int
    op: Access
    slot: int
    begin: int
    end: int | None = None


@dataclass(frozen=True)
class Setting:
    """The ``number``-th setting of an event slot (from 0, initial ones included) and what makes it."""

    event: str
    slot: int
    number: int
    node: int
    triggers: tuple[int, ...]
    copies: tuple[int, ...]  # indices of accesses


@dataclass(frozen=True)
class Stuck:
    """A node that can never execute, and why."""

    node: int
    why: str
    event: str | None = None


NodeOperation = Union[Operation, Setting]


@dataclass
class Unrolling:
    """The unrolled program. Node attributes are parallel lists indexed by node number."""

    program: Program
    values: Mapping[str, int]
    preds: list[list[int]] = field(default_factory=list)
    ops: list[NodeOperation] = field(default_factory=list)
    roles: list[int] = field(default_factory=list)
    iterations: list[tuple[int, ...]] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    tiles: list[int] = field(default_factory=list)
    accesses: list[AccessInstance] = field(default_factory=list)
    triggers: dict[SlotKey, dict[int, list[int]]] = field(default_factory=dict)  # role -> trigger nodes in order
    waits: dict[SlotKey, dict[int, list[int]]] = field(default_factory=dict)  # role -> wait nodes in order
    copies: dict[SlotKey, list[tuple[int, int]]] = field(default_factory=dict)  # (trigger count before it, access)
    settings: dict[SlotKey, list[Setting]] = field(default_factory=dict)  # without the initial ones
    stuck: list[Stuck] = field(default_factory=list)
    crossing: bool = False  # a barrier joins different tiles
    _meetings: dict[tuple[str, int], tuple[int, set[int]]] = field(default_factory=dict)

    def add(self, op: NodeOperation, role: int, iteration: tuple[int, ...], slot: int, tile: int) -> int:
        node = len(self.preds)
        self.preds.append([])
        self.ops.append(op)
        self.roles.append(role)
        self.iterations.append(iteration)
        self.slots.append(slot)
        self.tiles.append(tile)
        return node

    def meeting(self, op: Barrier, count: int, role: int, iteration: tuple[int, ...], tile: int) -> int:
        """The node of the ``count``-th meeting at this barrier, shared by all its members."""
        key = (op.name, count)
        if key not in self._meetings:
            self._meetings[key] = (self.add(op, role, iteration, 0, tile), {role})
        node, present = self._meetings[key]
        present.add(role)
        self.crossing = self.crossing or self.tiles[node] != tile
        known = self.ops[node]
        if isinstance(known, Barrier) and set(known.members) != set(op.members):
            self.stuck.append(Stuck(node, f"barrier {op.name} is used with different members"))
        return node

    def link(self, silent: Collection[str]) -> None:
        """Adds settings, matches them with waits, checks barrier arrivals. Events in ``silent`` order nothing."""
        for key in {**self.triggers, **self.waits, **self.copies}:
            if key[0] not in silent:
                self._link_slot(key)
        names = [role.name for role in self.program.roles]
        for (name, _), (node, present) in self._meetings.items():
            op = self.ops[node]
            assert isinstance(op, Barrier)
            arrived = {names[role] for role in present}
            missing = sorted(set(op.members) - arrived)
            if missing:
                self.stuck.append(Stuck(node, f"barrier {name}: {', '.join(missing)} never arrives"))
            strangers = sorted(arrived - set(op.members))
            if strangers:
                self.stuck.append(Stuck(node, f"barrier {name}: {', '.join(strangers)} arrives but is no member"))

    def _link_slot(self, key: SlotKey) -> None:
        event = next(event for event in self.program.events if event.name == key[0])
        by_role = self.triggers.get(key, {})
        # The k-th setting needs the k-th arrival of every instance that releases the slot.
        count = min(map(len, by_role.values())) if len(by_role) == event.arrivals else 0
        bound: dict[int, list[int]] = {}
        for number, access in self.copies.get(key, ()):
            if self.roles[self.accesses[access].begin] in by_role:
                bound.setdefault(number, []).append(access)
        settings: list[Setting] = []
        for k in range(count):
            nodes = tuple(instances[k] for instances in by_role.values())
            copies = tuple(bound.get(k, ()))
            if len(nodes) == 1 and not copies:
                node = nodes[0]
            else:
                begins = [self.accesses[a].begin for a in copies]
                tile = max(self.tiles[p] for p in (*nodes, *begins))
                node = self.add(self.ops[nodes[-1]], self.roles[nodes[-1]], self.iterations[nodes[-1]], key[1], tile)
                self.preds[node] += [*nodes, *begins]
            setting = Setting(key[0], key[1], k + event.initial, node, nodes, copies)
            if node != nodes[0]:
                self.ops[node] = setting
            for a in copies:
                self.accesses[a].end = node
            settings.append(setting)
        self.settings[key] = settings
        for instances in self.waits.get(key, {}).values():
            for number, wait in enumerate(instances):
                k = number - event.initial
                if k >= count:
                    made = (
                        "is never set" if count + event.initial == 0 else f"is set {count + event.initial} times only"
                    )
                    why = f"wait {number + 1} for {key[0]}[{key[1]}] never returns: the slot {made}"
                    self.stuck.append(Stuck(wait, why, key[0]))
                elif k >= 0:
                    self.preds[wait].append(settings[k].node)

    def parameters(self) -> tuple[tuple[str, int], ...]:
        """The parameter values of this unrolling, as reports give them."""
        return tuple(self.values.items())

    def crosses_tiles(self) -> bool:
        """Does any edge lead from a later tile to an earlier one, or to what lies outside the tile loop?"""
        return self.crossing or any(
            self.tiles[p] > self.tiles[node] for node, preds in enumerate(self.preds) for p in preds
        )

    def site(self, node: int) -> Site:
        """The node as a person finds it in the source."""
        op = self.ops[node]
        role = self.program.roles[self.roles[node]].name
        if isinstance(op, Setting):
            return Site(role, f"{op.event}[{op.slot}] becomes set", self.iterations[node], None)
        return Site(
            role, describe(op, self.slots[node]), self.iterations[node], op.where if hasattr(op, "where") else None
        )


def describe(op: Operation, slot: int) -> str:
    """The label of an operation, or words for it."""
    label: str = getattr(op, "label", "")
    if label:
        return label
    if isinstance(op, Access):
        return f"{'read' if op.mode == 'r' else 'write'} {op.buffer}[{slot}]"
    if isinstance(op, Trigger):
        return f"trigger {op.event}[{slot}]"
    if isinstance(op, Wait):
        return f"wait {op.event}[{slot}]"
    if isinstance(op, Barrier):
        return f"barrier {op.name}"
    if isinstance(op, Drain):
        return f"wait for matrix groups, {op.pending} pending"
    return type(op).__name__.lower()


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

    def append(self, op: Operation, slot: int = 0) -> int:
        """A new node at the end of this role's chain."""
        self.unroller.budget -= 1
        if self.unroller.budget < 0:
            raise TooLargeError
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
