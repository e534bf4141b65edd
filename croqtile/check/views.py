"""Views: subspan, step, at, chunkat, sqz and named views, down to a root tensor or shared buffer.

``chunkat`` takes its extents from its use, so a view may still be a :class:`Chunk`; :func:`settle` finishes it.
"""

from __future__ import annotations

import dataclasses

from croqtile import ast, fold, ir, rewrite
from croqtile import diagnostics as diag
from croqtile.check import expressions
from croqtile.check.scope import WORDS, Chunk, Context, OperandName, ViewName, fail, spelled

_STEPS = ("subspan", "step", "at", "chunkat", "sqz")


def is_view(ctx: Context, expr: ast.Expr) -> bool:
    """Whether ``expr`` denotes a view rather than a scalar (or nothing known)."""
    steps: list[str] = []
    while isinstance(expr, (ast.Index, ast.Method)):
        if isinstance(expr, ast.Method):
            steps.append(expr.name.name)
        expr = expr.base
    if not isinstance(expr, ast.Name):
        return False
    binding = ctx.scope.lookup(expr.name)
    if binding is None:
        return any(step in _STEPS and step != "at" for step in steps)  # its name is what is wrong
    if isinstance(binding, ViewName) and isinstance(binding.view, ir.View) and steps == ["at"]:
        return not isinstance(binding.view.root, ir.Tensor)  # tensor.at(i, j) is an element
    return isinstance(binding, (ViewName, OperandName))


def view(ctx: Context, expr: ast.Expr) -> ir.View | Chunk:
    """The view that ``expr`` denotes."""
    if isinstance(expr, ast.Name):
        return _named(ctx, expr)
    if isinstance(expr, ast.Index):
        return _slot(ctx, expr)
    if not isinstance(expr, ast.Method):
        fail(diag.WrongKind(expr.span, "a view", "this is a scalar"))
    name = expr.name.name
    if name not in _STEPS:
        fail(diag.UnknownViewStep(expr.name.span, name))
    if name in ("subspan", "step"):
        fail(diag.MisplacedViewStep(expr.name.span, name, "be followed by .at(…)"))
    if name == "at":
        return _tile(ctx, expr)
    base = view(ctx, expr.base)
    return _chunk(ctx, expr, base) if name == "chunkat" else _squeeze(expr, settle(ctx, base))


def tile(ctx: Context, expr: ast.Expr) -> ir.View:
    """The view that ``expr`` denotes, where nothing else decides its extents."""
    return settle(ctx, view(ctx, expr))


def settle(ctx: Context, value: ir.View | Chunk, extents: tuple[ir.Expr, ...] | None = None) -> ir.View:
    """Finishes a ``chunkat``. ``extents``: those of the other side, in a copy; else every dimension is cut evenly."""
    if isinstance(value, ir.View):
        return value
    base = value.base
    if extents is not None and len(extents) != len(value.indices):
        here, there = f"{len(value.indices)} dimensions", f"{len(extents)}"
        fail(diag.ShapeMismatch(value.span, "this tile", here, "the other side", there))
    levels: list[ir.Level | None] = []
    for number, (index, whole) in enumerate(zip(value.indices, base.extents(), strict=True)):
        if index is None:
            levels.append(None)
        elif extents is not None:
            levels.append(ir.Level(extents[number], index, extents[number]))
        else:
            limit = expressions.bound(ctx, index)
            parts, full = fold.integer(limit) if limit is not None else None, fold.integer(whole)
            if not parts or full is None or full % parts:
                unknown = "an unknown number of"
                fail(diag.ChunkNotDividing(value.span, number, str(full or "symbolic"), str(parts or unknown)))
            extent = ir.IntLit(full // parts)
            levels.append(ir.Level(extent, index, extent))
    return _descend(ctx, base, levels, value.span)


def frozen(ctx: Context, value: ir.View | Chunk, name: str, span: ir.Span) -> tuple[ir.View | Chunk, list[ir.Stmt]]:
    """``value`` as it is now, for a name: indices that use a variable which is assigned again are computed first."""
    made: list[ir.Stmt] = []

    def freeze(index: ir.Expr) -> ir.Expr:
        if all(s.kind is not ir.SymbolKind.VALUE or ctx.assigned_once(s.name) for s in rewrite.symbols(index)):
            return index
        symbol = ir.Symbol(f"{name}_at", ir.SymbolKind.VALUE, ctx.cname(f"{name}_at"), span=span)
        made.append(ir.Let(symbol, index, span))
        return ir.Var(symbol)

    def freeze_view(view: ir.View) -> ir.View:
        dims = tuple(
            dataclasses.replace(d, levels=tuple(dataclasses.replace(v, index=freeze(v.index)) for v in d.levels))
            for d in view.dims
        )
        return dataclasses.replace(view, dims=dims, slot=None if view.slot is None else freeze(view.slot))

    if isinstance(value, ir.View):
        return freeze_view(value), made
    indices = tuple(None if index is None else freeze(index) for index in value.indices)
    return Chunk(freeze_view(value.base), indices, value.span), made


def constant_extents(v: ir.View, span: ir.Span, what: str) -> tuple[int, ...]:
    """Extents of the kept dimensions, which must be constants."""
    extents = []
    for extent in v.extents():
        number = fold.integer(extent)
        if number is None:
            if isinstance(extent, ir.Var) and extent.symbol.kind is ir.SymbolKind.DIM:
                fail(diag.SymbolicDimension(span, f"the extent of {what}", extent.symbol.name))
            fail(diag.NotConstant(span, f"the extent of {what}"))
        extents.append(number)
    return tuple(extents)


def spelled_extents(v: ir.View) -> str:
    return spelled(_spell(extent) for extent in v.extents())


def _spell(extent: ir.Expr) -> str:
    if isinstance(extent, ir.IntLit):
        return str(extent.value)
    return extent.symbol.name if isinstance(extent, ir.Var) else "…"


# --------------------------------------------------------------------------------------------------------------
# The steps


def _named(ctx: Context, expr: ast.Name) -> ir.View | Chunk:
    binding = ctx.lookup(expr.name, expr.span)
    if isinstance(binding, OperandName):
        return binding.view
    if not isinstance(binding, ViewName):
        fail(
            diag.WrongKind(expr.span, "a tensor, a shared buffer or a view", f"'{expr.name}' is {WORDS[type(binding)]}")
        )
    value = binding.view
    if isinstance(value, ir.View):
        root = value.root
        if isinstance(root, ir.SharedBuffer) and root.is_array and value.slot is None:
            fail(diag.NeedsSlot(expr.span, root.name, root.count, "buffers"))
        return dataclasses.replace(value, span=expr.span)
    return value


def _slot(ctx: Context, expr: ast.Index) -> ir.View:
    if not isinstance(expr.base, ast.Name):
        fail(diag.WrongKind(expr.span, "a view", "only arrays of shared buffers are indexed by [ ]"))
    binding = ctx.lookup(expr.base.name, expr.base.span)
    if not isinstance(binding, ViewName) or not isinstance(binding.view, ir.View):
        word = WORDS[type(binding)]
        fail(diag.WrongKind(expr.base.span, "an array of shared buffers", f"'{expr.base.name}' is {word}"))
    root = binding.view.root
    if not isinstance(root, ir.SharedBuffer) or not root.is_array or binding.view.slot is not None:
        thing = "shared buffer" if isinstance(root, ir.SharedBuffer) else "tensor"
        fail(diag.NotAnArray(expr.span, expr.base.name, thing))
    index = slot(ctx, expr.index, root.name, root.count)
    return dataclasses.replace(binding.view, slot=index, span=expr.span)


def slot(ctx: Context, expr: ast.Expr, name: str, count: int) -> ir.Expr:
    """A slot number of an array of buffers or events."""
    index = expressions.integer(ctx, expr)
    for number in expressions.extremes(ctx, index) or ():
        if not 0 <= number < count:
            fail(diag.SlotOutOfRange(expr.span, name, number, count, count - 1))
    return index


def _arguments(ctx: Context, expr: ast.Method, rank: int) -> list[ir.Expr | None]:
    """Integers; ``_`` gives None."""
    if len(expr.arguments) != rank:
        fail(diag.WrongRank(expr.span, "the view", rank, len(expr.arguments), f"{expr.name.name} gives"))
    return [None if _is_whole(a) else expressions.integer(ctx, a) for a in expr.arguments]


def _is_whole(expr: ast.Expr) -> bool:
    return isinstance(expr, ast.Name) and expr.name == "_"


def _tile(ctx: Context, expr: ast.Method) -> ir.View:
    """``base.subspan(…)[.step(…)].at(…)``"""
    step = expr.base
    subspan = step.base if isinstance(step, ast.Method) and step.name.name == "step" else step
    if isinstance(subspan, ast.Method) and subspan.name.name not in _STEPS:
        fail(diag.UnknownViewStep(subspan.name.span, subspan.name.name))
    if not (isinstance(subspan, ast.Method) and subspan.name.name == "subspan"):
        fail(diag.MisplacedViewStep(expr.name.span, "at", "follow subspan(…)"))
    base = settle(ctx, view(ctx, subspan.base))
    whole = base.extents()
    extents = _arguments(ctx, subspan, len(whole))
    steps = _arguments(ctx, step, len(whole)) if isinstance(step, ast.Method) and step is not subspan else extents
    indices = _arguments(ctx, expr, len(whole))
    levels: list[ir.Level | None] = []
    for number, (extent, stride, index) in enumerate(zip(extents, steps, indices, strict=True)):
        if index is None:
            fail(diag.WrongKind(expr.arguments[number].span, "an index", "'_' is a whole dimension"))
        if extent is not None and (value := fold.integer(extent)) is not None and value < 1:
            fail(diag.NotPositive(subspan.arguments[number].span, "an extent", value, 1))
        if extent is None and fold.integer(index) == 0:
            levels.append(None)
            continue
        full = whole[number]
        levels.append(ir.Level(full if extent is None else extent, index, full if stride is None else stride))
    return _descend(ctx, base, levels, expr.span)


def _chunk(ctx: Context, expr: ast.Method, base: ir.View | Chunk) -> Chunk:
    whole = base.base.extents() if isinstance(base, Chunk) else base.extents()
    indices = _arguments(ctx, expr, len(whole))
    for argument, index in zip(expr.arguments, indices, strict=True):
        if index is not None and fold.integer(index) is None and expressions.bound(ctx, index) is None:
            fail(diag.Unbounded(argument.span, "an index of chunkat"))
    if isinstance(base, Chunk):
        if all(before is None or now is None for before, now in zip(base.indices, indices, strict=True)):
            # Cuts along different dimensions are one cut: all its extents are for the use to decide.
            joined = (before if now is None else now for before, now in zip(base.indices, indices, strict=True))
            return Chunk(base.base, tuple(joined), expr.span)
        base = settle(ctx, base)
    return Chunk(base, tuple(indices), expr.span)


def _squeeze(expr: ast.Method, base: ir.View) -> ir.View:
    if expr.arguments:
        fail(diag.WrongArgumentCount(expr.span, "sqz", "no argument", f"{len(expr.arguments)} is"))
    extents = iter(base.extents())
    dims = tuple(
        dataclasses.replace(dim, kept=dim.kept and fold.integer(next(extents)) != 1) if dim.kept else dim
        for dim in base.dims
    )
    return dataclasses.replace(base, dims=dims, span=expr.span)


def _descend(ctx: Context, base: ir.View, levels: list[ir.Level | None], span: ir.Span) -> ir.View:
    """``base`` with one more level in each kept dimension (None: unchanged)."""
    shared = isinstance(base.root, ir.SharedBuffer)
    remaining = iter(zip(levels, base.extents(), strict=True))
    dims = []
    for number, dim in enumerate(base.dims):
        if dim.kept:
            level, whole = next(remaining)
            if level is not None:
                if shared:
                    _check_inside(ctx, level, whole, base.root.name, number, span)
                dim = dataclasses.replace(dim, levels=(*dim.levels, level))
        dims.append(dim)
    return dataclasses.replace(base, dims=tuple(dims), span=span)


def _check_inside(ctx: Context, level: ir.Level, whole: ir.Expr, name: str, dim: int, span: ir.Span) -> None:
    """A tile of shared memory must lie inside its buffer: nothing is there beyond it."""
    extent, full = fold.integer(level.extent), fold.integer(whole)
    if extent is None or full is None:
        symbol = level.extent.symbol if isinstance(level.extent, ir.Var) else None
        what = "an extent of a tile of shared memory"
        fail(diag.SymbolicDimension(span, what, symbol.name) if symbol else diag.NotConstant(span, what))
    step = fold.integer(level.step)
    for index in expressions.extremes(ctx, level.index) or (0,):
        start = index * (step or 0)
        if start < 0 or start + extent > full:
            fail(diag.TileOutOfRange(span, name, dim, start, start + extent, full))
