"""A pattern as a :class:`hb_analyzer.model.Program`, which the engine decides."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from .expressions import bare
from .infer import HULL, HULL_PARAMETER, HULL_SPEC, Inference, infer
from .model import (
    ZERO,
    Access,
    Barrier,
    BinOp,
    Commit,
    Const,
    Drain,
    Event,
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
    names_in,
)
from .pattern import LoopSpec, Pattern, Phase, PhaseAccess, PhaseId, Signal, WarpGroup


def to_program(
    pattern: Pattern, inference: Inference | None = None, only_read: frozenset[str] = frozenset()
) -> Program:
    """The program of a pattern.

    ``inference`` is ``infer(pattern)`` where the caller has it already. What a phase of a role that is not a producer
    only lists, it may write; except for the buffers ``only_read``, which it then only reads.
    """
    inference = inference or infer(pattern)
    roles = tuple(_RoleTranslator(pattern, inference, group, only_read).role() for group in pattern.groups)
    if inference.unknown:
        first = roles[0]
        notes = tuple(Opaque(why, (buffer,)) for buffer, why in sorted(inference.unknown.items()))
        roles = (replace(first, body=(*notes, *first.body)), *roles[1:])
    parameters = pattern.parameters if pattern.marked else (*pattern.parameters, HULL_PARAMETER)
    used = frozenset().union(*(_names(role.body) for role in roles))
    return Program(
        name=pattern.kernel,
        buffers=tuple(replace(buffer, slots=inference.stages[buffer.name]) for buffer in pattern.buffers),
        events=tuple(
            Event(name, inference.slots[name], inference.arrivals[name], inference.initial.get(name, 0))
            for name in pattern.event_names()
        ),
        roles=roles,
        parameters=tuple(parameter for parameter in parameters if parameter.name in used),
        framework=pattern.framework,
        arch=pattern.arch,
        notes=pattern.notes,
        assumptions=(*pattern.assumptions, *inference.assumptions),
    )


class _RoleTranslator:
    def __init__(self, pattern: Pattern, inference: Inference, group: WarpGroup, only_read: frozenset[str]) -> None:
        self.pattern, self.inference, self.group = pattern, inference, group
        self.only_read = frozenset() if group.is_producer else only_read
        self.running: set[str] = set()  # loops whose iterations are counted across the loops around them

    def role(self) -> Role:
        indices = range(len(self.group.phases))
        body = self._block([PhaseId(self.group.name, i) for i in indices], 0)
        return Role(self.group.name, tuple(body), self.group.kind)

    # -- loops

    def _block(self, ids: list[PhaseId], depth: int) -> list[Statement]:
        """The statements of phases that share the loops above ``depth``."""

        def loop_at(id: PhaseId) -> str | None:
            path = self.inference.loops[id]
            return path[depth] if len(path) > depth else None

        statements: list[Statement] = []
        for name, members in groupby(ids, key=loop_at):
            if name is None:
                for id in members:
                    statements += self._phase(id)
                continue
            inside = list(members)
            statements += self._hoisted_waits(inside, depth)
            body = self._block(inside, depth + 1)
            if name in self.running:
                body.append(Step(_running_count(name)))
            spec = self._loop(name)
            statements.append(Loop(spec.counter, spec.trip, tuple(body)))
        return statements

    def _loop(self, name: str) -> LoopSpec:
        return HULL_SPEC if name == HULL and not self.pattern.marked else self.pattern.loops[name]

    def _hoisted_waits(self, ids: list[PhaseId], depth: int) -> list[Statement]:
        """Waits of the first iteration that nothing but waits precedes are the same waits before the loop."""
        if len(self.inference.loops[ids[0]]) > depth + 1 or self.group.phases[ids[0].position].when:
            return []
        return [
            statement
            for signal in self.group.phases[ids[0].position].waits
            if (ids[0], signal.event) in self.inference.wait_once
            for statement in self._wait(signal, ids[0], once=True)
        ]

    # -- phases

    def _phase(self, id: PhaseId) -> list[Statement]:
        phase = self.group.phases[id.position]
        out: list[Statement] = []
        if phase.opaque:
            out.append(Opaque(phase.opaque.reason, phase.opaque.buffers, phase.opaque.events, phase.where))
        for signal in phase.waits:
            if (id, signal.event) not in self.inference.wait_once:
                out += self._wait(signal, id)
            elif not self._starts_loop(id):
                first = BinOp("==", Name(HULL_SPEC.counter), ZERO)
                out.append(If(first, tuple(self._wait(signal, id, once=True))))
        if phase.drain is not None:
            out.append(Drain(phase.drain, f"{phase.label}: wait for all but {phase.drain} matrix groups", phase.where))
        for name in phase.barriers:
            members = self.pattern.barriers[name]
            out.append(Barrier(name, members, f"{phase.label}: barrier {name}", phase.where))
        for access in phase.accesses:
            out += self._access(access, phase, id)
        if phase.commit:
            out.append(Commit(f"{phase.label}: commit", phase.where))
        for signal in phase.triggers:
            if (id, signal.event) not in self.inference.credited:
                depth = self.inference.slots[signal.event]
                for slot in self._slots(signal.slot, depth, id):
                    label = f"{phase.label}: trigger {signal.event}{_index(slot, depth)}"
                    out.append(Trigger(signal.event, slot, label, phase.where))
        out += [Step(counter, by) for counter, by in phase.steps]
        return [If(phase.when, tuple(out))] if phase.when else out

    def _starts_loop(self, id: PhaseId) -> bool:
        """Whether ``_hoisted_waits`` took the first-iteration waits of this phase."""
        before = PhaseId(id.role, id.position - 1)
        first = before not in self.inference.loops or not self.inference.looped(before)
        return first and not self.group.phases[id.position].when

    def _wait(self, signal: Signal, id: PhaseId, once: bool = False) -> list[Statement]:
        phase = self.group.phases[id.position]
        depth = self.inference.slots[signal.event]
        slots: list[IntExpr] = [Const(s) for s in range(depth)] if once else self._slots(signal.slot, depth, id)
        label = f"{phase.label}: wait {signal.event}"
        return [Wait(signal.event, slot, label + _index(slot, depth), phase.where) for slot in slots]

    def _access(self, access: PhaseAccess, phase: Phase, id: PhaseId) -> list[Statement]:
        stages = self.inference.stages[access.buffer]
        depth = self.inference.slots[access.event] if access.event else 1
        out: list[Statement] = []
        # What is only listed may be written anywhere or nowhere: an unknown region, which covers nothing.
        verbs = {"r": ("read",), "w": ("write",), "rw?": ("read", "may write")}[access.mode]
        if access.mode == "rw?" and access.buffer in self.only_read:
            verbs = ("read",)
        for verb in verbs:
            for slot in self._slots(access.slot, stages, id):
                event_slot = access.event_slot
                if event_slot is None:
                    same = depth == stages and access.slot is None
                    event_slot = slot if same else self._slots(None, depth, id)[0]
                out.append(
                    Access(
                        access.buffer,
                        "r" if verb == "read" else "w",
                        slot,
                        None if verb == "may write" else access.region,
                        access.ends,
                        access.event,
                        event_slot,
                        access.proxy,
                        access.fenced,
                        access.label or f"{phase.label}: {verb} {access.buffer}{_index(slot, stages)}",
                        access.where or phase.where,
                    )
                )
        return out

    # -- slots

    def _slots(self, given: IntExpr | None, depth: int, id: PhaseId) -> list[IntExpr]:
        """The slot given; else that of the iteration; outside loops, every slot in turn."""
        if given is not None:
            return [given]
        if depth == 1:
            return [ZERO]
        path = self.inference.loops[id]
        if not path:
            return [Const(s) for s in range(depth)]
        counter = self._loop(path[-1]).counter
        if len(path) > 1:  # slots run on across the iterations of the loops around
            self.running.add(path[-1])
            counter = _running_count(path[-1])
        return [BinOp("%", Name(counter), Const(depth))]


def _index(slot: IntExpr, depth: int) -> str:
    """The slot for a label, where there are several."""
    return f"[{bare(slot)}]" if depth > 1 else ""


def _running_count(loop: str) -> str:
    return f"{loop}.count"


def _names(body: tuple[Statement, ...]) -> frozenset[str]:
    """Every name in the expressions of ``body``."""
    found: set[str] = set()
    for statement in body:
        if isinstance(statement, Loop):
            found |= names_in(statement.trip) | _names(statement.body)
        elif isinstance(statement, If):
            found |= names_in(statement.condition) | _names(statement.then) | _names(statement.orelse)
        elif isinstance(statement, (Access, Wait, Trigger)):
            found |= names_in(statement.slot)
            if isinstance(statement, Access):
                found |= names_in(statement.event_slot)
    return frozenset(found)
