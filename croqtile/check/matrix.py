"""Matrix instructions: accumulators, operands, shapes, element types, and which commit closes which instruction."""

from __future__ import annotations

import dataclasses

from croqtile import ast, ir, rewrite
from croqtile import diagnostics as diag
from croqtile.check import copies, expressions, storage, views
from croqtile.check.scope import WORDS, Context, FragmentName, OperandName, ViewName, fail, spelled
from croqtile.check.types import element

_K_BYTES = 32  # of one instruction
_FP8 = (ir.Elem.E4M3, ir.Elem.E5M2)


def define(ctx: Context, statement: ast.Assign) -> list[ir.Stmt]:
    """``c = mma.fill.f32 0.0f;`` or ``a = mma.load view;``"""
    if isinstance(statement.value, ast.MmaFill):
        return [_fill(ctx, statement.name, statement.value, statement.span)]
    assert isinstance(statement.value, ast.MmaLoad)
    load = statement.value
    tile = views.tile(ctx, load.view)
    if not isinstance(tile.root, ir.SharedBuffer):
        fail(diag.WrongKind(load.view.span, "a tile of shared memory", "this is in device memory"))
    width = copies.swizzle(ctx, load.swizzle)
    if load.swizzle is not None:
        copies.layout(ctx, tile, width, load.swizzle.span, "operand")
    kept, made = views.frozen(ctx, tile, statement.name.name, load.view.span)
    assert isinstance(kept, ir.View)
    ctx.bind(statement.name.name, OperandName(kept, width, statement.name.span))
    return made


def statement(ctx: Context, tree: ast.Mma | ast.MmaCommit | ast.MmaWait | ast.MmaStore) -> list[ir.Stmt]:
    """The other ``mma.`` statements."""
    if isinstance(tree, ast.MmaCommit):
        return [ir.MmaCommit(tree.span)]
    if isinstance(tree, ast.MmaWait):
        return [ir.MmaWait(expressions.constant(ctx, tree.pending, "mma.wait", minimum=0), tree.span)]
    if isinstance(tree, ast.MmaStore):
        return [_store(ctx, tree)]
    return [_multiply(ctx, tree)]


def fragment(ctx: Context, expr: ast.Expr) -> ir.Fragment:
    """The fragment that ``expr`` names."""
    if not isinstance(expr, ast.Name):
        fail(diag.WrongKind(expr.span, "a fragment", "this is an expression"))
    binding = ctx.lookup(expr.name, expr.span)
    if not isinstance(binding, FragmentName):
        fail(diag.WrongKind(expr.span, "a fragment", f"'{expr.name}' is {WORDS[type(binding)]}"))
    return binding.fragment


def matrix(ctx: Context, expr: ast.Expr) -> ir.Fragment:
    """The fragment that ``expr`` names, which must have columns."""
    found = fragment(ctx, expr)
    if found.cols is None:
        fail(diag.WrongKind(expr.span, "a fragment with columns", f"'{found.name}' is a per-row vector"))
    return found


def _fill(ctx: Context, name: ast.Ident, fill: ast.MmaFill, span: ir.Span) -> ir.AccFill:
    elem = element(fill.elem)
    if elem not in (ir.Elem.F16, ir.Elem.F32):
        fail(diag.BadAccumulatorType(fill.elem.span, elem.spelling))
    value = storage.literal(ctx, fill.value)
    binding = ctx.scope.lookup(name.name)
    earlier: ir.Fragment | None = None
    if isinstance(binding, FragmentName) and binding.fragment.cols is not None and binding.fragment.elem is elem:
        earlier = binding.fragment
        # In an inner scope (a loop, above all) it is the same accumulator, restarted. In its own scope a used one is
        # replaced by another of the same name, which may have another shape.
        if earlier not in ctx.shapes or ctx.scope.names.get(name.name) is not binding:
            return ir.AccFill(earlier, value, span)
    # Its extents come with the first matrix instruction; `finish` then puts the completed fragment in its place.
    fresh = ir.Fragment(name.name, ctx.cname(name.name), elem, 0, 0, None, name.span, accumulator=True)
    ctx.accumulators.append(fresh)
    if earlier is not None:
        ctx.replaces[fresh] = earlier
    ctx.bind(name.name, FragmentName(fresh, name.span))
    return ir.AccFill(fresh, value, span)


def _store(ctx: Context, tree: ast.MmaStore) -> ir.MmaStore:
    source = matrix(ctx, tree.fragment)
    target = views.tile(ctx, tree.target)
    if not isinstance(target.root, ir.SharedBuffer):
        fail(diag.WrongKind(tree.target.span, "a tile of shared memory", "this is in device memory"))
    extents = _rows_and_columns(target, tree.target.span)

    def check_shape() -> None:
        if ctx.shape_of(source) != extents:
            left, right = ctx.spelled_shape(source), spelled(extents)
            ctx.report(diag.ShapeMismatch(tree.span, f"'{source.name}'", left, "the target", right))

    ctx.deferred.append(check_shape)
    return ir.MmaStore(source, target, tree.span)


def _rows_and_columns(tile: ir.View, span: ir.Span) -> tuple[int, int]:
    """Extents of a two-dimensional tile that lies in the last two dimensions of its buffer."""
    extents = views.constant_extents(tile, span, "a tile")
    kept = [number for number, dim in enumerate(tile.dims) if dim.kept]
    if len(extents) != 2:
        fail(diag.WrongRank(span, "a tile of matrix instructions", 2, len(extents), "this has"))
    if kept != [len(tile.dims) - 2, len(tile.dims) - 1]:
        fail(diag.WrongKind(span, "rows and columns of a buffer", "other dimensions lie between those of this tile"))
    return extents[0], extents[1]


# --------------------------------------------------------------------------------------------------------------
# mma.row


def _multiply(ctx: Context, tree: ast.Mma) -> ir.Mma:
    accumulator = matrix(ctx, tree.accumulator)
    b, n, k = _b_operand(ctx, tree)
    a, m, a_k, a_elem = _a_operand(ctx, tree.a)
    b_elem = b.view.root.elem
    if k != a_k:
        left = f"K of A ({m} × {a_k})"
        shape = f"({n} × {k})" if tree.b_layout == "row" else f"({k} × {n})"
        fail(diag.ShapeMismatch(tree.span, left, str(a_k), f"K of B {shape}", str(k)))
    _check_types(tree, accumulator, a_elem, b_elem)
    _check_divisible(tree, m, n, k * a_elem.bytes, k)
    known = ctx.shapes.get(accumulator) if accumulator.accumulator else ctx.shape_of(accumulator)
    if known is None:
        ctx.shapes[accumulator] = (m, n)
    elif known != (m, n):
        fail(diag.ShapeMismatch(tree.span, f"'{accumulator.name}'", spelled(known), "the product", spelled((m, n))))
    loaded = [_is_loaded(ctx, tree.a), _is_loaded(ctx, tree.b)]
    return ir.Mma(accumulator, a, b, tree.b_layout, any(loaded), tree.span)


def _a_operand(ctx: Context, expr: ast.Expr) -> tuple[ir.SharedOperand | ir.FragOperand, int, int, ir.Elem]:
    """A with its rows, K and element type."""
    if isinstance(expr, ast.Name) and isinstance(ctx.scope.lookup(expr.name), FragmentName):
        found = matrix(ctx, expr)
        rows, cols = ctx.known_shape(found) or (0, None)
        if cols is None:
            fail(diag.AccumulatorUnused(expr.span, found.name))
        return ir.FragOperand(found, expr.span), rows, cols, found.elem
    operand = _shared_operand(ctx, expr)
    rows, cols = _rows_and_columns(operand.view, expr.span)
    return operand, rows, cols, operand.view.root.elem


def _b_operand(ctx: Context, tree: ast.Mma) -> tuple[ir.SharedOperand, int, int]:
    """B with N and K."""
    if isinstance(tree.b, ast.Name) and isinstance(ctx.scope.lookup(tree.b.name), FragmentName):
        fail(diag.WrongKind(tree.b.span, "B in shared memory", f"'{tree.b.name}' is a fragment; only A can be one"))
    operand = _shared_operand(ctx, tree.b)
    first, second = _rows_and_columns(operand.view, tree.b.span)
    return (operand, first, second) if tree.b_layout == "row" else (operand, second, first)


def _shared_operand(ctx: Context, expr: ast.Expr) -> ir.SharedOperand:
    width = 0
    if isinstance(expr, ast.Name):
        binding = ctx.lookup(expr.name, expr.span)
        if isinstance(binding, OperandName):
            width = binding.swizzle
        elif not isinstance(binding, ViewName):
            fail(diag.WrongKind(expr.span, "a matrix operand", f"'{expr.name}' is {WORDS[type(binding)]}"))
    tile = views.tile(ctx, expr)
    if not isinstance(tile.root, ir.SharedBuffer):
        fail(diag.WrongKind(expr.span, "an operand in shared memory", f"'{tile.root.name}' is in device memory"))
    return ir.SharedOperand(tile, width, expr.span)


def _is_loaded(ctx: Context, expr: ast.Expr) -> bool:
    return isinstance(expr, ast.Name) and isinstance(ctx.scope.lookup(expr.name), OperandName)


def _check_types(tree: ast.Mma, accumulator: ir.Fragment, a: ir.Elem, b: ir.Elem) -> None:
    acc, hint = accumulator.elem, ""
    if a is b is ir.Elem.F16 or (a in _FP8 and b in _FP8):
        allowed = acc in (ir.Elem.F16, ir.Elem.F32)
    elif a is b is ir.Elem.BF16:
        allowed = acc is ir.Elem.F32
        hint = "; bf16 accumulates in f32"
    else:
        allowed = False
    if not allowed:
        fail(diag.BadOperandTypes(tree.span, a.spelling, b.spelling, acc.spelling, hint))
    if a in _FP8 and isinstance(tree.a, ast.Name) and tree.b_layout == "row":
        pass
    if tree.b_layout == "col" and b.bytes == 1:
        fail(diag.BadTransposed(tree.b.span, b.spelling))


def _check_divisible(tree: ast.Mma, m: int, n: int, k_bytes: int, k: int) -> None:
    if m % 64:
        fail(diag.NotDivisible(tree.a.span, "M (rows of A)", m, "a multiple of 64"))
    if n % 8 or n > 256:
        fail(diag.NotDivisible(tree.b.span, "N", n, "a multiple of 8, at most 256"))
    if k_bytes % _K_BYTES:
        fail(diag.NotDivisible(tree.a.span, "K", k, f"a multiple of {_K_BYTES * k // k_bytes}"))


# --------------------------------------------------------------------------------------------------------------
# Groups


def mark_explicit(ctx: Context, body: tuple[ir.Stmt, ...], committed_after: bool) -> tuple[ir.Stmt, ...]:
    """Sets ``Mma.explicit`` where an mma.commit closes the instruction: one that follows it in the same list of
    statements or in one around it. Results of mma.load always need one."""
    result: list[ir.Stmt] = []
    for item in reversed(body):
        if isinstance(item, ir.MmaCommit):
            committed_after = True
        elif isinstance(item, ir.Mma):
            inside = any(isinstance(s, ir.MmaCommit) for s in rewrite.statements(tuple(result)))
            if item.explicit and not (committed_after or inside):
                ctx.report(diag.NotCommitted(item.span))
            item = dataclasses.replace(item, explicit=item.explicit or committed_after)
        elif isinstance(item, (ir.ForEach, ir.OnlyWarpgroups)):
            item = dataclasses.replace(item, body=mark_explicit(ctx, item.body, committed_after))
        elif isinstance(item, ir.If):
            then, orelse = (mark_explicit(ctx, side, committed_after) for side in (item.then, item.orelse))
            item = dataclasses.replace(item, then=then, orelse=orelse)
        result.append(item)
    return tuple(reversed(result))


def finish(ctx: Context) -> dict[object, object]:
    """Completed accumulators by their drafts."""
    completed: dict[object, object] = {}
    for draft in ctx.accumulators:
        shape = ctx.known_shape(draft)
        if shape is not None:
            completed[draft] = dataclasses.replace(draft, rows=shape[0], cols=shape[1])
        elif not ctx.diagnostics:
            ctx.report(diag.AccumulatorUnused(draft.span, draft.name))
    for symbol, (target, axis) in ctx.lambda_bounds.items():
        limit = (ctx.known_shape(target) or (target.rows, target.cols))[axis]
        completed[symbol] = dataclasses.replace(symbol, bound=None if limit is None else ir.IntLit(limit))
    return completed
