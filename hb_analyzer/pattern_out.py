"""A program as a pattern file: the reverse of ``translate.py``.

A phase is a stretch between synchronisations, so that the published analyzers' reading of the file (phases, signals,
buffers) holds too; loops, slots, regions and asynchronous accesses go into the extensions. Loading the result gives a
program with the same behaviour, and so the same verdicts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .expressions import bare, negation
from .identifiers import all_names, identifiers, renamed
from .model import (
    WHOLE,
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
    Opaque,
    Operation,
    Program,
    Role,
    Statement,
    Step,
    Trigger,
    Wait,
    names_in,
)

# The order of operations inside a phase; an operation of a lower rank than the one before it starts a new phase.
_RANKS: tuple[type[Any], ...] = (Opaque, Wait, Drain, Barrier, Access, Commit, Trigger, Step)
_ONCE = (Opaque, Drain, Commit)  # at most one of these in a phase
_LINE = 118


class NotExpressible(ValueError):
    """The program has a form that pattern files lack; the message says which."""


def pattern_json(program: Program) -> str:
    """The text of a pattern file for ``program``. Raises NotExpressible."""
    return _format(program_to_pattern(program), 0) + "\n"


def program_to_pattern(program: Program) -> dict[str, Any]:
    """The JSON object of :func:`pattern_json`."""
    writer = _Writer(program)
    groups = [writer.role(i, role) for i, role in enumerate(program.roles)]
    result: dict[str, Any] = {
        "kernel": program.name,
        "framework": program.framework,
        "arch": program.arch,
        "notes": program.notes,
        "warp_groups": groups,
        "shared_buffers": {
            buffer.name: {
                "size_bytes": buffer.size,
                "align": buffer.align,
                **({"stages": buffer.slots} if buffer.slots > 1 else {}),
                **({"shape": list(buffer.shape)} if buffer.shape else {}),
                **({"barrier_storage": True} if buffer.barrier_storage else {}),
                "description": buffer.description,
            }
            for buffer in program.buffers
        },
        "events": {
            event.name: {
                "slots": event.slots,
                "arrivals": event.arrivals,
                **({"initial": event.initial} if event.initial else {}),
            }
            for event in program.events
        },
        "loops": writer.loops,
        "parameters": {
            writer.names[p.name]: {
                "min": p.minimum,
                **({"max": p.maximum} if p.maximum is not None else {}),
                **({"description": p.name} if writer.names[p.name] != p.name else {}),
            }
            for p in program.parameters
        },
        "barriers": {name: list(members) for name, members in writer.barriers.items()},
    }
    if program.assumptions:
        result["assumptions"] = list(program.assumptions)
    return result


@dataclass
class _Stretch:
    """The operations of a phase that is being collected."""

    path: tuple[str, ...]
    when: IntExpr | None
    operations: list[Operation]

    def takes(self, path: tuple[str, ...], when: IntExpr | None, operation: Operation) -> bool:
        if path != self.path or when != self.when:
            return False
        last, rank = _rank(self.operations[-1]), _rank(operation)
        return rank > last or (rank == last and not isinstance(operation, _ONCE))


@dataclass(frozen=True)
class _Context:
    """What the entries of a phase need not repeat: its label, its source position, and the event that ends them all."""

    label: str
    where: str | None
    event: str | None

    @staticmethod
    def of(label: str, operations: list[Operation], accesses: list[Access]) -> _Context:
        where = next((op.where for op in operations if not isinstance(op, Step) and op.where), None)
        endings = {(access.ends, access.proxy, access.event) for access in accesses}
        if len(endings) == 1:
            ends, proxy, event = endings.pop()
            if ends == "event" and proxy == "async":
                return _Context(label, where, event)
        return _Context(label, where, None)


def _rank(operation: Operation) -> int:
    return _RANKS.index(type(operation))


class _Writer:
    def __init__(self, program: Program) -> None:
        self.slots = {buffer.name: buffer.slots for buffer in program.buffers}
        self.event_slots = {event.name: event.slots for event in program.events}
        self.names = identifiers(all_names(program))
        self.loops: dict[str, dict[str, Any]] = {}
        self.barriers: dict[str, tuple[str, ...]] = {}

    def expression(self, expr: IntExpr) -> int | str:
        """A number, or text with names that the format allows."""
        if isinstance(expr, Const) and expr.value >= 0:
            return expr.value
        return bare(renamed(expr, self.names))

    def role(self, number: int, role: Role) -> dict[str, Any]:
        self.stretches: list[_Stretch] = []
        self.used: set[str] = set()  # names of this role's loops
        self._walk(role.body, (), None)
        phases = [self._phase(stretch) for stretch in self.stretches]
        return {"wg_id": number, "role": role.name, "kind": role.kind, "phases": phases}

    # -- from statements to stretches

    def _walk(self, body: Iterable[Statement], path: tuple[str, ...], when: IntExpr | None) -> None:
        for statement in body:
            if isinstance(statement, Loop):
                self._walk(statement.body, (*path, self._loop_name(statement)), when)
            elif isinstance(statement, If):
                self._check_condition(statement)
                self._walk(statement.then, path, _both(when, statement.condition))
                self._walk(statement.orelse, path, _both(when, negation(statement.condition)))
            else:
                if self.stretches and self.stretches[-1].takes(path, when, statement):
                    self.stretches[-1].operations.append(statement)
                else:
                    self.stretches.append(_Stretch(path, when, [statement]))

    def _loop_name(self, loop: Loop) -> str:
        """Loops of different roles share a name if counter and trip count are the same; loops of one role never do."""
        counter = self.names[loop.counter]
        spec = {"trip": self.expression(loop.trip), "counter": counter}
        name, number = counter, 1
        while name in self.used or self.loops.get(name, spec) != spec:
            number += 1
            name = f"{counter}_{number}"
        self.used.add(name)
        self.loops[name] = spec
        return name

    @staticmethod
    def _check_condition(branch: If) -> None:
        """A phase's condition is evaluated per phase, so nothing inside the branch may change it."""
        changed = {counter for body in (branch.then, branch.orelse) for counter in _stepped(body)}
        if names := sorted(changed & names_in(branch.condition)):
            raise NotExpressible(f'a branch on "{branch.condition}" steps {names[0]} itself')

    # -- from stretches to JSON

    def _phase(self, stretch: _Stretch) -> dict[str, Any]:
        operations = stretch.operations
        accesses = [op for op in operations if isinstance(op, Access)]
        phase: dict[str, Any] = {
            "label": _label(operations),
            "signal_in": _one_or_many([self._signal(op) for op in operations if isinstance(op, Wait)]),
            "signal_out": _one_or_many([self._signal(op) for op in operations if isinstance(op, Trigger)]),
            "buffers": list(dict.fromkeys(access.buffer for access in accesses)),
            "loop": list(stretch.path),
        }
        if stretch.when is not None:
            phase["when"] = str(self.expression(stretch.when))
        self.context = _Context.of(phase["label"], operations, accesses)
        if self.context.event:
            phase.update({"async": True, "completes": self.context.event})
        modes = [access.mode for access in accesses]
        if modes == sorted(modes):  # "r" sorts before "w": the order that "reads" and "writes" imply
            phase["reads"] = [self._access(access) for access in accesses if access.mode == "r"]
            phase["writes"] = [self._access(access) for access in accesses if access.mode == "w"]
        else:
            phase["accesses"] = [
                {"mode": {"r": "read", "w": "write"}[access.mode], **self._access_object(access)} for access in accesses
            ]
        for op in operations:
            if isinstance(op, Opaque):
                phase["opaque"] = {"reason": op.reason, "buffers": list(op.buffers), "events": list(op.events)}
            elif isinstance(op, Drain):
                phase["drain"] = op.pending
            elif isinstance(op, Commit):
                phase["commit"] = True
            elif isinstance(op, Barrier):
                phase.setdefault("barrier", []).append(self._barrier_name(op))
            elif isinstance(op, Step):
                steps = phase.setdefault("step", {})
                counter = self.names[op.counter]
                steps[counter] = steps.get(counter, 0) + op.by
        if self.context.where:
            phase["where"] = self.context.where
        return {key: value for key, value in phase.items() if value != [] or key in ("buffers", "loop")}

    def _barrier_name(self, barrier: Barrier) -> str:
        if self.barriers.setdefault(barrier.name, barrier.members) != barrier.members:
            raise NotExpressible(f'barrier "{barrier.name}" has different members in different places')
        return barrier.name

    def _signal(self, signal: Wait | Trigger) -> Any:
        if self.event_slots[signal.event] == 1 and signal.slot == ZERO:
            return signal.event
        return {"event": signal.event, "slot": self.expression(signal.slot)}

    def _access(self, access: Access) -> Any:
        entry = self._access_object(access)
        return access.buffer if len(entry) == 1 else entry

    def _access_object(self, access: Access) -> dict[str, Any]:
        entry: dict[str, Any] = {"buffer": access.buffer}
        if self.slots[access.buffer] > 1 or access.slot != ZERO:
            entry["slot"] = self.expression(access.slot)
        if access.region is None:
            entry["region"] = None
        elif access.region != WHOLE:
            entry["region"] = [list(bounds) for bounds in access.region]
        if not self.context.event:
            if access.ends != "here":
                entry["ends"] = access.ends
            if access.event is not None:
                entry["event"] = access.event
            if access.proxy != "generic":
                entry["proxy"] = access.proxy
        if access.event is not None and (self.event_slots[access.event] > 1 or access.event_slot != ZERO):
            entry["event_slot"] = self.expression(access.event_slot)
        if not access.fenced:
            entry["fenced"] = False
        index = f"[{bare(renamed(access.slot, self.names))}]" if self.slots[access.buffer] > 1 else ""
        usual = f"{self.context.label}: {'read' if access.mode == 'r' else 'write'} {access.buffer}{index}"
        if access.label and access.label != usual:
            entry["label"] = access.label
        if access.where and access.where != self.context.where:
            entry["where"] = access.where
        return entry


def _both(outer: IntExpr | None, inner: IntExpr) -> IntExpr:
    return inner if outer is None else BinOp("&&", outer, inner)


def _stepped(body: Iterable[Statement]) -> set[str]:
    found: set[str] = set()
    for statement in body:
        if isinstance(statement, Step):
            found.add(statement.counter)
        elif isinstance(statement, Loop):
            found |= _stepped(statement.body)
        elif isinstance(statement, If):
            found |= _stepped(statement.then) | _stepped(statement.orelse)
    return found


def _one_or_many(values: list[Any]) -> Any:
    return None if not values else values[0] if len(values) == 1 else values


def _label(operations: list[Operation]) -> str:
    """A name for a phase: what its accesses have in common, else what it does."""
    accesses = [op for op in operations if isinstance(op, Access)]
    heads = {access.label.partition(": ")[0] for access in accesses if ": " in access.label}
    if len(heads) == 1 and all(": " in access.label for access in accesses):
        return heads.pop()
    parts = [
        f"{verb} {', '.join(names)}"
        for verb, names in (
            ("read", dict.fromkeys(access.buffer for access in accesses if access.mode == "r")),
            ("write", dict.fromkeys(access.buffer for access in accesses if access.mode == "w")),
            ("wait", dict.fromkeys(op.event for op in operations if isinstance(op, Wait))),
            ("trigger", dict.fromkeys(op.event for op in operations if isinstance(op, Trigger))),
            ("barrier", dict.fromkeys(op.name for op in operations if isinstance(op, Barrier))),
        )
        if names
    ]
    if accesses:
        return ", ".join(part for part in parts if part.startswith(("read", "write")))
    return ", ".join(parts) or type(operations[0]).__name__.lower()


def _format(value: Any, depth: int) -> str:
    """JSON with one phase, buffer or event per line where it fits."""
    line = json.dumps(value, ensure_ascii=False)
    indent = "  " * depth
    if not isinstance(value, (dict, list)) or not value or (depth > 1 and len(indent) + len(line) <= _LINE):
        return line
    if isinstance(value, dict):
        items = [f"{indent}  {json.dumps(key)}: {_format(item, depth + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    return "[\n" + ",\n".join(f"{indent}  {_format(item, depth + 1)}" for item in value) + f"\n{indent}]"
