"""Bulk tensor copies: how a tile splits into copy instructions, and which tensor map they use."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from croqtile import fold, ir
from croqtile.emit import tensormap
from croqtile.emit.errors import refuse
from croqtile.emit.plan import MapDim
from croqtile.emit.shared import Tile, known_divisor, tile
from croqtile.smem import COPY_ALIGNMENT

GRANULE = 16  # bytes: a box's rows are whole multiples
MAX_BOX = 256  # elements of a box along one dimension (CUDA driver API, cuTensorMapEncodeTiled)


@dataclass(frozen=True)
class Piece:
    """One copy instruction: bytes from the start of the shared buffer, and coordinates in the map, innermost first."""

    offset: ir.Expr
    coordinates: tuple[ir.Expr, ...]


@dataclass(frozen=True)
class Copy:
    """A tile's copy in one direction. All pieces have the same box."""

    tensor: ir.Tensor
    tile: Tile
    dims: tuple[MapDim, ...]  # innermost first
    whole: tuple[tuple[ir.Expr, ir.Expr], ...]
    pieces: tuple[Piece, ...]

    @property
    def bytes(self) -> int:
        """Bytes that arrive, whether or not the tile is partly out of range."""
        return self.tile.rows * self.tile.columns * self.tile.elem_bytes


def plan_copy(statement: ir.CopyIn | ir.CopyOut, ranges: tensormap.Ranges) -> Copy:
    """``ranges``: what is known about the warpgroup index where the statement stands."""
    inward = isinstance(statement, ir.CopyIn)
    tensor_view = statement.source if inward else statement.target
    shared = tile(statement.target if inward else statement.source)
    tensor = tensor_view.root
    assert isinstance(tensor, ir.Tensor), "the checker puts a tensor and a shared tile on the two sides of a copy"
    try:
        access = tensormap.access(tensor_view, ranges)
    except tensormap.UnsupportedView as error:
        refuse(tensor_view.span, f"the copy engine cannot address this part of {tensor.name}: {error}")
    boxes = _boxes(shared, access.axes, statement.span)
    dims = tuple(MapDim(axis.extent, axis.stride, box) for axis, box in zip(access.axes, boxes, strict=True))
    pieces = tuple(_pieces(shared, access.axes, boxes))
    _check_alignment(shared, boxes, pieces, statement.span)
    return Copy(tensor, shared, dims, access.whole, pieces)


def _check_alignment(shared: Tile, boxes: tuple[int, ...], pieces: tuple[Piece, ...], span: ir.Span) -> None:
    """What the copy engine writes or reads at once starts at a multiple of 128 bytes and has rows of whole 16 bytes."""
    if boxes[0] * shared.elem_bytes % GRANULE:
        refuse(span, f"a row splits into boxes of {boxes[0] * shared.elem_bytes} bytes, not whole {GRANULE} bytes")
    unit = math.gcd(*(known_divisor(piece.offset) for piece in pieces))
    if unit % COPY_ALIGNMENT:
        refuse(
            span,
            f"the copy engine needs tiles at a multiple of {COPY_ALIGNMENT} bytes of shared memory; this one "
            f"is only known to start at a multiple of {math.gcd(unit, COPY_ALIGNMENT)} bytes of {shared.buffer.name}",
        )


def _boxes(shared: Tile, axes: tuple[tensormap.Axis, ...], span: ir.Span) -> tuple[int, ...]:
    """The box of one instruction. A box is dense in shared memory, so it is as wide as a row of the layout, and once an
    axis is split the axes outside it go one by one."""
    columns = axes[0].tile
    rows = 1
    for axis in axes[1:]:
        rows *= axis.tile
    if (rows, columns) != (shared.rows, shared.columns):
        refuse(
            span, f"the tensor's tile is {rows} × {columns} elements, the shared one {shared.rows} × {shared.columns}"
        )
    width = min(columns, shared.panel_columns)
    start = fold.integer(shared.column)
    aligned = start is None or start % shared.panel_columns == 0
    if rows > 1 and (width != shared.panel_columns or columns % width or not aligned):
        refuse(
            span,
            f"a copy moves whole rows of {shared.pitch} bytes of {shared.buffer.name}, but this one is "
            f"{columns * shared.elem_bytes} bytes wide",
        )
    boxes = [_largest_divisor(width)]
    if boxes[0] != width and rows > 1:
        refuse(span, f"a row of {width} elements is wider than the {MAX_BOX} elements of a box")
    split = False
    for axis in axes[1:]:
        boxes.append(1 if split else _largest_divisor(axis.tile, 8 if axis.tile > MAX_BOX else 1))
        split = split or boxes[-1] != axis.tile
    return tuple(boxes)


def _largest_divisor(extent: int, unit: int = 1) -> int:
    """The largest divisor that fits a box; one that is a multiple of ``unit`` (a swizzle's 8 rows) if there is any."""
    divisors = [size for size in range(1, min(extent, MAX_BOX) + 1) if extent % size == 0]
    return max((size for size in divisors if size % unit == 0), default=divisors[-1])


def _pieces(shared: Tile, axes: tuple[tensormap.Axis, ...], boxes: tuple[int, ...]) -> list[Piece]:
    steps = [range(0, axis.tile, box) for axis, box in zip(axes, boxes, strict=True)]
    pieces = []
    for reversed_starts in itertools.product(*reversed(steps)):
        starts = reversed_starts[::-1]
        row, size = 0, 1
        for start, axis in zip(starts[1:], axes[1:], strict=True):
            row += start * size
            size *= axis.tile
        coordinates = tuple(
            fold.binary("+", axis.origin, ir.IntLit(start)) for axis, start in zip(axes, starts, strict=True)
        )
        pieces.append(Piece(shared.offset(row, starts[0]), coordinates))
    return pieces
