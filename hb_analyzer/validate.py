"""Checks that a program keeps the rules of the model, so that the engine cannot misread it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hb_analyzer.model import Access, Barrier, Commit, Drain, If, Loop, Opaque, Program, Step, Trigger, Wait
from hb_analyzer.traverse import walk
from hb_analyzer.unrolling import ModelError

_MODES = {"r", "w"}
_ENDS = {"here", "event", "group", "never"}
_PROXIES = {"generic", "async"}
_STATEMENTS = (Access, Trigger, Wait, Commit, Drain, Barrier, Step, Opaque, Loop, If)


def validate(program: Program) -> None:
    """Raises ModelError, naming what is wrong and where, for duplicate names, references to undeclared buffers, events
    or roles, and values outside the sets that the model lists."""
    buffers = _unique("buffer", [buffer.name for buffer in program.buffers])
    events = _unique("event", [event.name for event in program.events])
    roles = _unique("role", [role.name for role in program.roles])
    _unique("parameter", [parameter.name for parameter in program.parameters])
    slots = [(buffer.name, buffer.slots) for buffer in program.buffers]
    for name, count in [*slots, *((event.name, event.slots) for event in program.events)]:
        if count < 1:
            raise ModelError(f"{name} has {count} slots; at least 1 is needed")
    for event in program.events:
        if event.arrivals < 1 or event.initial < 0:
            raise ModelError(f"event {event.name}: arrivals {event.arrivals}, initial {event.initial} are out of range")
    for role in program.roles:
        for statement in walk(role.body):
            place = f"role {role.name}"
            if not isinstance(statement, _STATEMENTS):
                raise ModelError(f"{place}: {statement!r} is not a statement of the model")
            if isinstance(statement, Access):
                _among(place, "buffer", statement.buffer, buffers)
                _among(place, "access mode", statement.mode, _MODES)
                _among(place, "end of an access", statement.ends, _ENDS)
                _among(place, "proxy", statement.proxy, _PROXIES)
                if statement.ends == "event":
                    _among(place, "event", str(statement.event), events)
            elif isinstance(statement, (Trigger, Wait)):
                _among(place, "event", statement.event, events)
            elif isinstance(statement, Barrier):
                for member in statement.members:
                    _among(f"{place}, barrier {statement.name}", "role", member, roles)
            elif isinstance(statement, Drain) and statement.pending < 0:
                raise ModelError(f"{place}: a drain leaves {statement.pending} groups pending")
            elif isinstance(statement, Opaque):
                for name in statement.buffers:
                    _among(place, "buffer", name, buffers)


def _unique(kind: str, names: list[str]) -> set[str]:
    for name, count in Counter(names).items():
        if count > 1:
            raise ModelError(f"{count} {kind}s are named {name}")
    return set(names)


def _among(place: str, kind: str, value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise ModelError(f"{place}: there is no {kind} {value!r}")
