"""Bulk copies: directions, extents, element types, what the copy engine can move, and swizzles."""

from __future__ import annotations

from croqtile import ast, fold, ir
from croqtile import diagnostics as diag
from croqtile.check import expressions, views
from croqtile.check.scope import Chunk, Context, fail

_GRANULE = 16  # bytes: the copy engine's unit
_MAX_BOX = 256  # elements per dimension of one box
_SPLITS = range(32, _MAX_BOX + 1, 8)  # what a larger tile is split into: not too many boxes, whole swizzle patterns


def copy_in(ctx: Context, statement: ast.Copy, event: ir.Event, slot: ir.Expr) -> ir.CopyIn:
    """``tma.copy.async<event>``: device → shared."""
    source, target = _sides(ctx, statement)
    if not isinstance(source.root, ir.Tensor) or not isinstance(target.root, ir.SharedBuffer):
        fail(_wrong_direction(statement, source, target, "tma.copy.async goes from device to shared memory"))
    if statement.multicast and ctx.cluster is None:
        fail(diag.NotHere(statement.span, "'.multicast'", "needs a cluster (parallel … : cluster)"))
    width = swizzle(ctx, statement.swizzle)
    _check_tile(ctx, statement, source, target, target, width)
    return ir.CopyIn(source, target, event, slot, width, statement.span, statement.multicast)


def copy_out(ctx: Context, statement: ast.Copy) -> ir.CopyOut:
    """``tma.copy``: shared → device."""
    source, target = _sides(ctx, statement)
    if not isinstance(source.root, ir.SharedBuffer) or not isinstance(target.root, ir.Tensor):
        what = "tma.copy without .async<event> goes from shared to device memory"
        fail(_wrong_direction(statement, source, target, what))
    if statement.multicast:
        fail(diag.NotHere(statement.span, "'.multicast'", "is for copies into shared memory"))
    _check_tile(ctx, statement, source, target, source, swizzle(ctx, statement.swizzle))
    return ir.CopyOut(source, target, statement.span)


def swizzle(ctx: Context, written: ast.Swizzle | None) -> int:
    """The bytes of ``.swiz<…>``, 0 without it."""
    if written is None:
        return 0
    width = expressions.constant(ctx, written.bytes, "a swizzle", minimum=None)
    if width not in (32, 64, 128):
        fail(diag.BadSwizzle(written.span, width))
    return width


def layout(ctx: Context, tile: ir.View, width: int, span: ir.Span, what: str) -> None:
    """Checks an explicit swizzle of ``tile``'s buffer: it must divide rows, and be the same everywhere."""
    buffer = tile.root
    if not width or not isinstance(buffer, ir.SharedBuffer):
        return
    row = buffer.shape[-1] * buffer.elem.bytes
    if row % width:
        name = f"rows of '{buffer.name}'"
        fail(diag.SwizzleTooWide(span, width, name, buffer.shape[-1], buffer.elem.spelling, row))
    columns = _columns(tile)
    if what == "copy" and columns is not None and columns * buffer.elem.bytes % width:
        elem, size = buffer.elem.spelling, columns * buffer.elem.bytes
        fail(diag.SwizzleTooWide(span, width, "this tile", columns, elem, size))
    earlier, place = ctx.layouts.setdefault(buffer, (width, span))
    if earlier != width:
        note = diag.Note(place, f"here it is {earlier}")
        fail(diag.SwizzleDisagrees(span, buffer.name, width, earlier, notes=(note,)))


def _columns(tile: ir.View) -> int | None:
    """Extent of ``tile`` along the last dimension of its root."""
    levels = tile.dims[-1].levels
    whole = tile.root.dims[-1] if isinstance(tile.root, ir.Tensor) else ir.IntLit(tile.root.shape[-1])
    return fold.integer(levels[-1].extent if levels else whole)


def _sides(ctx: Context, statement: ast.Copy) -> tuple[ir.View, ir.View]:
    source, target = views.view(ctx, statement.source), views.view(ctx, statement.target)
    if isinstance(source, Chunk) and isinstance(target, Chunk):
        fail(diag.ChunkOnBothSides(statement.span))
    if isinstance(source, Chunk):
        assert isinstance(target, ir.View)
        return views.settle(ctx, source, target.extents()), target
    return source, views.settle(ctx, target, source.extents())


def _wrong_direction(statement: ast.Copy, source: ir.View, target: ir.View, what: str) -> diag.WrongDirection:
    def memory(view: ir.View) -> str:
        return "device" if isinstance(view.root, ir.Tensor) else "shared"

    return diag.WrongDirection(statement.span, what, memory(source), memory(target))


def _check_tile(
    ctx: Context, statement: ast.Copy, source: ir.View, target: ir.View, shared: ir.View, width: int
) -> None:
    if source.root.elem is not target.root.elem:
        left, right = source.root.elem.spelling, target.root.elem.spelling
        fail(diag.ElementTypeMismatch(statement.span, "the source", left, "the target", right))
    outside = source if shared is target else target
    extents = views.constant_extents(outside, outside.span, "a tile that is copied")
    if _squeezed(extents) != _squeezed(views.constant_extents(shared, shared.span, "a tile of shared memory")):
        left, right = views.spelled_extents(source), views.spelled_extents(target)
        fail(diag.ShapeMismatch(statement.span, "the source", left, "the target", right))
    elem, columns = source.root.elem, _columns(outside)
    if columns is not None and columns * elem.bytes % _GRANULE:
        fail(diag.RowNotCopyable(outside.span, columns, elem.spelling, columns * elem.bytes))
    for number, extent in enumerate(extents[:-1]):
        if extent > _MAX_BOX and all(extent % box for box in _SPLITS):
            fail(diag.BoxTooLarge(outside.span, number, extent))
    if statement.swizzle is not None:
        layout(ctx, shared, width, statement.swizzle.span, "copy")


def _squeezed(extents: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(extent for extent in extents if extent != 1)
