"""``x = …;`` and ``int x = …;``: scalars, named views, matrix operands and accumulators."""

from __future__ import annotations

from croqtile import ast, ir, rewrite
from croqtile import diagnostics as diag
from croqtile.check import expressions, matrix, views
from croqtile.check.places import whole_warpgroup
from croqtile.check.scope import Context, FragmentName, Poison, Rejected, ScalarName, ViewName, fail


def define(
    ctx: Context, statement: ast.Assign | ast.Declare, kind: ir.SymbolKind = ir.SymbolKind.VALUE
) -> list[ir.Stmt]:
    """``x = …;`` or ``int x = …;``. ``kind`` is CAPTURED before the grid."""
    name = statement.name
    try:
        if isinstance(statement, ast.Declare):
            return _declare(ctx, statement, kind)
        value = statement.value
        if isinstance(value, (ast.MmaFill, ast.MmaLoad)):
            what = "'mma.fill'" if isinstance(value, ast.MmaFill) else "'mma.load'"
            if ctx.place.level != "role":
                fail(diag.NotHere(statement.span, what, "must stand in a role (inthreads.async)"))
            whole_warpgroup(ctx, statement.span, what)
            return matrix.define(ctx, statement)
        if isinstance(value, ast.Name) and isinstance(ctx.scope.lookup(value.name), FragmentName):
            fail(diag.WrongKind(value.span, "a scalar or a view", f"'{value.name}' is a fragment: use frag.copy"))
        if views.is_view(ctx, value):
            return _name_view(ctx, name, value)
        return _assign(ctx, statement, expressions.scalar(ctx, value), kind)
    except Rejected:
        if not isinstance(ctx.scope.lookup(name.name), ScalarName):
            ctx.bind(name.name, Poison(name.span))
        raise


def _declare(ctx: Context, statement: ast.Declare, kind: ir.SymbolKind) -> list[ir.Stmt]:
    if statement.type.name not in ("int", "float"):
        fail(diag.UnknownScalarType(statement.type.span, statement.type.name))
    value = expressions.scalar(ctx, statement.value)
    if kind is ir.SymbolKind.CAPTURED:
        want_host_value(value.expr, statement.value.span)
    if statement.name.name in ctx.scope.names:
        ctx.declare(statement.name.name, Poison(statement.name.span))  # says what is wrong
    return _let(ctx, statement.name, value.expr, statement.type.name, value.type, kind, statement.span)


def _assign(ctx: Context, statement: ast.Assign, value: expressions.Value, kind: ir.SymbolKind) -> list[ir.Stmt]:
    name = statement.name
    if kind is ir.SymbolKind.CAPTURED:
        want_host_value(value.expr, statement.value.span)
    earlier = ctx.scope.lookup(name.name)
    if not isinstance(earlier, ScalarName):
        return _let(ctx, name, value.expr, value.type, value.type, kind, statement.span)
    symbol = earlier.symbol
    if symbol.kind is not ir.SymbolKind.VALUE:
        fail(diag.NotAssignable(name.span, name.name, _KINDS[symbol.kind]))
    if symbol.ctype == "int" and value.type == "float":
        fail(diag.WrongScalarType(statement.value.span, f"an integer, as '{name.name}' is", "a floating-point value"))
    ctx.mutable.add(symbol)
    if ctx.place.divergent is not None or expressions.divergent(ctx, value.expr):
        ctx.divergent.add(symbol)
    return [ir.Assign(symbol, value.expr, statement.span)]


_KINDS = {
    ir.SymbolKind.DIM: "a symbolic dimension",
    ir.SymbolKind.CAPTURED: "captured by value before the grid",
    ir.SymbolKind.GRID: "a variable of the grid",
    ir.SymbolKind.WARPGROUP: "the number of the warpgroup",
    ir.SymbolKind.THREAD: "the number of the thread",
    ir.SymbolKind.LOOP: "a loop counter",
    ir.SymbolKind.LAMBDA: "an index of frag.apply",
    ir.SymbolKind.CLUSTER: "the rank in the cluster",
}


def want_host_value(value: ir.Expr, span: ir.Span) -> None:
    """Refuses what only the device can compute."""
    if any(isinstance(n, ir.TensorElement) for n in rewrite.nodes(value)):
        fail(diag.WrongKind(span, "a value that the host knows", "this is read from device memory"))


def _let(
    ctx: Context, name: ast.Ident, value: ir.Expr, ctype: str, value_type: str, kind: ir.SymbolKind, span: ir.Span
) -> list[ir.Stmt]:
    """A new scalar. One that is a constant for good needs no storage: its uses are folded."""
    constant = ctype == value_type == "int" and ctx.assigned_once(name.name)
    folded = constant and isinstance(value, ir.IntLit)
    symbol = ir.Symbol(name.name, kind, name.name if folded else ctx.cname(name.name), ctype, span=name.span)
    if constant:
        ctx.definitions[symbol] = value
    if expressions.divergent(ctx, value):
        ctx.divergent.add(symbol)
    ctx.bind(name.name, ScalarName(symbol, value if constant else None, name.span))
    return [] if folded else [ir.Let(symbol, value, span)]


def _name_view(ctx: Context, name: ast.Ident, value: ast.Expr) -> list[ir.Stmt]:
    view, made = views.frozen(ctx, views.view(ctx, value), name.name, value.span)
    ctx.bind(name.name, ViewName(view, name.span))
    return made
