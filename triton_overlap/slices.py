"""The part of a program that two buffers need.

Leaving out roles that touch neither buffer, and events, only takes ordering away: what is safe without them is safe
with them. So a slice that says yes decides, much faster than the whole program; a slice that says no does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hb_analyzer.model import Access, Commit, Drain, Loop, Opaque, Program, Role, Statement, Step, Trigger, Wait


def slice_roles(program: Program, a: str, b: str) -> Program:
    """The roles that access ``a`` or ``b``, and the events between them."""
    roles = [role for role in program.roles if touches(role.body, {a, b})]
    return _cut(program, roles, {a, b}, lambda role, event: True)


def slice_neighbourhood(program: Program, a: str, b: str) -> Program:
    """Of these, only the events waited for directly before, or set directly after, accesses to the two buffers."""
    roles = [role for role in program.roles if touches(role.body, {a, b})]
    near = {role.name: _near(role.body, {a, b}) for role in roles}
    return _cut(program, roles, {a, b}, lambda role, event: event in near[role])


def _cut(program: Program, roles: list[Role], buffers: set[str], keep: Callable[[str, str], bool]) -> Program:
    triggers: dict[str, set[str]] = {}
    waits: dict[str, set[str]] = {}
    near: dict[str, set[str]] = {}
    for role in program.roles:
        for statement in _walk(role.body):
            if isinstance(statement, (Trigger, Wait)):
                side = triggers if isinstance(statement, Trigger) else waits
                side.setdefault(statement.event, set()).add(role.name)
                if any(role is kept for kept in roles) and keep(role.name, statement.event):
                    near.setdefault(statement.event, set()).add(type(statement).__name__)
    kept_names = {role.name for role in roles}
    events = {
        event.name
        for event in program.events
        if near.get(event.name) == {"Trigger", "Wait"} and triggers.get(event.name, set()) <= kept_names
    }
    for role in roles:
        for each in _walk(role.body):
            # A copy ends with its event, whoever waits for it.
            if isinstance(each, Access) and each.buffer in buffers and each.event is not None:
                events.add(each.event)
    return replace(
        program,
        buffers=tuple(buffer for buffer in program.buffers if buffer.name in buffers),
        events=tuple(event for event in program.events if event.name in events),
        roles=tuple(replace(role, body=_filter(role.body, buffers, events)) for role in roles),
    )


def _filter(body: tuple[Statement, ...], buffers: set[str], events: set[str]) -> tuple[Statement, ...]:
    kept: list[Statement] = []
    for statement in body:
        if isinstance(statement, Loop):
            inner = _filter(statement.body, buffers, events)
            if inner:
                kept.append(replace(statement, body=inner))
        elif isinstance(statement, Access):
            if statement.buffer in buffers:
                kept.append(statement)
        elif isinstance(statement, (Trigger, Wait)):
            if statement.event in events:
                kept.append(statement)
        elif isinstance(statement, Opaque):
            touched = tuple(name for name in statement.buffers if name in buffers)
            if touched:
                kept.append(replace(statement, buffers=touched, events=()))
        elif isinstance(statement, (Commit, Drain, Step)):
            kept.append(statement)
        else:
            raise TypeError(f"slices do not know {type(statement).__name__}")
    return tuple(kept)


def _near(body: tuple[Statement, ...], buffers: set[str]) -> set[str]:
    """Events of the runs of waits before, and of triggers after, accesses to ``buffers``; matrix instructions' commits
    and drains do not end a run."""
    found: set[str] = set()
    for loop in body:
        if isinstance(loop, Loop):
            found |= _near(loop.body, buffers)
            if touches(loop.body, buffers):
                found |= _run(body, body.index(loop), -1, Wait) | _run(body, body.index(loop), 1, Trigger)
    for position, statement in enumerate(body):
        if isinstance(statement, Access) and statement.buffer in buffers:
            found |= _run(body, position, -1, Wait) | _run(body, position, 1, Trigger)
            if statement.event is not None:
                found.add(statement.event)
    return found


def _run(body: tuple[Statement, ...], position: int, direction: int, kind: type[Wait] | type[Trigger]) -> set[str]:
    found: set[str] = set()
    position += direction
    while 0 <= position < len(body):
        statement = body[position]
        if isinstance(statement, kind):
            found.add(statement.event)
        elif not isinstance(statement, (Commit, Drain, Trigger, Wait)) and not (
            isinstance(statement, Access) and statement.ends == "group"
        ):
            break
        position += direction
    return found


def touches(body: tuple[Statement, ...], buffers: set[str]) -> bool:
    return any(
        (isinstance(each, Access) and each.buffer in buffers)
        or (isinstance(each, Opaque) and bool(set(each.buffers) & buffers))
        for each in _walk(body)
    )


def _walk(body: tuple[Statement, ...]) -> list[Statement]:
    found: list[Statement] = []
    for statement in body:
        found.append(statement)
        if isinstance(statement, Loop):
            found += _walk(statement.body)
    return found
