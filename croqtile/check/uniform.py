"""What must be the same in all threads of a warpgroup: whether they come to a statement, which tile or slot it names.

The other checks see a scalar as it is where it is used; in a loop it may be assigned from the thread's number further
down. This pass looks at whole roles.
"""

from __future__ import annotations

from collections.abc import Iterable

from croqtile import diagnostics as diag
from croqtile import ir, rewrite
from croqtile.check.scope import Context

# The threads may part around these. All others need the whole warpgroup.
_INDEPENDENT = (ir.Let, ir.Assign, ir.ForEach, ir.If, ir.OnlyWarpgroups)
_ACT_TOGETHER = (ir.Wait, ir.Trigger, ir.CopyIn, ir.CopyOut, ir.Mma, ir.MmaStore)


def uniform(ctx: Context, body: tuple[ir.Stmt, ...]) -> None:
    """Reports what the threads of a warpgroup would not agree on, in every role of whole warpgroups."""
    for statement in rewrite.statements(body):
        if isinstance(statement, ir.Roles):
            for role in statement.roles:
                if role.thread is None:
                    _check(ctx, role.body, _divergent((*statement.prologue, *role.body)), None)


def _divergent(body: tuple[ir.Stmt, ...]) -> set[ir.Symbol]:
    """The scalars whose values may differ between the threads, in any iteration."""
    found: set[ir.Symbol] = set()

    def visit(statements: Iterable[ir.Stmt], parted: bool) -> None:
        for statement in statements:
            if isinstance(statement, (ir.Let, ir.Assign)) and (parted or _differs(statement.value, found)):
                found.add(statement.symbol)
            inside = parted or _differs(_condition(statement), found)
            if inside and isinstance(statement, ir.ForEach):
                found.add(statement.counter)
            for inner in rewrite.bodies(statement):
                visit(inner, inside)

    known = -1
    while known < len(found):
        known = len(found)
        visit(body, False)
    return found


def _condition(statement: ir.Stmt) -> object:
    """What decides whether the statements inside are reached."""
    if isinstance(statement, ir.ForEach):
        return statement.extent
    return statement.condition if isinstance(statement, (ir.If, ir.OnlyWarpgroups)) else ()


def _differs(node: object, divergent: set[ir.Symbol]) -> bool:
    return any(s.kind is ir.SymbolKind.THREAD or s in divergent for s in rewrite.symbols(node))


def _check(ctx: Context, body: tuple[ir.Stmt, ...], divergent: set[ir.Symbol], parted: ir.Span | None) -> None:
    for statement in body:
        if parted is not None and not isinstance(statement, _INDEPENDENT):
            note = diag.Note(parted, "the condition is here")
            ctx.report(diag.DivergentStatement(statement.span, "this statement", notes=(note,)))
        elif isinstance(statement, _ACT_TOGETHER) and _differs(statement, divergent):
            ctx.report(diag.DivergentPlace(statement.span))
        inside = statement.span if _differs(_condition(statement), divergent) else parted
        for inner in rewrite.bodies(statement):
            _check(ctx, inner, divergent, inside)
