"""What may stand where: statements that all threads of a warpgroup must reach."""

from __future__ import annotations

from croqtile import diagnostics as diag
from croqtile import ir
from croqtile.check.scope import Context, fail


def whole_warpgroup(ctx: Context, span: ir.Span, what: str) -> None:
    """Refuses a warpgroup-wide statement where not all 128 threads come."""
    if ctx.place.thread is not None:
        fail(diag.NeedsWarpgroup(span, what))
    collective(ctx, span, what)


def collective(ctx: Context, span: ir.Span, what: str) -> None:
    """Refuses a statement under a condition that depends on the thread."""
    if ctx.place.divergent is not None and ctx.place.thread is None:
        note = diag.Note(ctx.place.divergent, "the condition is here")
        fail(diag.DivergentStatement(span, what, notes=(note,)))
