"""Checks of a whole function's events: somebody triggers what is waited for, and the right role closes its copies."""

from __future__ import annotations

from croqtile import diagnostics as diag
from croqtile.check.scope import Context, EventUse


def events(ctx: Context) -> None:
    for event in ctx.events:
        uses = [use for use in ctx.uses if use.event is event]
        waits, triggers, copies = (_first_of(uses, kind) for kind in ("wait", "trigger", "copy"))
        if not triggers and copies:
            ctx.report(diag.CopyNeverTriggered(copies[0].span, event.name))
        elif not triggers and waits:
            ctx.report(diag.NeverTriggered(waits[0].span, event.name))
        elif copies and not waits:
            ctx.report(diag.CopyNeverWaited(copies[0].span, event.name))
        for copy in copies:
            if triggers and not any(trigger.role == copy.role for trigger in triggers):
                note = diag.Note(copy.span, "the copy is here")
                ctx.report(diag.TriggerOfAnotherRole(triggers[0].span, event.name, notes=(note,)))
                break


def _first_of(uses: list[EventUse], kind: str) -> list[EventUse]:
    return [use for use in uses if use.kind == kind]
