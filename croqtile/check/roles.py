"""The inside of ``parallel p by N : group-4``: which threads are which role, and what each role does."""

from __future__ import annotations

from croqtile import ast, fold, ir, rewrite
from croqtile import diagnostics as diag
from croqtile.check import definitions, expressions, statements, storage
from croqtile.check.prescan import assignments
from croqtile.check.scope import BarrierUse, Context, fail


def group(ctx: Context, statement: ast.Parallel) -> ir.Roles:
    """The roles of one parallel block. Without any inthreads.async, all warpgroups are one role that runs the body."""
    if not any(isinstance(inner, ast.InThreads) and inner.asynchronous for inner in statement.body):
        body = _run(ctx, statement.body, None, declares=True)
        role = ir.Role(fold.ONE, ctx.place.instances, None, body, statement.span)
        return ir.Roles((role,), statement.span)
    roles: list[ir.Role] = []
    prologue: list[ir.Stmt] = []
    owners: dict[tuple[int, int], ir.Span] = {}
    for inner in statement.body:
        with ctx.recovering():
            if isinstance(inner, ast.InThreads) and inner.asynchronous:
                roles.append(_role(ctx, inner, owners))
            elif isinstance(inner, (ast.SharedBuffers, ast.SharedEvents)):
                storage.shared(ctx, inner)
            elif isinstance(inner, ast.LaunchBounds):
                ctx.launch_bounds = expressions.constant(ctx, inner.blocks, "launch_bounds")
            elif isinstance(inner, (ast.Assign, ast.Declare)):
                prologue += definitions.define(ctx, inner)
            else:
                fail(diag.NotHere(inner.span, statements.word(inner), "must stand in a role (inthreads.async)"))
    return ir.Roles(tuple(roles), statement.span, tuple(prologue))


def _role(ctx: Context, statement: ast.InThreads, owners: dict[tuple[int, int], ir.Span]) -> ir.Role:
    condition = expressions.integer(ctx, statement.condition)
    instances, thread = _threads(ctx, condition, statement.condition.span)
    for p in instances:
        for t in range(128) if thread is None else (thread,):
            if (p, t) in owners:
                note = diag.Note(owners[p, t], "the other role is here")
                fail(diag.OverlappingRoles(statement.condition.span, t, p, notes=(note,)))
            owners[p, t] = statement.condition.span
    outside = ctx.assigned
    ctx.assigned = ctx.assigned_outside + assignments(statement.body, into_roles=True)
    try:
        body = _run(ctx, statement.body, thread, instances)
    finally:
        ctx.assigned = outside
    return ir.Role(condition, instances, thread, body, statement.span)


def _threads(ctx: Context, condition: ir.Expr, span: ir.Span) -> tuple[tuple[int, ...], int | None]:
    """The warpgroups that satisfy a role's condition, and the one thread of each that does (None: all 128)."""
    p, t = ctx.warpgroup, ctx.thread
    assert p is not None
    mentioned = set(rewrite.symbols(condition))
    for symbol in mentioned - {p, t}:
        allowed = f"'{p.name}'" + (f", '{t.name}'" if t is not None else "")
        fail(diag.ConditionNotConstant(span, allowed, symbol.name))
    chosen: dict[int, tuple[int, ...]] = {}
    for warpgroup in ctx.place.instances:
        values = {p: warpgroup}
        if t is None or t not in mentioned:
            threads = tuple(range(128)) if fold.evaluate(condition, values) else ()
        else:
            threads = tuple(n for n in range(128) if fold.evaluate(condition, {**values, t: n}))
        if threads:
            chosen[warpgroup] = threads
    if not chosen:
        fail(diag.EmptyRole(span))
    for warpgroup, threads in chosen.items():
        if len(threads) not in (1, 128) or threads != next(iter(chosen.values())):
            fail(diag.OddRole(span, len(threads), warpgroup))
    first = next(iter(chosen.values()))
    return tuple(chosen), first[0] if len(first) == 1 else None


def _run(
    ctx: Context,
    body: tuple[ast.Stmt, ...],
    thread: int | None,
    instances: tuple[int, ...] | None = None,
    declares: bool = False,
) -> tuple[ir.Stmt, ...]:
    """Checks the body of a role."""
    instances = ctx.place.instances if instances is None else instances
    role, ctx.roles = ctx.roles, ctx.roles + 1
    place = {"level": "role", "role": role, "instances": instances, "active": instances, "thread": thread}
    with ctx.nested(**place, may_declare_shared=declares):
        return statements.close_groups(ctx, tuple(statements.role_body(ctx, body)))


def barriers(ctx: Context) -> None:
    """Every member of a barrier must reach it somewhere (how often is the analysis' question)."""
    complained: set[tuple[frozenset[int], int]] = set()
    for use in ctx.barriers:
        key = frozenset(use.members)
        reached = {p for other in ctx.barriers if frozenset(other.members) == key for p in other.reached_by}
        for member in use.members:
            if member not in reached and (key, member) not in complained:
                complained.add((key, member))
                ctx.report(diag.MemberMissing(use.span, member))


def barrier(ctx: Context, members: tuple[int, ...], span: ir.Span) -> None:
    """Notes a barrier that the current warpgroups reach."""
    for number in ctx.place.active:
        if number not in members:
            fail(diag.NotAMember(span, number, ", ".join(map(str, members))))
    ctx.barriers.append(BarrierUse(members, ctx.place.active, span))
