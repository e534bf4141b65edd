"""From the function down to its roles: parameters, captured scalars, grid, block level, warpgroups."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from croqtile import ast, fold, ir, rewrite
from croqtile import diagnostics as diag
from croqtile.check import definitions, expressions, roles, statements, storage
from croqtile.check.prescan import assignments, called
from croqtile.check.scope import Context, Poison, ScalarName, ViewName, fail
from croqtile.check.types import element


def function(ctx: Context, tree: ast.Function) -> tuple[ir.Stmt, ...]:
    """Checks the whole function; gives the statements of the block."""
    if tree.result.name != "void":
        ctx.report(diag.BadResult(tree.result.span, tree.result.name))
    ctx.assigned = assignments(tree.body, into_roles=True)
    ctx.assigned_outside = assignments(tree.body)
    ctx.cnames |= called(tree.body)  # nothing in the kernel may hide them
    _dimensions(ctx, tree)
    for parameter in tree.parameters:
        with ctx.recovering():
            _parameter(ctx, parameter)
    body: list[ir.Stmt] = []
    for statement in tree.body:
        with ctx.recovering():
            body += _function_level(ctx, statement)
    if ctx.diagnostics:
        return tuple(body)
    if ctx.grid_span is None:
        ctx.report(diag.MissingLevel(tree.name.span, f"'{tree.name.name}'", "parallel … : block"))
    elif ctx.warpgroup is None:
        ctx.report(diag.MissingLevel(ctx.grid_span, "the grid", "parallel … : group-4"))
    return tuple(body)


def _dimensions(ctx: Context, tree: ast.Function) -> None:
    """A dimension that is just a name is symbolic, and known to all parameters."""
    for parameter in tree.parameters:
        for extent in parameter.shape or ():
            if isinstance(extent, ast.Name) and extent.name not in (*ctx.dims, "_"):
                symbol = ir.Symbol(extent.name, ir.SymbolKind.DIM, ctx.cname(extent.name), span=extent.span)
                ctx.bind(extent.name, ScalarName(symbol, None, extent.span))
                ctx.dims[extent.name] = symbol


def _parameter(ctx: Context, parameter: ast.Parameter) -> None:
    if parameter.name.name not in ctx.scope.names:
        ctx.bind(parameter.name.name, Poison(parameter.name.span))
    if not parameter.shape:
        fail(diag.BadParameter(parameter.span, parameter.name.name))
    elem = element(parameter.elem)
    dims: list[ir.Expr] = []
    for extent in parameter.shape:
        if isinstance(extent, ast.Name) and extent.name in ctx.dims:
            dims.append(ir.Var(ctx.dims[extent.name]))
        else:
            dims.append(ir.IntLit(expressions.constant(ctx, extent, "a dimension that is not just a name")))
    tensor = ir.Tensor(ctx.cname(parameter.name.name), elem, tuple(dims), parameter.name.span)
    whole = ir.View(tensor, tuple(ir.ViewDim() for _ in dims), parameter.name.span)
    ctx.declare(parameter.name.name, ViewName(whole, parameter.name.span))
    ctx.tensors.append(tensor)


# --------------------------------------------------------------------------------------------------------------
# Before the grid


def _function_level(ctx: Context, statement: ast.Stmt) -> list[ir.Stmt]:
    if isinstance(statement, ast.Parallel):
        return parallel(ctx, statement)
    if ctx.grid_span is not None:
        fail(diag.NotHere(statement.span, "nothing", "may follow the grid in a __co__ function"))
    if isinstance(statement, ast.Block):
        return [s for inner in statement.body for s in _function_level(ctx, inner)]
    if isinstance(statement, (ast.Assign, ast.Declare)):
        for made in definitions.define(ctx, statement, ir.SymbolKind.CAPTURED):
            if isinstance(made, ir.Let):
                ctx.captured.append(ir.Captured(made.symbol, made.value, made.span))
        return []
    fail(diag.NotHere(statement.span, statements.word(statement), "must stand inside the grid (parallel … : block)"))


# --------------------------------------------------------------------------------------------------------------
# parallel


def parallel(ctx: Context, statement: ast.Parallel) -> list[ir.Stmt]:
    """A parallel of any level, with all bounds that it lists, outermost first."""
    return _bounds(ctx, statement, statement.bounds)


def _bounds(ctx: Context, statement: ast.Parallel, bounds: tuple[ast.Bound, ...]) -> list[ir.Stmt]:
    if not bounds:
        return _body(ctx, statement)
    first, rest = bounds[0], bounds[1:]
    level = first.level.name
    if len(first.counters) != len(first.extents):
        fail(diag.WrongBoundCount(first.span, len(first.counters), len(first.extents)))
    if level == "block":
        return _grid(ctx, statement, first, rest)
    if level == "cluster":
        return _cluster(ctx, statement, first, rest)
    if level == "group-4":
        return _group(ctx, statement, first, rest)
    if level == "thread":
        return _thread(ctx, statement, first, rest)
    fail(diag.UnknownLevel(first.level.span, level))


def _grid(ctx: Context, statement: ast.Parallel, first: ast.Bound, rest: tuple[ast.Bound, ...]) -> list[ir.Stmt]:
    if ctx.grid_span is not None:
        note = diag.Note(ctx.grid_span, "the first grid is here")
        fail(diag.SecondGrid(statement.span, notes=(note,)))
    if len(first.counters) > 3:
        fail(diag.TooManyDimensions(first.span, "a grid", 3, len(first.counters)))
    ctx.grid_span, ctx.asynchronous = statement.span, statement.asynchronous
    extents = [expressions.extent(ctx, extent) for extent in first.extents]
    for written, extent in zip(first.extents, extents, strict=True):
        definitions.want_host_value(extent, written.span)
    with ctx.nested(level="block"):
        for counter, extent in zip(first.counters, extents, strict=True):
            with ctx.recovering():
                ctx.grid.append(_counter(ctx, counter, ir.SymbolKind.GRID, extent))
        return _bounds(ctx, statement, rest)


def _cluster(ctx: Context, statement: ast.Parallel, first: ast.Bound, rest: tuple[ast.Bound, ...]) -> list[ir.Stmt]:
    if ctx.place.level not in ("function", "block") or ctx.cluster is not None:
        fail(diag.WrongLevel(first.level.span, "cluster", "once, around or directly inside the grid"))
    if len(first.counters) != 1:
        fail(diag.TooManyDimensions(first.span, "a cluster", 1, len(first.counters)))
    size = expressions.constant(ctx, first.extents[0], "the size of a cluster")
    with ctx.nested():
        ctx.cluster = _counter(ctx, first.counters[0], ir.SymbolKind.CLUSTER, ir.IntLit(size))
        return _bounds(ctx, statement, rest)


def _group(ctx: Context, statement: ast.Parallel, first: ast.Bound, rest: tuple[ast.Bound, ...]) -> list[ir.Stmt]:
    if ctx.place.level != "block":
        fail(diag.WrongLevel(first.level.span, "group-4", "inside the grid (parallel … : block), outside roles"))
    if len(first.counters) != 1:
        fail(diag.TooManyDimensions(first.span, "group-4", 1, len(first.counters)))
    count = expressions.constant(ctx, first.extents[0], "the number of warpgroups")
    if count > 8:
        fail(diag.TooManyThreads(first.extents[0].span, count))
    earlier = ctx.warpgroup
    if earlier is not None and earlier.bound != ir.IntLit(count):
        number = fold.integer(earlier.bound) if earlier.bound is not None else None
        fail(diag.WarpgroupCountDiffers(first.extents[0].span, count, number or 0))
    with ctx.nested(level="group", instances=tuple(range(count)), active=tuple(range(count))):
        ctx.warpgroup = _counter(ctx, first.counters[0], ir.SymbolKind.WARPGROUP, ir.IntLit(count), earlier)
        return _bounds(ctx, statement, rest)


def _thread(ctx: Context, statement: ast.Parallel, first: ast.Bound, rest: tuple[ast.Bound, ...]) -> list[ir.Stmt]:
    if ctx.place.level != "group":
        fail(
            diag.WrongLevel(
                first.level.span, "thread", "inside group-4, as in 'parallel p by 2 : group-4, t by 128 : thread'"
            )
        )
    if len(first.counters) != 1:
        fail(diag.TooManyDimensions(first.span, "thread", 1, len(first.counters)))
    count = expressions.constant(ctx, first.extents[0], "the number of threads")
    if count != 128:
        fail(diag.WrongThreadCount(first.extents[0].span, count))
    with ctx.nested():
        ctx.thread = _counter(ctx, first.counters[0], ir.SymbolKind.THREAD, ir.IntLit(128), ctx.thread)
        return _bounds(ctx, statement, rest)


def _counter(
    ctx: Context, name: ast.Ident, kind: ir.SymbolKind, limit: ir.Expr, earlier: ir.Symbol | None = None
) -> ir.Symbol:
    """A bounded variable; ``earlier`` if another block has bound the same thing already, under whatever name."""
    symbol = earlier or ir.Symbol(name.name, kind, ctx.cname(name.name), bound=limit, span=name.span)
    ctx.declare(name.name, ScalarName(symbol, None, name.span))
    return symbol


def _body(ctx: Context, statement: ast.Parallel) -> list[ir.Stmt]:
    """The body below the innermost bound."""
    if ctx.place.level == "group":
        if any(isinstance(inner, ast.Parallel) for inner in statement.body):
            return _nested_threads(ctx, statement)
        return [roles.group(ctx, statement)]
    body: list[ir.Stmt] = []
    for inner in statement.body:
        with ctx.recovering():
            body += block_level(ctx, inner)
    return body


def _nested_threads(ctx: Context, statement: ast.Parallel) -> list[ir.Stmt]:
    """``parallel p by N : group-4 { declarations; parallel t by 128 : thread { … } }``"""
    for inner in statement.body:
        if isinstance(inner, ast.Parallel) and inner.bounds[0].level.name != "thread":
            return parallel(ctx, inner)  # says what is wrong
    prologue: list[ir.Stmt] = []
    inside: list[ir.Stmt] = []
    for inner in statement.body:
        with ctx.recovering():
            if inside:
                fail(diag.NotHere(inner.span, "nothing", "may follow the threads of a group-4"))
            if isinstance(inner, ast.Parallel):
                inside = parallel(ctx, inner)
            elif isinstance(inner, (ast.Assign, ast.Declare, ast.SharedBuffers, ast.SharedEvents)):
                prologue += block_level(ctx, inner)
            else:
                fail(diag.NotHere(inner.span, statements.word(inner), "must stand in a role (inthreads.async)"))
    return [dataclasses.replace(s, prologue=(*prologue, *s.prologue)) if isinstance(s, ir.Roles) else s for s in inside]


# --------------------------------------------------------------------------------------------------------------
# Block level


def block_level(ctx: Context, statement: ast.Stmt) -> list[ir.Stmt]:
    """A statement that the CTA runs as a whole, between its parallel parts."""
    if isinstance(statement, ast.Parallel):
        return parallel(ctx, statement)
    if ctx.place.level == "function":  # inside a cluster that is around the grid
        return _function_level(ctx, statement)
    if isinstance(statement, ast.LaunchBounds):
        ctx.launch_bounds = expressions.constant(ctx, statement.blocks, "launch_bounds")
        return []
    if isinstance(statement, (ast.SharedBuffers, ast.SharedEvents)):
        storage.shared(ctx, statement)
        return []
    if isinstance(statement, (ast.Assign, ast.Declare)):
        return definitions.define(ctx, statement)
    if isinstance(statement, ast.Block):
        with ctx.nested():
            return _block_body(ctx, statement.body)
    if isinstance(statement, ast.ForEach):
        return statements.foreach(ctx, statement, _block_body)
    if isinstance(statement, ast.If):
        return statements.branch(ctx, statement, _block_body)
    if isinstance(statement, ast.Copy) and statement.event is None:
        return statements.copy(ctx, statement)
    if isinstance(statement, ast.SyncShared):
        return [ir.SyncCta(statement.span)]
    if isinstance(statement, ast.Call):
        return statements.call(ctx, statement)
    where = "inside parallel … : group-4" if isinstance(statement, ast.InThreads) else "in a role (inthreads.async)"
    fail(diag.NotHere(statement.span, statements.word(statement), f"must stand {where}"))


def _block_body(ctx: Context, body: Iterable[ast.Stmt]) -> list[ir.Stmt]:
    result: list[ir.Stmt] = []
    for statement in body:
        with ctx.recovering():
            result += block_level(ctx, statement)
    return result


def private_reads(ctx: Context, body: Iterable[ir.Stmt]) -> None:
    """A scalar that a role assigns has one copy per thread: the block must not read it afterwards."""
    assigned = {
        inner.symbol
        for statement in rewrite.statements(tuple(body))
        if isinstance(statement, ir.Roles)
        for role in statement.roles
        for inner in rewrite.statements(role.body)
        if isinstance(inner, ir.Assign)
    }

    def visit(statements_: Iterable[ir.Stmt]) -> None:
        for statement in statements_:
            if isinstance(statement, ir.Roles):
                visit(statement.prologue)
                continue
            for symbol in rewrite.symbols(_read_directly(statement)):
                if symbol in assigned:
                    ctx.report(diag.PrivateValue(statement.span, symbol.name))
            for inner in rewrite.bodies(statement):
                visit(inner)

    visit(body)


def _read_directly(statement: ir.Stmt) -> object:
    """What ``statement`` reads, apart from the statements inside it."""
    if isinstance(statement, (ir.Let, ir.Assign)):
        return statement.value
    if isinstance(statement, ir.ForEach):
        return statement.extent
    if isinstance(statement, (ir.If, ir.OnlyWarpgroups)):
        return statement.condition
    return statement
