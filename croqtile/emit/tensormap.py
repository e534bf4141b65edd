"""How the copy engine addresses a view of a tensor: the dimensions of its tensor map, and where a tile starts in them.

The copy engine clips a tile at the extents of the map. A view of a view is out of range where it leaves the view that
it was taken from, so a tensor dimension that is cut twice becomes two map dimensions: with ``x`` of shape [T, C],
``x.subspan(SEQ, C).at(b, 0).subspan(128, C).at(i, 0)`` has rows (SEQ, then T / SEQ), and rows of tile i beyond SEQ read
as zero instead of as the next sequence. That needs T to be a multiple of SEQ, which :attr:`Access.whole` hands to the
wrapper. A cut that its inner tiles provably never leave costs no dimension and no such condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from croqtile import ir
from croqtile.fold import ZERO, binary

MAX_DIMS = 5  # of a tensor map (CUDA driver API, cuTensorMapEncodeTiled)

Range = tuple[int | None, int | None]  # inclusive; None: unknown
Ranges = Mapping[ir.Symbol, Range]


class UnsupportedView(Exception):
    """The copy engine cannot address this view; the message says why, as a clause about it."""


@dataclass(frozen=True)
class Axis:
    """One map dimension. ``extent`` and ``stride`` (elements) depend on the launch only; ``origin`` is the tile's first
    coordinate, in units of the stride, as the device computes it; ``tile`` the number of elements of the tile."""

    extent: ir.Expr
    stride: ir.Expr
    origin: ir.Expr
    tile: int


@dataclass(frozen=True)
class Access:
    """``axes`` innermost first. ``whole``: (inner extent, dimension) pairs that must divide exactly at launch."""

    axes: tuple[Axis, ...]
    whole: tuple[tuple[ir.Expr, ir.Expr], ...]


def access(view: ir.View, ranges: Ranges | None = None) -> Access:
    """The map dimensions and the origin of the tile ``view`` of a tensor.

    ``ranges`` adds what the caller knows about symbols (the warpgroups of a role) to their bounds. Raises
    :class:`UnsupportedView` if the tile's extents are not constant or more than five dimensions are needed.
    """
    tensor = view.root
    if not isinstance(tensor, ir.Tensor):
        raise UnsupportedView("it is no view of a tensor")
    axes: list[Axis] = []
    whole: list[tuple[ir.Expr, ir.Expr]] = []
    stride: ir.Expr = ir.IntLit(1)
    for dim, extent in zip(reversed(view.dims), reversed(tensor.dims), strict=True):
        axes += _dimension(dim, extent, stride, ranges or {}, whole)
        stride = binary("*", stride, extent)
    if len(axes) > MAX_DIMS:
        raise UnsupportedView(f"it needs a tensor map of {len(axes)} dimensions; the copy engine has {MAX_DIMS}")
    return Access(tuple(axes), tuple(whole))


def _dimension(
    dim: ir.ViewDim, full: ir.Expr, stride: ir.Expr, ranges: Ranges, whole: list[tuple[ir.Expr, ir.Expr]]
) -> list[Axis]:
    """The axes of one tensor dimension, innermost first."""
    outer: list[Axis] = []  # outermost first
    origin: ir.Expr = ZERO
    for level, rest in zip(dim.levels[:-1], (dim.levels[k:] for k in range(1, len(dim.levels))), strict=True):
        start = binary("*", level.index, level.step)
        if _stays_inside(rest, level.extent, ranges):
            origin = binary("+", origin, start)
        elif start == ZERO and origin == ZERO and level.extent == full:
            continue  # the whole dimension again
        elif origin != ZERO:
            raise UnsupportedView("a tile may leave a view that starts inside another tile")
        elif level.step == ZERO:
            full = level.extent
        else:
            count, condition = _positions(level, full)
            whole.append(condition)
            outer.append(Axis(count, binary("*", level.step, stride), level.index, 1))
            full = level.extent
    tile = full
    if dim.levels:
        last = dim.levels[-1]
        tile, origin = last.extent, binary("+", origin, binary("*", last.index, last.step))
    if not isinstance(tile, ir.IntLit):
        raise UnsupportedView("the extents of its tile are not constant")
    return [Axis(full, stride, origin, tile.value), *reversed(outer)]


def _positions(level: ir.Level, full: ir.Expr) -> tuple[ir.Expr, tuple[ir.Expr, ir.Expr]]:
    """How many views of this level the dimension holds, and what must divide exactly for it to hold no part of one.

    Views that overlap (a step below the extent) and are partly beyond the dimension read as zero as a whole.
    """
    if level.step == level.extent:
        return binary("/", full, level.extent), (level.extent, full)
    beyond_first = binary("-", full, level.extent)
    return binary("+", binary("/", beyond_first, level.step), ir.IntLit(1)), (level.step, beyond_first)


def _stays_inside(levels: tuple[ir.Level, ...], extent: ir.Expr, ranges: Ranges) -> bool:
    """Do tiles cut by ``levels`` out of a view of ``extent`` provably lie in it, whatever the indices?"""
    starts = [binary("*", level.index, level.step) for level in levels]
    if all(start == ZERO for start in starts) and levels[-1].extent == extent:
        return True
    low, high = 0, 0
    for start in starts:
        bottom, top = interval(start, ranges)
        if bottom is None or top is None:
            return False
        low, high = low + bottom, high + top
    last, limit = levels[-1].extent, extent
    return (
        isinstance(last, ir.IntLit) and isinstance(limit, ir.IntLit) and low >= 0 and high + last.value <= limit.value
    )


def interval(expr: ir.Expr, ranges: Ranges) -> Range:
    """Bounds of an integer expression from the bounds of its symbols."""
    if isinstance(expr, ir.IntLit):
        return expr.value, expr.value
    if isinstance(expr, ir.Var):
        if expr.symbol in ranges:
            return ranges[expr.symbol]
        bound = expr.symbol.bound
        if bound is None:
            return (1, None) if expr.symbol.kind is ir.SymbolKind.DIM else (None, None)
        return 0, bound.value - 1 if isinstance(bound, ir.IntLit) else None
    if isinstance(expr, ir.Binary):
        (a, b), (c, d) = interval(expr.left, ranges), interval(expr.right, ranges)
        if expr.op == "+":
            return _add(a, c), _add(b, d)
        if expr.op == "-":
            return _add(a, None if d is None else -d), _add(b, None if c is None else -c)
        if expr.op == "*" and a is not None and c is not None and a >= 0 and c >= 0:
            return a * c, None if b is None or d is None else b * d
        if expr.op == "%" and a is not None and a >= 0 and c == d and c is not None and c > 0:
            return 0, c - 1
        if expr.op == "/" and a is not None and a >= 0 and c == d and c is not None and c > 0:
            return a // c, None if b is None else b // c
    return None, None


def _add(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b
