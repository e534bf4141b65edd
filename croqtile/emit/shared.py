"""Where the elements of a shared tile are: the layouts of ``ir.SharedBuffer`` as byte offsets.

With swizzle B a tile is cut along its last dimension into panels of B bytes; a panel is ``rows`` rows of B bytes
(rows = product of all other dimensions), and the next panel follows it. Row-major tiles are one panel as wide as the
tile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from croqtile import fold, ir
from croqtile.emit.errors import refuse


@dataclass(frozen=True)
class Tile:
    """A view of a shared buffer. ``row`` and ``column`` (elements) are where it starts in the buffer's tile of slot
    ``slot``; it is ``rows`` × ``columns`` large. Rows of all leading dimensions are counted through."""

    buffer: ir.SharedBuffer
    slot: ir.Expr
    row: ir.Expr
    column: ir.Expr
    rows: int
    columns: int
    span: ir.Span

    @property
    def elem_bytes(self) -> int:
        return self.buffer.elem.bytes

    @property
    def pitch(self) -> int:
        """Bytes from one row to the next inside a panel."""
        return self.buffer.swizzle or self.buffer.shape[-1] * self.elem_bytes

    @property
    def panel_columns(self) -> int:
        """Columns of a panel, in elements."""
        return self.pitch // self.elem_bytes

    @property
    def panel_bytes(self) -> int:
        """From one panel to the next: all rows of the buffer's tile, not only of this view."""
        return self.buffer.tile_bytes // self.buffer.shape[-1] // self.elem_bytes * self.pitch

    def apart(self, other: Tile) -> bool:
        """Has it certainly no element in common with ``other``, a tile of the same buffer?"""
        slots = fold.integer(self.slot), fold.integer(other.slot)
        if None not in slots and slots[0] != slots[1]:
            return True
        if self.slot != other.slot:
            return False
        extents = (self.row, self.rows, other.row, other.rows), (self.column, self.columns, other.column, other.columns)
        for start, size, other_start, other_size in extents:
            low, other_low = fold.integer(start), fold.integer(other_start)
            if low is not None and other_low is not None and (low + size <= other_low or other_low + other_size <= low):
                return True
        return False

    def start(self) -> ir.Expr:
        """Byte offset of the tile of the view's slot from the start of the buffer."""
        return fold.binary("*", self.slot, ir.IntLit(self.buffer.tile_bytes))

    def offset(self, row: int = 0, column: int = 0) -> ir.Expr:
        """Byte offset of element (row, column) of the view from the start of the buffer, before the swizzle's XOR
        (which leaves multiples of the pattern's size alone)."""
        at_row = scaled(fold.binary("+", self.row, ir.IntLit(row)), self.pitch)
        at_column = self._column_offset(fold.binary("+", self.column, ir.IntLit(column)))
        return _sum(_sum(self.start(), at_row), at_column)

    def _column_offset(self, column: ir.Expr) -> ir.Expr:
        value = fold.integer(column)
        if value is not None:
            panel, inside = divmod(value, self.panel_columns)
            return ir.IntLit(panel * self.panel_bytes + inside * self.elem_bytes)
        if not self.buffer.swizzle:
            return fold.binary("*", column, ir.IntLit(self.elem_bytes))
        columns = ir.IntLit(self.panel_columns)
        panel_at = fold.binary("*", fold.binary("/", column, columns), ir.IntLit(self.panel_bytes))
        inside_at = fold.binary("*", fold.binary("%", column, columns), ir.IntLit(self.elem_bytes))
        return fold.binary("+", panel_at, inside_at)


def _sum(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """``a + b``, from left to right: no parentheses when printed."""
    if isinstance(b, ir.Binary) and b.op == "+":
        return _sum(_sum(a, b.left), b.right)
    return fold.binary("+", a, b)


def known_divisor(expr: ir.Expr) -> int:
    """A number that divides the value of ``expr`` whatever its symbols are; 0 for the value 0."""
    if isinstance(expr, ir.IntLit):
        return abs(expr.value)
    if isinstance(expr, ir.Binary) and expr.op in ("+", "-"):
        return math.gcd(known_divisor(expr.left), known_divisor(expr.right))
    if isinstance(expr, ir.Binary) and expr.op == "*":
        return known_divisor(expr.left) * known_divisor(expr.right)
    if isinstance(expr, ir.Binary) and expr.op == "%" and (divisor := fold.integer(expr.right)):
        inner = known_divisor(expr.left)
        return 0 if inner % divisor == 0 else math.gcd(inner, divisor)
    return 1


def scaled(expr: ir.Expr, factor: int) -> ir.Expr:
    """``expr · factor``; (x · 64) · 128 becomes x · 8192."""
    if isinstance(expr, ir.Binary) and expr.op == "*" and isinstance(expr.right, ir.IntLit):
        return fold.binary("*", expr.left, ir.IntLit(expr.right.value * factor))
    return fold.binary("*", expr, ir.IntLit(factor))


def tile(view: ir.View) -> Tile:
    """The tile of a view whose rows are contiguous in their panel. Refuses any other, and inner tiles that would make
    the pattern of the swizzle start anywhere but at its beginning."""
    buffer = view.root
    assert isinstance(buffer, ir.SharedBuffer)
    starts: list[ir.Expr] = []
    extents: list[int] = []
    for dim, full in zip(view.dims, buffer.shape, strict=True):
        start: ir.Expr = fold.ZERO
        for level in dim.levels:
            start = fold.binary("+", start, fold.binary("*", level.index, level.step))
        extent = dim.levels[-1].extent if dim.levels else ir.IntLit(full)
        value = fold.integer(extent)
        if value is None:
            refuse(view.span, "the extents of a shared tile must be constants")
        starts.append(start)
        extents.append(value)
    _check_contiguous(view, buffer, extents)
    row: ir.Expr = fold.ZERO
    rows = 1
    for start, size, full in zip(starts[:-1], extents[:-1], buffer.shape[:-1], strict=True):
        row = fold.binary("+", fold.binary("*", row, ir.IntLit(full)), start)
        rows *= size
    if buffer.swizzle and buffer.tile_bytes % buffer.align:
        refuse(
            view.span,
            f"a tile of {buffer.name} is {buffer.tile_bytes} bytes, which is no multiple of the {buffer.align} bytes "
            f"after which the swizzle of {buffer.swizzle} repeats",
        )
    slot = view.slot if view.slot is not None else fold.ZERO
    return Tile(buffer, slot, row, starts[-1], rows, extents[-1], view.span)


def _check_contiguous(view: ir.View, buffer: ir.SharedBuffer, extents: list[int]) -> None:
    leading = [(extent, full) for extent, full in zip(extents[:-1], buffer.shape[:-1], strict=True)]
    while leading and leading[0][0] == 1:
        leading.pop(0)
    if any(extent != full for extent, full in leading[1:]):
        refuse(view.span, f"the rows of this part of {buffer.name} do not follow one another in memory")
