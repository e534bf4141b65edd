"""The swizzle of every shared buffer.

A swizzle written in the program (``.swiz`` of a copy or of mma.load) has been set by the checker. Buffers without one
that the matrix unit reads, or that mma.store writes, get the widest that fits: matrix descriptors cannot read plain
rows, and plain rows give bank conflicts to mma.store. What a ``call`` gets and what only copies touch stays row-major.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field

from croqtile import diagnostics as diag
from croqtile import fold, ir, rewrite

_WIDTHS = (128, 64, 32)


@dataclass
class _Uses:
    copied: list[ir.View] = field(default_factory=list)
    stored: list[ir.View] = field(default_factory=list)
    by_rows: list[ir.SharedOperand] = field(default_factory=list)  # A, and B of mma.row.row: K along a row
    by_columns: list[ir.SharedOperand] = field(default_factory=list)  # B of mma.row.col: N along a row
    called: list[ir.View] = field(default_factory=list)


def assign(kernel: ir.Kernel, problems: list[diag.Diagnostic]) -> ir.Kernel:
    """The kernel with ``swizzle`` set on its buffers."""
    uses = {buffer: _Uses() for buffer in kernel.buffers}
    for statement in rewrite.statements(kernel.body):
        _collect(statement, uses)
    chosen: dict[object, object] = {}
    for buffer, use in uses.items():
        operands = [*use.by_rows, *use.by_columns]
        width = buffer.swizzle
        if not width and use.called:
            if operands:
                note = diag.Note(use.called[0].span, "the call is here")
                problems.append(diag.SwizzledCall(operands[0].span, buffer.name, notes=(note,)))
        elif not width and (operands or use.stored):
            width = next((w for w in _WIDTHS if _fits(buffer, use, w)), 0)
            if not width and operands:
                row = buffer.shape[-1] * buffer.elem.bytes
                problems.append(diag.NoSwizzleFits(operands[0].span, buffer.name, row))
        elif width:
            problems += _misfits(buffer, use, width)
        problems += _misaligned(buffer, use)
        if width != buffer.swizzle:
            chosen[buffer] = dataclasses.replace(buffer, swizzle=width)
    return rewrite.replace(kernel, chosen)


def _collect(statement: ir.Stmt, uses: dict[ir.SharedBuffer, _Uses]) -> None:
    if isinstance(statement, ir.CopyIn):
        _of(statement.target, uses).copied.append(statement.target)
    elif isinstance(statement, ir.CopyOut):
        _of(statement.source, uses).copied.append(statement.source)
    elif isinstance(statement, ir.MmaStore):
        _of(statement.target, uses).stored.append(statement.target)
    elif isinstance(statement, ir.Mma):
        if isinstance(statement.a, ir.SharedOperand):
            _of(statement.a.view, uses).by_rows.append(statement.a)
        b = _of(statement.b.view, uses)
        (b.by_rows if statement.b_layout == "row" else b.by_columns).append(statement.b)
    elif isinstance(statement, ir.Call):
        for argument in statement.args:
            if isinstance(argument, ir.View) and isinstance(argument.root, ir.SharedBuffer):
                _of(argument, uses).called.append(argument)


def _of(view: ir.View, uses: dict[ir.SharedBuffer, _Uses]) -> _Uses:
    assert isinstance(view.root, ir.SharedBuffer)
    return uses[view.root]


def _fits(buffer: ir.SharedBuffer, use: _Uses, width: int) -> bool:
    return buffer.shape[-1] * buffer.elem.bytes % width == 0 and not _misfits(buffer, use, width)


def _misfits(buffer: ir.SharedBuffer, use: _Uses, width: int) -> list[diag.Diagnostic]:
    """Tiles that do not consist of whole panels, though their user moves whole panels."""
    elem, found = buffer.elem, []
    for view in [*use.copied, *(operand.view for operand in use.by_columns)]:
        columns = column_extent(view)
        size = columns * elem.bytes
        if size % width or not starts_at_multiple(view.dims[-1], width // elem.bytes):
            found.append(diag.SwizzleTooWide(view.span, width, "this tile", columns, elem.spelling, size))
    return [*found]


def _misaligned(buffer: ir.SharedBuffer, use: _Uses) -> list[diag.Diagnostic]:
    """Operands that do not start where a matrix descriptor can: at a row of 8, and a K step inside the row."""
    found: list[diag.Diagnostic] = []
    step = 32 // buffer.elem.bytes
    for operand in [*use.by_rows, *use.by_columns]:
        if not _starts_at_row(operand.view, buffer, 8):
            found.append(diag.OperandMisaligned(operand.span, buffer.name, "rows", 8))
    for operand in use.by_rows:
        if not starts_at_multiple(operand.view.dims[-1], step):
            found.append(diag.OperandMisaligned(operand.span, buffer.name, "columns", step))
    return found


def _starts_at_row(view: ir.View, buffer: ir.SharedBuffer, unit: int) -> bool:
    """Whether a tile starts at a multiple of ``unit`` rows of its buffer, counting all dimensions but the last."""
    stride = 1  # rows per index, from the innermost dimension outwards
    for dim, extent in zip(reversed(view.dims[:-1]), reversed(buffer.shape[:-1]), strict=True):
        if not starts_at_multiple(dim, unit // math.gcd(unit, stride)):
            return False
        stride *= extent
    return True


def column_extent(view: ir.View) -> int:
    """Extent of a tile of shared memory along the last dimension of its buffer."""
    assert isinstance(view.root, ir.SharedBuffer)
    levels = view.dims[-1].levels
    return (fold.integer(levels[-1].extent) if levels else None) or view.root.shape[-1]


def starts_at_multiple(dim: ir.ViewDim, unit: int) -> bool:
    """Whether the offset along ``dim`` is certainly a multiple of ``unit`` elements."""
    for level in dim.levels:
        index, step = fold.integer(level.index), fold.integer(level.step)
        if step is None or (step if index is None else index * step) % unit:
            return False
    return True
