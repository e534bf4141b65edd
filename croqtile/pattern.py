"""``--emit-pattern``: the synchronisation structure of a kernel as a pattern file of ``python -m hb_analyzer``.

A pattern describes each role as a sequence of phases. One phase is: waits, a drain of matrix groups, barriers,
accesses, a commit, triggers, steps of counters, in this order; so a role's operations are cut wherever the order would
be broken. The pattern says everything explicitly (slots, arrivals, loops), and nothing is left to inference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from croqtile.analyse import Analysis
from hb_analyzer import model

_RANK = {
    model.Opaque: 0,
    model.Wait: 1,
    model.Drain: 2,
    model.Barrier: 3,
    model.Access: 4,
    model.Commit: 5,
    model.Trigger: 6,
    model.Step: 7,
}
_MODES = {"r": "read", "w": "write"}


class PatternError(Exception):
    """The kernel has no pattern; the message says why."""


def as_json(analyses: Sequence[Analysis]) -> str:
    """The pattern file of the one kernel in ``analyses``. Raises PatternError for several kernels or none."""
    if len(analyses) != 1:
        raise PatternError(f"a pattern describes one kernel, and the file has {len(analyses)}")
    return json.dumps(to_pattern(analyses[0].program), indent=2, ensure_ascii=False) + "\n"


def to_pattern(program: model.Program) -> dict[str, Any]:
    """The pattern of a program, as a JSON object. Raises PatternError."""
    return _Writer(program).pattern()


class _Writer:
    def __init__(self, program: model.Program) -> None:
        self.program = program
        self.shapes = {buffer.name: buffer.shape for buffer in program.buffers}
        self.names = _identifiers([parameter.name for parameter in program.parameters])
        self.loops: dict[str, dict[str, Any]] = {}
        self.barriers: dict[str, list[str]] = {}

    def pattern(self) -> dict[str, Any]:
        program = self.program
        groups = [
            {
                "wg_id": number,
                "role": role.name,
                "kind": role.kind,
                "phases": _Role(self).phases(role.body),
            }
            for number, role in enumerate(program.roles)
        ]
        meanings = [f"{short} = {name}" for name, short in self.names.items() if short != name]
        return {
            "kernel": program.name,
            "framework": program.framework,
            "arch": program.arch,
            "notes": "; ".join(filter(None, [program.notes, *meanings])),
            "assumptions": list(program.assumptions),
            "warp_groups": groups,
            "shared_buffers": {
                buffer.name: {
                    "size_bytes": buffer.size,
                    "align": buffer.align,
                    "stages": buffer.slots,
                    "shape": list(buffer.shape),
                    "description": buffer.description,
                }
                for buffer in program.buffers
            },
            "events": {
                event.name: {"slots": event.slots, "arrivals": event.arrivals, "initial": event.initial}
                for event in program.events
            },
            "loops": self.loops,
            "parameters": {
                self.names[p.name]: {"min": p.minimum, **({} if p.maximum is None else {"max": p.maximum})}
                for p in program.parameters
            },
            "barriers": self.barriers,
        }

    def text(self, expr: model.IntExpr) -> str | int:
        """An expression as pattern files write it."""
        renamed = self._rename(expr)
        return renamed.value if isinstance(renamed, model.Const) and renamed.value >= 0 else str(renamed)

    def _rename(self, expr: model.IntExpr) -> model.IntExpr:
        if isinstance(expr, model.Name):
            return model.Name(self.names.get(expr.name, expr.name))
        if isinstance(expr, model.BinOp):
            return model.BinOp(expr.op, self._rename(expr.left), self._rename(expr.right))
        return expr

    def loop(self, loop: model.Loop, used: set[str]) -> str:
        """A name for a loop: its counter, or that with a number where the role or another loop has it already."""
        spec = {"counter": loop.counter, "trip": self.text(loop.trip)}
        number, name = 1, loop.counter
        while name in used or self.loops.get(name, spec) != spec:
            number += 1
            name = f"{loop.counter}_{number}"
        used.add(name)
        self.loops[name] = spec
        return name


def _identifiers(names: Sequence[str]) -> dict[str, str]:
    short: dict[str, str] = {}
    for name in names:
        base = re.sub(r"\W+", "_", name).strip("_")
        base = base if base[:1].isalpha() else f"n_{base}"
        candidate, number = base, 1
        while candidate in short.values():
            number += 1
            candidate = f"{base}_{number}"
        short[name] = candidate
    return short


class _Role:
    """Cuts the operations of one role into phases."""

    def __init__(self, writer: _Writer) -> None:
        self.writer = writer
        self.out: list[dict[str, Any]] = []
        self.rank = 99  # of the last operation in the last phase; 99: start a new one
        self.used: set[str] = set()

    def phases(self, body: tuple[model.Statement, ...]) -> list[dict[str, Any]]:
        self._body(body, (), ())
        for number, phase in enumerate(self.out):
            labels = phase.pop("labels")
            phase["label"] = "; ".join(dict.fromkeys(labels)) or f"phase {number}"
        return [{"label": phase.pop("label"), **phase} for phase in self.out]

    def _body(
        self, body: tuple[model.Statement, ...], loops: tuple[str, ...], conditions: tuple[model.IntExpr, ...]
    ) -> None:
        for statement in body:
            if isinstance(statement, model.Loop):
                self.rank = 99
                self._body(statement.body, (*loops, self.writer.loop(statement, self.used)), conditions)
                self.rank = 99
            elif isinstance(statement, model.If):
                self._branch(statement, loops, conditions)
            else:
                self._operation(statement, loops, conditions)

    def _branch(self, statement: model.If, loops: tuple[str, ...], conditions: tuple[model.IntExpr, ...]) -> None:
        counts = {s.counter for s in (*statement.then, *statement.orelse) if isinstance(s, model.Step)}
        if counts & model.names_in(statement.condition):
            raise PatternError(f"a count changes under the condition {statement.condition} that it decides")
        negated = model.BinOp("==", statement.condition, model.Const(0))
        for condition, body in ((statement.condition, statement.then), (negated, statement.orelse)):
            self.rank = 99
            self._body(body, loops, (*conditions, condition))
        self.rank = 99

    def _operation(self, op: model.Operation, loops: tuple[str, ...], conditions: tuple[model.IntExpr, ...]) -> None:
        rank = _RANK[type(op)]
        once = isinstance(op, (model.Opaque, model.Drain, model.Commit))
        if rank < self.rank or (once and rank == self.rank):
            self._start(loops, conditions)
        self.rank = rank
        phase, text = self.out[-1], self.writer.text
        if isinstance(op, (model.Wait, model.Trigger)):
            key = "signal_in" if isinstance(op, model.Wait) else "signal_out"
            phase.setdefault(key, []).append({"event": op.event, "slot": text(op.slot)})
        elif isinstance(op, model.Drain):
            phase["drain"] = op.pending
        elif isinstance(op, model.Barrier):
            phase.setdefault("barrier", []).append(op.name)
            self.writer.barriers[op.name] = list(op.members)
        elif isinstance(op, model.Access):
            phase.setdefault("buffers", [])
            if op.buffer not in phase["buffers"]:
                phase["buffers"].append(op.buffer)
            phase.setdefault("accesses", []).append(self._access(op))
        elif isinstance(op, model.Commit):
            phase["commit"] = True
        elif isinstance(op, model.Step):
            phase.setdefault("step", {})[op.counter] = phase.get("step", {}).get(op.counter, 0) + op.by
        else:
            phase["opaque"] = {"reason": op.reason, "buffers": list(op.buffers), "events": list(op.events)}
        if isinstance(op, (model.Wait, model.Trigger, model.Drain, model.Barrier, model.Access)):
            phase["labels"].append(op.label)
        if not isinstance(op, model.Step) and op.where is not None:
            phase.setdefault("where", op.where)

    def _start(self, loops: tuple[str, ...], conditions: tuple[model.IntExpr, ...]) -> None:
        phase: dict[str, Any] = {"labels": []}
        if loops:
            phase["loop"] = list(loops)
        if conditions:
            together = conditions[0]
            for condition in conditions[1:]:
                together = model.BinOp("&&", together, condition)
            phase["when"] = str(self.writer.text(together))
        self.out.append(phase)

    def _access(self, op: model.Access) -> dict[str, Any]:
        text = self.writer.text
        entry: dict[str, Any] = {"buffer": op.buffer, "mode": _MODES[op.mode], "slot": text(op.slot)}
        if op.region is None:
            entry["region"] = None
        elif op.region:
            entry["region"] = [list(bounds) for bounds in op.region]
        entry["ends"] = op.ends
        if op.event is not None:
            entry |= {"event": op.event, "event_slot": text(op.event_slot)}
        entry |= {"proxy": op.proxy, "fenced": op.fenced, "label": op.label}
        return entry if op.where is None else {**entry, "where": op.where}
