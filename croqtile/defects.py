"""Defects that the engine finds in the synchronisation, as compiler diagnostics at the user's lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from croqtile import diagnostics as diag
from croqtile import ir
from hb_analyzer import model
from hb_analyzer.report import Defect, Report, Site

NO_CALLS: Mapping[str, str] = {}


def describe_defects(
    report: Report, spans: Mapping[str, ir.Span], program: model.Program, calls: Mapping[str, str] = NO_CALLS
) -> tuple[diag.Diagnostic, ...]:
    """One diagnostic per defect, most fundamental first: what deadlocks also shows as other things.

    A defect is an error, unless the analysis could not follow the whole program: then it may be imagined, and is a
    warning. ``calls``: the functions that the program calls, by place; what they do to their arguments is not known.
    """
    defects = (*report.deadlocks, *report.overruns, *report.races, *report.unawaited, *report.arrivals)
    return tuple(_describe(defect, spans, program, calls) for defect in defects)


def _describe(
    defect: Defect, spans: Mapping[str, ir.Span], program: model.Program, calls: Mapping[str, str]
) -> diag.Diagnostic:
    first, second = (_span(site, spans) for site in (defect.first, defect.second))
    notes: tuple[diag.Note, ...] = ()
    if second is not None and second != first and defect.second is not None:
        notes = (diag.Note(second, _brief(defect.second)),)
    doubt = _doubt(defect, program, calls)
    if doubt is not None and defect.kind != "arrivals":
        return diag.PossibleDefect(
            first or second, notes=notes, kind=_KINDS[defect.kind], why=_why(defect), reason=doubt
        )
    released = _early_release(defect, program, spans)
    if released is not None:
        trigger, event, read, write = released
        places = (diag.Note(read, "the read is issued here and still runs"), diag.Note(write, "this overwrites it"))
        return diag.OperandReleased(trigger, notes=places, buffer=defect.buffer or "", event=event)
    if defect.kind == "deadlock":
        return diag.Deadlock(first or second, notes=notes, why=_why(defect))
    if defect.kind == "overrun":
        return diag.EventOverrun(first or second, notes=notes, why=_why(defect))
    if defect.kind == "race":
        return diag.SharedMemoryRace(first or second, notes=notes, why=_why(defect))
    if defect.kind == "unawaited":
        return diag.CopyUnawaited(first or second, notes=notes, why=_why(defect))
    return diag.ArrivalMismatch(first or second, notes=notes, why=_why(defect))


_KINDS = {
    "deadlock": "deadlock",
    "overrun": "event overrun",
    "race": "race in shared memory",
    "unawaited": "copy without a wait",
}


def _why(defect: Defect) -> str:
    when = ", ".join(f"{name} = {value}" for name, value in defect.parameters)
    suffix = f" (with {when})" if when else ""
    if defect.kind == "race" and defect.first is not None and defect.second is not None:
        return f"nothing orders {_brief(defect.first)} and {_brief(defect.second)}{suffix}"
    if defect.kind == "unawaited" and defect.first is not None:
        missing = f"for the setting of '{defect.event}' that it completes" if defect.event else "for it"
        return f"the CTA can end while {_brief(defect.first)} is under way: nothing waits {missing}{suffix}"
    return re.sub(r" \([^()]*:\d+:\d+\)", "", defect.why) + suffix


def _brief(site: Site) -> str:
    """A site without its place, which the caret shows."""
    iteration = f" in iteration {', '.join(map(str, site.iteration))}" if site.iteration else ""
    return f"'{site.label}' of {site.role}{iteration}"


def _span(site: Site | None, spans: Mapping[str, ir.Span]) -> ir.Span | None:
    return spans.get(site.where) if site is not None and site.where is not None else None


def _doubt(defect: Defect, program: model.Program, calls: Mapping[str, str]) -> str | None:
    """Why a defect may be imagined: code that the analysis cannot follow, counts whose relation it does not know, or an
    access that may touch less than the analysis must assume."""
    if defect.kind == "race":
        for site in (defect.first, defect.second):
            if site is not None and _somewhere(site, defect.buffer, program):
                return f"they may touch different parts of '{defect.buffer}'"
            function = calls.get(site.where or "") if site is not None else None
            if function is not None:
                return f"'{function}' may read only, or touch only a part of its argument"
    for role in program.roles:
        for statement in _flat(role.body):
            if not isinstance(statement, model.Opaque):
                continue
            if statement.events or not statement.buffers or defect.buffer in statement.buffers:
                return f"the analysis cannot follow {statement.reason}"
    names = {name for name, _ in defect.parameters}
    for assumption in program.assumptions:
        if sum(f"`{name}`" in assumption for name in names) > 1:
            return assumption
    return None


def _somewhere(site: Site, buffer: str | None, program: model.Program) -> bool:
    """Is the access at ``site`` one to a part of the buffer that changes from one time to the next?"""
    bodies = (role.body for role in program.roles if role.name == site.role)
    accesses = (s for body in bodies for s in _flat(body) if isinstance(s, model.Access) and s.buffer == buffer)
    return any(access.region is None and access.where == site.where for access in accesses)


def _early_release(
    defect: Defect, program: model.Program, spans: Mapping[str, ir.Span]
) -> tuple[ir.Span, str, ir.Span, ir.Span] | None:
    """For a race of a matrix instruction's read with a copy: the trigger that lets the copy start, its event, the read
    and the write.

    That is the first trigger after the read, in the reader's code, of an event that the copying role waits for.
    """
    if defect.kind != "race":
        return None
    bodies = {role.name: list(_flat(role.body)) for role in program.roles}
    for site, other in ((defect.first, defect.second), (defect.second, defect.first)):
        if site is None or other is None or site.role == other.role:
            continue
        reader = bodies.get(site.role, [])
        waited = {s.event for s in bodies.get(other.role, []) if isinstance(s, model.Wait)}
        read, write = _span(site, spans), _span(other, spans)
        reads = [s for s in reader if isinstance(s, model.Access) and s.where == site.where and s.ends == "group"]
        if not reads or read is None or write is None:
            continue
        for later in reader[reader.index(reads[0]) :]:
            if isinstance(later, model.Drain):
                break  # the read is awaited before anything is released
            trigger = spans.get(later.where or "") if isinstance(later, model.Trigger) else None
            if trigger is not None and isinstance(later, model.Trigger) and later.event in waited:
                return trigger, later.label.removeprefix("trigger "), read, write
    return None


def _flat(body: tuple[model.Statement, ...]) -> Iterator[model.Statement]:
    for statement in body:
        yield statement
        if isinstance(statement, model.Loop):
            yield from _flat(statement.body)
        elif isinstance(statement, model.If):
            yield from _flat(statement.then)
            yield from _flat(statement.orelse)
