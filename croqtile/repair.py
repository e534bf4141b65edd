"""Synchronisation that would make a refused pair of buffers overlappable: proposals, each tried with the engine.

Two forms are tried, because they are what kernels need in practice: a barrier of all warpgroups that run the later
access, right before it (consumers that must all be done with the operands before one of them writes its result); and
an event that the earlier role sets after its access and the later role waits for before its own (a producer that must
not refill memory that an epilogue still uses). A proposal is only made if the engine accepts the pair with it and
finds no new defect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import hb_analyzer
from hb_analyzer import model
from hb_analyzer.report import Report, Site, Verdict

Body = tuple[model.Statement, ...]
Test = Callable[[model.Access], bool]

_EVENT, _BARRIER = "new event", "new barrier"


@dataclass(frozen=True)
class Repair:
    """``text`` is what to add, in words of the tile language; ``program`` the program with it."""

    text: str
    program: model.Program


def repairs(program: model.Program, report: Report, verdict: Verdict) -> Iterator[Repair]:
    """Confirmed proposals for a refused pair, simplest first."""
    if verdict.overlap or verdict.first is None or verdict.second is None:
        return
    for proposal in _proposals(program, verdict.first, verdict.second):
        if _confirmed(proposal.program, report, verdict):
            yield proposal


def _confirmed(program: model.Program, before: Report, verdict: Verdict) -> bool:
    after = hb_analyzer.analyse(program)
    same = all(
        len(new) <= len(old)
        for new, old in (
            (after.deadlocks, before.deadlocks),
            (after.overruns, before.overruns),
            (after.races, before.races),
            (after.arrivals, before.arrivals),
            (after.unawaited, before.unawaited),
        )
    )
    lost = any(old.overlap and not after.verdict(old.a, old.b).overlap for old in before.verdicts)
    return same and not lost and after.verdict(verdict.a, verdict.b).overlap


def _proposals(program: model.Program, first: Site, second: Site) -> Iterator[Repair]:
    for earlier, later in ((first, second), (second, first)):
        yield from _barrier(program, earlier, later)
    for earlier, later in ((first, second), (second, first)):
        yield from _event(program, earlier, later)


def _barrier(program: model.Program, earlier: Site, later: Site) -> Iterator[Repair]:
    members = tuple(r.name for r in program.roles if r.kind == "warpgroup" and _contains(r.body, _at(later.where)))
    if len(members) < 2 or earlier.role not in members or later.where is None:
        return
    barrier = model.Barrier(_BARRIER, members, _BARRIER)
    changed = _edit(program, members, lambda body: _before(body, _at(later.where), barrier))
    numbers = [name.rsplit(" ", 1)[-1] for name in members]
    named = f"sync.wg {', '.join(numbers)};" if all(n.isdigit() for n in numbers) else f"a barrier of {members}"
    yield Repair(f"`{named}` before line {_line(later.where)}", changed)


def _event(program: model.Program, earlier: Site, later: Site) -> Iterator[Repair]:
    """``earlier`` sets an event after its last access of the buffer, ``later`` waits for it; in every iteration of the
    outer loop if both stand in one, with one setting in advance."""
    buffer = _buffer_at(program, earlier)
    if earlier.role == later.role or buffer is None or later.where is None:
        return
    setters = tuple(r.name for r in program.roles if _contains(r.body, _at(earlier.where)))
    with_event = replace(program, events=(*program.events, model.Event(_EVENT, 1, len(setters))))
    trigger, wait = model.Trigger(_EVENT, label=f"trigger {_EVENT}"), model.Wait(_EVENT, label=f"wait {_EVENT}")

    def uses(access: model.Access) -> bool:
        return access.buffer == buffer

    last = _last_line(program, setters, uses)
    once = _edit(with_event, setters, lambda body: _after(body, uses, trigger, depth=0))
    once = _edit(once, (later.role,), lambda body: _before(body, _at(later.where), wait, depth=0))
    yield Repair(f"an event that is set after line {last} and waited for before line {_line(later.where)}", once)
    looped = _edit(with_event, setters, lambda body: (trigger, *_after(body, uses, trigger, depth=1)))
    looped = _edit(looped, (later.role,), lambda body: _wait_first(body, _at(later.where), wait))
    yield Repair(
        f"an event that {_roles(setters)} {'sets' if len(setters) == 1 else 'set'} once in advance and again after "
        f"line {last}, and that {later.role} waits for at the head of its outer loop",
        looped,
    )


def _roles(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _line(where: str | None) -> str:
    parts = (where or "").rsplit(":", 2)
    return parts[1] if len(parts) == 3 else str(where)


# --------------------------------------------------------------------------------------------------------------
# Editing programs


def _edit(program: model.Program, names: tuple[str, ...], change: Callable[[Body], Body]) -> model.Program:
    roles = tuple(replace(r, body=change(r.body)) if r.name in names else r for r in program.roles)
    return replace(program, roles=roles)


def _at(where: str | None) -> Test:
    return lambda access: access.where == where


def _buffer_at(program: model.Program, site: Site) -> str | None:
    for role in program.roles:
        for access in _accesses(role.body) if role.name == site.role else ():
            if access.where == site.where and access.buffer in site.label:
                return access.buffer
    return None


def _last_line(program: model.Program, roles: tuple[str, ...], test: Test) -> str:
    last = ""
    for role in program.roles:
        if role.name == roles[0]:
            last = [_line(access.where) for access in _accesses(role.body) if test(access)][-1]
    return last


def _accesses(body: Body) -> Iterator[model.Access]:
    for statement in body:
        if isinstance(statement, model.Access):
            yield statement
        yield from _accesses(_inner(statement))


def _inner(statement: model.Statement) -> Body:
    if isinstance(statement, model.Loop):
        return statement.body
    return (*statement.then, *statement.orelse) if isinstance(statement, model.If) else ()


def _contains(body: Body, test: Test) -> bool:
    return any(test(access) for access in _accesses(body))


def _before(body: Body, test: Test, new: model.Operation, depth: int = 99) -> Body:
    """``new`` before the first statement with such an access, inside at most ``depth`` loops."""
    for position, statement in enumerate(body):
        if _contains((statement,), test):
            if isinstance(statement, model.Loop) and depth > 0:
                inside: Body = (replace(statement, body=_before(statement.body, test, new, depth - 1)),)
            else:
                inside = (new, statement)
            return (*body[:position], *inside, *body[position + 1 :])
    return body


def _after(body: Body, test: Test, new: model.Operation, depth: int) -> Body:
    """``new`` after the last statement with such an access, inside at most ``depth`` loops."""
    for position in range(len(body) - 1, -1, -1):
        statement = body[position]
        if _contains((statement,), test):
            if isinstance(statement, model.Loop) and depth > 0:
                inside: Body = (replace(statement, body=_after(statement.body, test, new, depth - 1)),)
            else:
                inside = (statement, new)
            return (*body[:position], *inside, *body[position + 1 :])
    return body


def _wait_first(body: Body, test: Test, wait: model.Wait) -> Body:
    """``wait`` at the head of the outermost loop that holds such an access."""
    return tuple(
        replace(s, body=(wait, *s.body)) if isinstance(s, model.Loop) and _contains(s.body, test) else s for s in body
    )
