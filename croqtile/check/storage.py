"""Declarations: shared buffers, events, fragments."""

from __future__ import annotations

from croqtile import ast, fold, ir, smem
from croqtile import diagnostics as diag
from croqtile.check import expressions
from croqtile.check.scope import Context, EventName, FragmentName, Poison, ViewName, fail
from croqtile.check.types import element

_MOST_SLOTS = smem.BLOCK_LIMIT // smem.BARRIER_BYTES


def shared(ctx: Context, statement: ast.SharedBuffers | ast.SharedEvents) -> None:
    """``shared elem [shape] a, b[count];`` or ``shared event e, f[slots];``"""
    for item in statement.items:
        if item.name.name not in ctx.scope.names:
            ctx.bind(item.name.name, Poison(item.span))
    if isinstance(statement, ast.SharedEvents):
        for item in statement.items:
            with ctx.recovering():
                slots = 1 if item.count is None else expressions.constant(ctx, item.count, "the number of slots")
                if item.count is not None and slots > _MOST_SLOTS:
                    fail(diag.TooManySlots(item.count.span, slots, _MOST_SLOTS))
                event = ir.Event(ctx.cname(item.name.name), slots, item.count is not None, item.name.span)
                ctx.declare(item.name.name, EventName(event, item.name.span))
                ctx.events.append(event)
        return
    elem = element(statement.elem)
    what = "an extent of a shared buffer"
    shape = tuple(expressions.constant(ctx, extent, what) for extent in statement.shape)
    if not shape:
        fail(diag.WrongRank(statement.span, "a shared buffer", 1, 0, "its shape gives"))
    for item in statement.items:
        with ctx.recovering():
            count = 1 if item.count is None else expressions.constant(ctx, item.count, "the number of buffers")
            is_array = item.count is not None
            buffer = ir.SharedBuffer(ctx.cname(item.name.name), elem, shape, count, is_array, item.name.span)
            whole = ir.View(buffer, tuple(ir.ViewDim() for _ in shape), item.name.span)
            ctx.declare(item.name.name, ViewName(whole, item.name.span))
            ctx.buffers.append(buffer)


def fragments(ctx: Context, statement: ast.Fragments) -> list[ir.Stmt]:
    """``fragment elem[rows] v {init};`` or ``fragment elem[rows, cols] m;``"""
    for item in statement.items:
        if item.name.name not in ctx.scope.names:
            ctx.bind(item.name.name, Poison(item.span))
    elem = element(statement.elem)
    if len(statement.shape) not in (1, 2):
        fail(diag.TooManyDimensions(statement.span, "a fragment", 2, len(statement.shape)))
    extents = [expressions.constant(ctx, extent, "an extent of a fragment") for extent in statement.shape]
    rows, cols = extents[0], extents[1] if len(extents) == 2 else None
    if rows % 64:
        fail(diag.FragmentShape(statement.shape[0].span, "a multiple of 64 rows", rows))
    if cols is not None and cols % 8:
        fail(diag.FragmentShape(statement.shape[1].span, "a multiple of 8 columns", cols))
    made: list[ir.Stmt] = []
    for item in statement.items:
        init = literal(ctx, item.value) if item.value is not None else None
        name = item.name.name
        fragment = ir.Fragment(name, ctx.cname(name), elem, rows, cols, init, item.name.span)
        ctx.declare(name, FragmentName(fragment, item.name.span))
        made.append(ir.FragDecl(fragment, item.span))
    return made


def literal(ctx: Context, expr: ast.Expr) -> ir.FloatLit:
    """A floating-point literal; an integer one is taken as such."""
    value = expressions.scalar(ctx, expr).expr
    number = fold.integer(value)
    if number is not None:
        return ir.FloatLit(f"{number}.0f")
    if not isinstance(value, ir.FloatLit):
        fail(diag.NotConstant(expr.span, "an initial value"))
    return value
