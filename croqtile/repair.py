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
    members = tuple(r.name for r in program.roles if r.kind == "warpgroup" and _contains(r.body, later.where))
    if len(members) < 2 or earlier.role not in members or later.where is None:
        return
    barrier = model.Barrier(_BARRIER, members, _BARRIER)
    changed = _edit(program, members, lambda body: _insert(body, later.where, before=(barrier,)))
    numbers = [name.rsplit(" ", 1)[-1] for name in members]
    named = f"sync.wg {', '.join(numbers)};" if all(n.isdigit() for n in numbers) else f"a barrier of {members}"
    yield Repair(f"`{named}` before line {_line(later.where)}", changed)


def _event(program: model.Program, earlier: Site, later: Site) -> Iterator[Repair]:
    """``earlier`` sets an event after its access, ``later`` waits for it; per iteration of the outer loop if both have
    one, with one setting in advance."""
    if earlier.role == later.role or earlier.where is None or later.where is None:
        return
    setters = tuple(r.name for r in program.roles if _contains(r.body, earlier.where))
    with_event = replace(program, events=(*program.events, model.Event(_EVENT, 1, len(setters))))
    trigger, wait = model.Trigger(_EVENT, label=f"trigger {_EVENT}"), model.Wait(_EVENT, label=f"wait {_EVENT}")
    once = _edit(with_event, setters, lambda body: _insert(body, earlier.where, after=(trigger,), outermost=True))
    once = _edit(once, (later.role,), lambda body: _insert(body, later.where, before=(wait,), outermost=True))
    at = f"set after line {_line(earlier.where)}, waited for before line {_line(later.where)}"
    yield Repair(f"an event, {at}", once)
    looped = _edit(
        with_event, setters, lambda body: (trigger, *_insert(body, earlier.where, after=(trigger,), depth=1))
    )
    looped = _edit(looped, (later.role,), lambda body: _wait_first(body, later.where, wait))
    yield Repair(
        f"an event that {_roles(setters)} set once in advance and again after line {_line(earlier.where)}, and that "
        f"{later.role} waits for at the head of its outer loop",
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


def _inner(statement: model.Statement) -> Body:
    if isinstance(statement, model.Loop):
        return statement.body
    return (*statement.then, *statement.orelse) if isinstance(statement, model.If) else ()


def _contains(body: Body, where: str | None) -> bool:
    """Is the access at ``where`` in ``body``?"""
    return any((isinstance(s, model.Access) and s.where == where) or _contains(_inner(s), where) for s in body)


def _insert(
    body: Body, where: str | None, before: Body = (), after: Body = (), outermost: bool = False, depth: int = 0
) -> Body:
    """``before`` and ``after`` around the accesses at ``where``: around the statement that holds them at loop ``depth``
    (0: outside of every loop) if ``outermost`` or ``depth`` says so, else directly."""
    hits = [i for i, s in enumerate(body) if _contains((s,), where)]
    if not hits:
        return body
    first, last = hits[0], hits[-1]
    inside = body[first]
    if isinstance(inside, model.Loop) and first == last and (depth > 0 or not outermost):
        deeper = _insert(inside.body, where, before, after, outermost=depth == 1 or outermost, depth=max(depth - 1, 0))
        return (*body[:first], replace(inside, body=deeper), *body[last + 1 :])
    return (*body[:first], *before, *body[first : last + 1], *after, *body[last + 1 :])


def _wait_first(body: Body, where: str | None, wait: model.Wait) -> Body:
    """``wait`` at the head of the outermost loop that holds the access at ``where``."""
    return tuple(
        replace(s, body=(wait, *s.body)) if isinstance(s, model.Loop) and _contains(s.body, where) else s for s in body
    )
