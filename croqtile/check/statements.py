"""Statements that a role (or the block) executes: definitions, loops, branches, events, copies, calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from croqtile import ast, fold, ir, rewrite
from croqtile import diagnostics as diag
from croqtile.check import copies, expressions, fragments, matrix, storage, views
from croqtile.check.definitions import define
from croqtile.check.places import collective, whole_warpgroup
from croqtile.check.prescan import assignments
from croqtile.check.scope import (
    WORDS,
    Context,
    EventName,
    EventUse,
    ScalarName,
    fail,
)

Body = Callable[[Context, Iterable[ast.Stmt]], list[ir.Stmt]]

_WORDS: dict[type, str] = {
    ast.Parallel: "'parallel'",
    ast.InThreads: "'inthreads'",
    ast.ForEach: "'foreach'",
    ast.If: "'if'",
    ast.Block: "a block",
    ast.LaunchBounds: "'launch_bounds'",
    ast.SharedEvents: "'shared'",
    ast.SharedBuffers: "'shared'",
    ast.Fragments: "'fragment'",
    ast.Wait: "'wait'",
    ast.Trigger: "'trigger'",
    ast.Copy: "'tma.copy'",
    ast.Mma: "'mma.row'",
    ast.MmaCommit: "'mma.commit'",
    ast.MmaWait: "'mma.wait'",
    ast.MmaStore: "'mma.store'",
    ast.FragApply: "'frag.apply'",
    ast.FragCopy: "'frag.copy'",
    ast.FragReduce: "'frag.reduce'",
    ast.SyncWg: "'sync.wg'",
    ast.SyncShared: "'sync.shared'",
    ast.Call: "'call'",
}


def word(statement: ast.Stmt) -> str:
    """What messages call a statement."""
    if isinstance(statement, ast.Copy) and statement.event is not None:
        return "'tma.copy.async'"
    if isinstance(statement, ast.InThreads) and statement.asynchronous:
        return "'inthreads.async'"
    if isinstance(statement, ast.Assign) and isinstance(statement.value, (ast.MmaFill, ast.MmaLoad)):
        return "'mma.fill'" if isinstance(statement.value, ast.MmaFill) else "'mma.load'"
    return _WORDS.get(type(statement), "a definition")


def role_body(ctx: Context, body: Iterable[ast.Stmt]) -> list[ir.Stmt]:
    """Statements of a role, errors collected."""
    result: list[ir.Stmt] = []
    for statement in body:
        with ctx.recovering():
            result += _role_statement(ctx, statement)
    return result


def _role_statement(ctx: Context, statement: ast.Stmt) -> list[ir.Stmt]:
    if isinstance(statement, (ast.Assign, ast.Declare)):
        return define(ctx, statement)
    if isinstance(statement, ast.ForEach):
        return foreach(ctx, statement, role_body)
    if isinstance(statement, ast.If):
        return branch(ctx, statement, role_body)
    if isinstance(statement, ast.Block):
        with ctx.nested():
            return role_body(ctx, statement.body)
    if isinstance(statement, ast.InThreads) and not statement.asynchronous:
        return _only(ctx, statement)
    if isinstance(statement, ast.Wait):
        return _wait(ctx, statement)
    if isinstance(statement, ast.Trigger):
        return _trigger(ctx, statement)
    if isinstance(statement, ast.Copy):
        return copy(ctx, statement)
    if isinstance(statement, ast.Call):
        return call(ctx, statement)
    if isinstance(statement, (ast.SyncWg, ast.SyncShared)):
        return _sync(ctx, statement)
    if isinstance(statement, (ast.Mma, ast.MmaCommit, ast.MmaWait, ast.MmaStore)):
        whole_warpgroup(ctx, statement.span, word(statement))
        return matrix.statement(ctx, statement)
    if isinstance(statement, (ast.FragApply, ast.FragCopy, ast.FragReduce)):
        whole_warpgroup(ctx, statement.span, word(statement))
        return fragments.statement(ctx, statement)
    if isinstance(statement, ast.Fragments):
        whole_warpgroup(ctx, statement.span, word(statement))
        return storage.fragments(ctx, statement)
    if isinstance(statement, (ast.SharedBuffers, ast.SharedEvents)) and ctx.place.may_declare_shared:
        storage.shared(ctx, statement)
        return []
    where = {
        ast.Parallel: "cannot stand in a role",
        ast.InThreads: "cannot stand in another role",
        ast.LaunchBounds: "must stand directly in the grid, outside roles",
    }.get(type(statement), "must be declared outside roles, for all of them")
    fail(diag.NotHere(statement.span, word(statement), where))


# --------------------------------------------------------------------------------------------------------------
# Control


def foreach(ctx: Context, statement: ast.ForEach, body: Body) -> list[ir.Stmt]:
    """A counted loop; several counters are nested loops, the first outermost."""
    if len(statement.counters) != len(statement.extents):
        fail(diag.WrongBoundCount(statement.span, len(statement.counters), len(statement.extents)))
    extents = [expressions.extent(ctx, extent) for extent in statement.extents]
    made = _freeze_extents(ctx, statement, extents)
    uneven = [e for e, x in zip(statement.extents, extents, strict=True) if expressions.divergent(ctx, x)]
    divergent = uneven[0].span if uneven else ctx.place.divergent
    with ctx.nested(divergent=divergent):
        counters = []
        for name, extent in zip(statement.counters, extents, strict=True):
            symbol = ir.Symbol(name.name, ir.SymbolKind.LOOP, ctx.cname(name.name), bound=extent, span=name.span)
            ctx.declare(name.name, ScalarName(symbol, None, name.span))
            counters.append(symbol)
        inner = tuple(body(ctx, statement.body))
    for symbol, extent in reversed(list(zip(counters, extents, strict=True))):
        inner = (ir.ForEach(symbol, extent, inner, statement.span),)
    return [*made, *inner]


def _freeze_extents(ctx: Context, statement: ast.ForEach, extents: list[ir.Expr]) -> list[ir.Stmt]:
    """The trip count is fixed when the loop starts, even if the body assigns what it was computed from."""
    assigned = assignments(statement.body, into_roles=True)
    made: list[ir.Stmt] = []
    for number, extent in enumerate(extents):
        if any(symbol.kind is ir.SymbolKind.VALUE and symbol.name in assigned for symbol in rewrite.symbols(extent)):
            name = f"{statement.counters[number].name}_count"
            symbol = ir.Symbol(name, ir.SymbolKind.VALUE, ctx.cname(name), span=statement.span)
            made.append(ir.Let(symbol, extent, statement.span))
            extents[number] = ir.Var(symbol)
    return made


def branch(ctx: Context, statement: ast.If, body: Body) -> list[ir.Stmt]:
    """``if``. A constant condition leaves one side only; one on the warpgroup number tells who comes where."""
    condition = expressions.extent(ctx, statement.condition)
    number = fold.integer(condition)
    if number is not None:
        with ctx.nested():
            return body(ctx, statement.then if number else statement.orelse)
    taken, passed = _narrow(ctx, condition)
    divergent = statement.condition.span if expressions.divergent(ctx, condition) else ctx.place.divergent
    with ctx.nested(active=taken, divergent=divergent):
        then = tuple(body(ctx, statement.then))
    with ctx.nested(active=passed, divergent=divergent):
        orelse = tuple(body(ctx, statement.orelse))
    return [ir.If(condition, then, orelse, statement.span)]


def _narrow(ctx: Context, condition: ir.Expr) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The warpgroups that can find ``condition`` true, and those that can find it false."""
    p, active = ctx.warpgroup, ctx.place.active
    if p is None or set(rewrite.symbols(condition)) != {p}:
        return active, active
    true = tuple(n for n in active if fold.evaluate(condition, {p: n}))
    return true, tuple(n for n in active if n not in true)


def _only(ctx: Context, statement: ast.InThreads) -> list[ir.Stmt]:
    """``inthreads (cond)`` inside a role: some of its warpgroups, or some threads of each."""
    condition = expressions.integer(ctx, statement.condition)
    chosen, _ = _narrow(ctx, condition)
    if not chosen:
        fail(diag.EmptyRole(statement.condition.span))
    if expressions.divergent(ctx, condition):
        with ctx.nested(divergent=statement.condition.span):
            return [ir.If(condition, tuple(role_body(ctx, statement.body)), (), statement.span)]
    p = ctx.warpgroup
    for symbol in rewrite.symbols(condition):
        if symbol is not p and p is not None:
            fail(diag.ConditionNotConstant(statement.condition.span, f"'{p.name}'", symbol.name))
    with ctx.nested(active=chosen):
        return [ir.OnlyWarpgroups(condition, chosen, tuple(role_body(ctx, statement.body)), statement.span)]


# --------------------------------------------------------------------------------------------------------------
# Synchronisation, copies, calls


def event(ctx: Context, reference: ast.EventRef) -> tuple[ir.Event, ir.Expr]:
    """The event and its slot."""
    binding = ctx.lookup(reference.name.name, reference.name.span)
    name = reference.name.name
    if not isinstance(binding, EventName):
        fail(diag.WrongKind(reference.name.span, "an event", f"'{name}' is {WORDS[type(binding)]}"))
    found = binding.event
    if reference.index is None:
        if found.is_array:
            fail(diag.NeedsSlot(reference.span, name, found.slots, "events"))
        return found, fold.ZERO
    if not found.is_array:
        fail(diag.NotAnArray(reference.span, name, "event"))
    return found, views.slot(ctx, reference.index, name, found.slots)


def use(ctx: Context, kind: str, found: ir.Event, span: ir.Span) -> None:
    """Remembers who does what with an event, for the checks of the whole function."""
    assert ctx.place.role is not None
    ctx.uses.append(EventUse(kind, found, ctx.place.role, span))


def _wait(ctx: Context, statement: ast.Wait) -> list[ir.Stmt]:
    collective(ctx, statement.span, "'wait'")
    made: list[ir.Stmt] = []
    for reference in statement.events:
        with ctx.recovering():
            found, slot = event(ctx, reference)
            use(ctx, "wait", found, reference.span)
            made.append(ir.Wait(found, slot, reference.span))
    return made


def _trigger(ctx: Context, statement: ast.Trigger) -> list[ir.Stmt]:
    collective(ctx, statement.span, "'trigger'")
    if statement.cluster and ctx.cluster is None:
        fail(diag.NotHere(statement.span, "'trigger.cluster'", "needs a cluster (parallel … : cluster)"))
    made: list[ir.Stmt] = []
    for reference in statement.events:
        with ctx.recovering():
            found, slot = event(ctx, reference)
            use(ctx, "trigger", found, reference.span)
            made.append(ir.Trigger(found, slot, reference.span, statement.cluster))
    return made


def _sync(ctx: Context, statement: ast.SyncWg | ast.SyncShared) -> list[ir.Stmt]:
    from croqtile.check import roles

    whole_warpgroup(ctx, statement.span, word(statement))
    assert ctx.warpgroup is not None and ctx.warpgroup.bound is not None
    count = fold.integer(ctx.warpgroup.bound) or 0
    if isinstance(statement, ast.SyncShared):
        roles.barrier(ctx, tuple(range(count)), statement.span)
        return [ir.SyncCta(statement.span)]
    members: list[int] = []
    for expr in statement.members:
        number = expressions.constant(ctx, expr, "a member of sync.wg", minimum=None)
        if not 0 <= number < count:
            fail(diag.NoSuchWarpgroup(expr.span, number, count, count - 1))
        if number not in members:
            members.append(number)
    roles.barrier(ctx, tuple(members), statement.span)
    return [ir.SyncWarpgroups(tuple(members), statement.span)]


def copy(ctx: Context, statement: ast.Copy) -> list[ir.Stmt]:
    """``tma.copy`` of either direction."""
    collective(ctx, statement.span, word(statement))
    if statement.event is None:
        return [copies.copy_out(ctx, statement)]
    found, slot = event(ctx, statement.event)
    use(ctx, "copy", found, statement.event.span)
    return [copies.copy_in(ctx, statement, found, slot)]


def call(ctx: Context, statement: ast.Call) -> list[ir.Stmt]:
    """``call f(a, b);``: by all threads of the role, which meet before and after it."""
    collective(ctx, statement.span, "'call'")
    arguments: list[ir.Expr | ir.View] = []
    for argument in statement.arguments:
        if views.is_view(ctx, argument):
            arguments.append(views.tile(ctx, argument))
        else:
            arguments.append(expressions.scalar(ctx, argument).expr)
    return [ir.Call(statement.function.name, tuple(arguments), statement.span)]


def close_groups(ctx: Context, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """Marks the matrix instructions that an mma.commit of the program closes (see :mod:`croqtile.check.matrix`)."""
    return matrix.mark_explicit(ctx, body, False)
