"""One buffer that holds several stages becomes an array of them.

``shared f16 [4 * 64, 64] ring;`` used as ``ring.subspan(64, 64).at(stage, 0)`` means the same as ``shared f16 [64, 64]
ring[4];`` used as ``ring[stage]``. The passes after this one, the analysis above all, know stages only as slots of an
array. A buffer is rewritten if every use of it lies inside one stage, certainly:

    192-row stages:  ring.subspan(192, 64).at(stage, 0)                       → ring[stage]
                     ring.subspan(64, 64).at(stage * (#p - 1) + p - 1, 0)     → rows of p − 1 in ring[stage]

The second needs ``#p - 1`` = 3 and 0 ≤ p − 1 < 3 in that role.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from croqtile import fold, ir, rewrite

_Range = tuple[int, int]


def split(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with every such buffer split."""
    views = list(_views(kernel))
    arrays: dict[object, object] = {}
    moved: dict[int, ir.View] = {}
    for buffer in kernel.buffers:
        used = [(view, instances) for view, instances in views if view.root is buffer]
        if not buffer.is_array and any(_moves(view) for view, _ in used):
            array, found = _split(buffer, used, kernel.warpgroup)
            if array is not None:
                arrays[buffer] = array
                moved.update(found)
    if not arrays:
        return kernel
    return rewrite.replace(rewrite.replace_views(kernel, lambda view: moved.get(id(view), view)), arrays)


def _views(kernel: ir.Kernel) -> Iterator[tuple[ir.View, tuple[int, ...]]]:
    """Every view of shared memory, with the warpgroups that use it."""

    def scan(body: tuple[ir.Stmt, ...], instances: tuple[int, ...]) -> Iterator[tuple[ir.View, tuple[int, ...]]]:
        for statement in body:
            if isinstance(statement, ir.Roles):
                for role in statement.roles:
                    yield from scan(role.body, role.instances)
            elif isinstance(statement, ir.OnlyWarpgroups):
                yield from scan(statement.body, statement.instances)
            elif inner := rewrite.bodies(statement):
                for nested in inner:
                    yield from scan(nested, instances)
            else:
                yield from ((node, instances) for node in rewrite.nodes(statement) if isinstance(node, ir.View))

    yield from scan(kernel.body, tuple(range(kernel.warpgroups)))


def _moves(view: ir.View) -> bool:
    """Whether the rows of the view depend on more than the warpgroup: on a stage."""
    levels = view.dims[0].levels
    kinds = {symbol.kind for symbol in rewrite.symbols(levels[0].index)} if levels else set()
    return bool(kinds - {ir.SymbolKind.WARPGROUP})


def _split(
    buffer: ir.SharedBuffer, used: list[tuple[ir.View, tuple[int, ...]]], warpgroup: ir.Symbol
) -> tuple[ir.SharedBuffer | None, dict[int, ir.View]]:
    """The array in place of ``buffer``, and the new views by the identity of the old; None if there is no way."""
    extents = {fold.integer(view.dims[0].levels[0].extent) for view, _ in used if view.dims[0].levels}
    for rows in sorted((e for e in extents if e), reverse=True):
        if rows == buffer.shape[0] or buffer.shape[0] % rows:
            continue
        count = buffer.shape[0] // rows
        array = dataclasses.replace(buffer, shape=(rows, *buffer.shape[1:]), count=count, is_array=True)
        moved: dict[int, ir.View] = {}
        for view, instances in used:
            new = _in_stage(view, array, rows, {warpgroup: (min(instances), max(instances))})
            if new is None or moved.get(id(view), new) != new:  # the same for all warpgroups that use it
                break
            moved[id(view)] = new
        else:
            return array, moved
    return None, {}


def _in_stage(view: ir.View, array: ir.SharedBuffer, rows: int, ranges: dict[ir.Symbol, _Range]) -> ir.View | None:
    """``view`` as a tile of one slot of ``array``, or None if it may lie across two."""
    dim = view.dims[0]
    if not dim.levels:
        return None
    level = dim.levels[0]
    extent, step = fold.integer(level.extent), fold.integer(level.step)
    if extent is None or step is None:
        return None
    slot: ir.Expr = fold.ZERO
    inside: ir.Expr = fold.ZERO  # in units of `step`
    low = high = 0
    for factor, term in _terms(level.index, 1):
        if factor * step % rows == 0:
            slot = _plus(slot, factor * step // rows, term)
            continue
        bounds = _range(term, ranges)
        if bounds is None:
            return None
        inside = _plus(inside, factor, term)
        ends = (factor * step * bounds[0], factor * step * bounds[1])
        low, high = low + min(ends), high + max(ends)
    whole = low // rows  # stages that the constant part makes up
    if whole and whole * rows % step:
        return None
    slot = _plus(slot, whole, fold.ONE)
    inside = _plus(inside, -whole * rows // step, fold.ONE) if whole else inside
    if high - whole * rows + extent > rows:
        return None
    first = () if extent == rows else (ir.Level(level.extent, inside, level.step),)
    dims = (dataclasses.replace(dim, levels=(*first, *dim.levels[1:])), *view.dims[1:])
    return dataclasses.replace(view, root=array, dims=dims, slot=slot)


def _terms(expr: ir.Expr, factor: int) -> Iterator[tuple[int, ir.Expr]]:
    """``expr`` as a sum of factor · term."""
    if isinstance(expr, ir.IntLit):
        yield factor * expr.value, fold.ONE
        return
    if isinstance(expr, ir.Binary):
        left, right = fold.integer(expr.left), fold.integer(expr.right)
        if expr.op in ("+", "-"):
            yield from _terms(expr.left, factor)
            yield from _terms(expr.right, factor if expr.op == "+" else -factor)
            return
        if expr.op == "*" and (left is not None or right is not None):
            scale, rest = (left, expr.right) if left is not None else (right, expr.left)
            yield from _terms(rest, factor * (scale or 0))
            return
    yield factor, expr


def _plus(total: ir.Expr, factor: int, term: ir.Expr) -> ir.Expr:
    product = fold.binary("*", term, ir.IntLit(abs(factor)))
    return fold.binary("+" if factor >= 0 else "-", total, product)


def _range(expr: ir.Expr, ranges: dict[ir.Symbol, _Range]) -> _Range | None:
    """Least and greatest value of a term."""
    if isinstance(expr, ir.IntLit):
        return expr.value, expr.value
    if isinstance(expr, ir.Var):
        if expr.symbol in ranges:
            return ranges[expr.symbol]
        bound = fold.integer(expr.symbol.bound) if expr.symbol.bound is not None else None
        return (0, bound - 1) if bound else None
    if isinstance(expr, ir.Binary) and expr.op == "%":
        modulus, left = fold.integer(expr.right), _range(expr.left, ranges)
        return (0, modulus - 1) if modulus and left is not None and left[0] >= 0 else None
    return None
