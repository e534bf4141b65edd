"""A program at fixed parameter values as a finite happens-before graph.

Nodes are operation instances. An access has a *begin* node and an *end* node: the same node for ordinary loads and
stores, the setting that its bytes complete for a bulk copy in, the covering drain for a matrix instruction; an access
that nobody awaits has no end. A setting of an event slot is a node of its own unless one trigger alone makes it. A
barrier meeting is one node on the program order of all its members, so that it orders everything before it (in any
member) before everything after it, without edges between the participants themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Union

from hb_analyzer.model import Access, Barrier, Drain, Operation, Program, Trigger, Wait
from hb_analyzer.report import Site

SlotKey = tuple[str, int]  # (event name, slot)

OUTSIDE = -1  # `tile` of a node outside the tile loop


class ModelError(ValueError):
    """The program breaks a rule of the model (a slot out of range, an unbound name, …); the message says which."""


class TooLargeError(Exception):
    """Unrolling would exceed the node budget."""


@dataclass(slots=True)
class AccessInstance:
    """One execution of an access. ``end`` is None if it never ends."""

    index: int
    op: Access
    slot: int
    begin: int
    end: int | None = None


class Setting(NamedTuple):
    """The ``number``-th setting of an event slot (from 0, initial ones included) and what makes it."""

    event: str
    slot: int
    number: int
    node: int
    triggers: tuple[int, ...]
    copies: tuple[int, ...]  # indices of accesses

    @property
    def made_by(self) -> tuple[int, ...]:
        """What has to happen for it: without bytes to wait for, a setting happens with the last of its triggers."""
        return (self.node,) if self.copies else self.triggers


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

    def add(
        self, op: NodeOperation, role: int, iteration: tuple[int, ...], slot: int, tile: int, preds: list[int]
    ) -> int:
        node = len(self.preds)
        self.preds.append(preds)
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
            self._meetings[key] = (self.add(op, role, iteration, 0, tile, []), {role})
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
        triggers = list(zip(*by_role.values(), strict=False)) if len(by_role) == event.arrivals else []
        bound: dict[int, list[int]] = {}
        for number, access in self.copies.get(key, ()):
            if self.roles[self.accesses[access].begin] in by_role:
                bound.setdefault(number, []).append(access)
        settings: list[Setting] = []
        for k, nodes in enumerate(triggers):
            copies = tuple(bound.get(k, ()))
            if len(nodes) == 1 and not copies:
                node = nodes[0]
            else:
                tile = max(self.tiles[p] for p in nodes)
                last = nodes[-1]
                # The triggers follow the copies in program order.
                node = self.add(self.ops[last], self.roles[last], self.iterations[last], key[1], tile, list(nodes))
            setting = Setting(key[0], key[1], k + event.initial, node, nodes, copies)
            if node != nodes[0]:
                self.ops[node] = setting
            for a in copies:
                self.accesses[a].end = node
            settings.append(setting)
        self.settings[key] = settings
        count = len(settings)
        for instances in self.waits.get(key, {}).values():
            for number, wait in enumerate(instances):
                k = number - event.initial
                if k >= count:
                    times = count + event.initial
                    made = {0: "is never set", 1: "is set once only"}.get(times, f"is set {times} times only")
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
