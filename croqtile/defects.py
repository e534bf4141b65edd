"""Defects that the engine finds in the synchronisation, as compiler diagnostics at the user's lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from croqtile import diagnostics as diag
from croqtile import ir
from hb_analyzer import model
from hb_analyzer.report import Defect, Report, Site

_CLASSES = {
    "deadlock": diag.Deadlock,
    "overrun": diag.EventOverrun,
    "race": diag.SharedMemoryRace,
    "arrivals": diag.ArrivalMismatch,
}


def describe_defects(
    report: Report, spans: Mapping[str, ir.Span], program: model.Program
) -> tuple[diag.Diagnostic, ...]:
    """One diagnostic per defect, most fundamental first: what deadlocks also shows as other things."""
    defects = (*report.deadlocks, *report.overruns, *report.races, *report.arrivals)
    return tuple(_describe(defect, spans, program) for defect in defects)


def _describe(defect: Defect, spans: Mapping[str, ir.Span], program: model.Program) -> diag.Diagnostic:
    first, second = (_span(site, spans) for site in (defect.first, defect.second))
    released = _early_release(defect, program, spans)
    when = ", ".join(f"{name} = {value}" for name, value in defect.parameters)
    text = defect.why + (f" (at {when})" if when else "")
    notes = []
    if released is not None and defect.first is not None:
        trigger, read = released
        if second is not None and first is not None:
            other = second if read == first else first
            notes.append(diag.Note(other, "this overwrites it"))
        notes.append(diag.Note(read, "the read is issued here and still runs"))
        return diag.OperandReleased(
            trigger, notes=tuple(notes), buffer=defect.buffer or "", event=_event_at(trigger, program)
        )
    if second is not None and defect.second is not None:
        notes.append(diag.Note(second, str(defect.second).split(" (")[0]))
    return _CLASSES[defect.kind](first or second, notes=tuple(notes), why=text)


def _span(site: Site | None, spans: Mapping[str, ir.Span]) -> ir.Span | None:
    return spans.get(site.where) if site is not None and site.where is not None else None


def _early_release(
    defect: Defect, program: model.Program, spans: Mapping[str, ir.Span]
) -> tuple[ir.Span, ir.Span] | None:
    """For a race of a matrix instruction's read with a copy: the trigger that lets the copy start, and the read.

    That is the first trigger after the read, in the reader's code, of an event that the copying role waits for.
    """
    if defect.kind != "race":
        return None
    for site, other in ((defect.first, defect.second), (defect.second, defect.first)):
        if site is None or other is None or site.role == other.role:
            continue
        bodies = {role.name: list(_flat(role.body)) for role in program.roles}
        reader, writer = bodies.get(site.role, []), bodies.get(other.role, [])
        waited = {s.event for s in writer if isinstance(s, model.Wait)}
        for position, access in enumerate(reader):
            if isinstance(access, model.Access) and access.where == site.where and access.ends == "group":
                for later in reader[position:]:
                    if isinstance(later, model.Trigger) and later.event in waited:
                        trigger, read = spans.get(later.where or ""), spans.get(access.where or "")
                        return (trigger, read) if trigger is not None and read is not None else None
    return None


def _event_at(trigger: ir.Span, program: model.Program) -> str:
    for role in program.roles:
        for statement in _flat(role.body):
            if isinstance(statement, model.Trigger) and statement.where == str(trigger):
                return statement.label.removeprefix("trigger ")
    return ""


def _flat(body: tuple[model.Statement, ...]) -> Iterator[model.Statement]:
    for statement in body:
        yield statement
        if isinstance(statement, model.Loop):
            yield from _flat(statement.body)
        elif isinstance(statement, model.If):
            yield from _flat(statement.then)
            yield from _flat(statement.orelse)
