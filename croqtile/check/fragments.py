"""Fragment operations: apply, copy, reduce."""

from __future__ import annotations

from croqtile import ast, fold, ir
from croqtile import diagnostics as diag
from croqtile.check import expressions, matrix
from croqtile.check.scope import Context, ScalarName, fail


def statement(ctx: Context, tree: ast.FragApply | ast.FragCopy | ast.FragReduce) -> list[ir.Stmt]:
    if isinstance(tree, ast.FragApply):
        return [_apply(ctx, tree)]
    return [_copy(ctx, tree) if isinstance(tree, ast.FragCopy) else _reduce(ctx, tree)]


def _apply(ctx: Context, tree: ast.FragApply) -> ir.FragApply:
    target = matrix.fragment(ctx, tree.fragment)
    rank = 1 if target.cols is None else 2
    if len(tree.indices) != rank:
        fail(diag.WrongRank(tree.indices[-1].span, f"'{target.name}'", rank, len(tree.indices), "the function names"))
    indices: list[ir.Symbol] = []
    with ctx.nested():
        for axis, name in enumerate(tree.indices):
            symbol = ir.Symbol(name.name, ir.SymbolKind.LAMBDA, ctx.cname(name.name), span=name.span)
            ctx.declare(name.name, ScalarName(symbol, None, name.span))
            ctx.lambda_bounds[symbol] = (target, axis)
            indices.append(symbol)
        ctx.applying = (target, tuple(indices))
        try:
            value = expressions.scalar(ctx, tree.value)
        finally:
            ctx.applying = None
    return ir.FragApply(target, tuple(indices), value.expr, tree.span)


def _copy(ctx: Context, tree: ast.FragCopy) -> ir.FragCopy:
    target, source = matrix.fragment(ctx, tree.target), matrix.fragment(ctx, tree.source)
    if target.elem is not source.elem:
        left, right = source.elem.spelling, target.elem.spelling
        fail(diag.ElementTypeMismatch(tree.span, f"'{source.name}'", left, f"'{target.name}'", right))

    def check_shape() -> None:
        if ctx.shape_of(target) != ctx.shape_of(source):
            left, right = ctx.spelled_shape(source), ctx.spelled_shape(target)
            ctx.report(diag.ShapeMismatch(tree.span, f"'{source.name}'", left, f"'{target.name}'", right))

    ctx.deferred.append(check_shape)
    return ir.FragCopy(target, source, tree.span)


def _reduce(ctx: Context, tree: ast.FragReduce) -> ir.FragReduce:
    source, target = matrix.matrix(ctx, tree.source), matrix.fragment(ctx, tree.target)
    if target.cols is not None:
        fail(diag.WrongKind(tree.target.span, "a per-row vector", f"'{target.name}' is a matrix"))
    axis = fold.integer(expressions.integer(ctx, tree.axis))
    if axis != 1:
        fail(diag.WrongAxis(tree.axis.span, "a variable" if axis is None else str(axis)))
    if target.elem is not source.elem:
        left, right = source.elem.spelling, target.elem.spelling
        fail(diag.ElementTypeMismatch(tree.span, f"'{source.name}'", left, f"'{target.name}'", right))

    def check_shape() -> None:
        if ctx.shape_of(source)[0] != target.rows:
            rows = f"{ctx.shape_of(source)[0]} rows"
            ctx.report(diag.ShapeMismatch(tree.span, f"'{source.name}'", rows, f"'{target.name}'", f"{target.rows}"))

    ctx.deferred.append(check_shape)
    return ir.FragReduce(tree.op, source, target, tree.span)
