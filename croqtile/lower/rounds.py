"""Stages that count round: several statements that step one scalar become one assignment, which the analysis knows.

``x = x + 1; if (x == n) x = 0;`` and ``if (x == n - 1) x = 0; else x = x + 1;`` mean the same as
``x = x + 1 == n ? 0 : x + 1;``. They are joined where the result is such a step, so that other code stays as written.
"""

from __future__ import annotations

import dataclasses

from croqtile import fold, ir, rewrite, walk


def join(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with every step round in one assignment."""

    def change(statement: ir.Stmt) -> ir.Stmt:
        if isinstance(statement, (ir.ForEach, ir.OnlyWarpgroups)):
            return dataclasses.replace(statement, body=_joined(statement.body))
        if isinstance(statement, ir.If):
            sides = dataclasses.replace(statement, then=_joined(statement.then), orelse=_joined(statement.orelse))
            return _step(_selected(sides)) or sides
        if isinstance(statement, ir.Roles):
            roles = tuple(dataclasses.replace(role, body=_joined(role.body)) for role in statement.roles)
            return dataclasses.replace(statement, roles=roles)
        return statement

    return dataclasses.replace(kernel, body=_joined(rewrite.transform(kernel.body, change)))


def _joined(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    result: list[ir.Stmt] = []
    for statement in body:
        earlier = result[-1] if result else None
        step = _step(_after(earlier, statement)) if isinstance(earlier, ir.Assign) else None
        if step is not None:
            result[-1] = step
        else:
            result.append(statement)
    return tuple(result)


def _step(assign: ir.Assign | None) -> ir.Assign | None:
    """``assign``, if the analysis knows it as a step round."""
    update = walk.update_of(assign) if assign is not None else None
    return assign if update is not None and update.modulus is not None else None


def _after(earlier: ir.Assign, statement: ir.Stmt) -> ir.Assign | None:
    """One assignment for ``earlier`` and ``statement``, if both do nothing but compute a scalar from itself."""
    later = _selected(statement) if isinstance(statement, ir.If) else statement
    if not (isinstance(later, ir.Assign) and later.symbol is earlier.symbol and _only(earlier.value, earlier.symbol)):
        return None
    if not _only(later.value, later.symbol):
        return None
    return ir.Assign(earlier.symbol, _substitute(later.value, earlier.symbol, earlier.value), earlier.span)


def _selected(branch: ir.If) -> ir.Assign | None:
    """``if (c) x = a; else x = b;`` as ``x = c ? a : b;``; without an else, x stays."""
    if len(branch.then) != 1 or len(branch.orelse) > 1:
        return None
    (then,) = branch.then
    if not isinstance(then, ir.Assign):
        return None
    symbol, other = then.symbol, ir.Assign(then.symbol, ir.Var(then.symbol), branch.span)
    orelse = branch.orelse[0] if branch.orelse else other
    if not (isinstance(orelse, ir.Assign) and orelse.symbol is symbol):
        return None
    if not all(_only(value, symbol) for value in (branch.condition, then.value, orelse.value)):
        return None
    return ir.Assign(symbol, fold.select(branch.condition, then.value, orelse.value), branch.span)


def _only(expr: ir.Expr, symbol: ir.Symbol) -> bool:
    """Is ``expr`` made of integer constants and ``symbol``?"""
    kinds = (ir.IntLit, ir.Var, ir.Binary, ir.Unary, ir.Select, ir.Symbol)
    return all(
        isinstance(node, kinds) and (node is symbol or not isinstance(node, ir.Symbol)) for node in rewrite.nodes(expr)
    )


def _substitute(expr: ir.Expr, symbol: ir.Symbol, value: ir.Expr) -> ir.Expr:
    if isinstance(expr, ir.Var):
        return value if expr.symbol is symbol else expr
    if isinstance(expr, ir.Binary):
        return fold.binary(expr.op, _substitute(expr.left, symbol, value), _substitute(expr.right, symbol, value))
    if isinstance(expr, ir.Unary):
        return fold.unary(expr.op, _substitute(expr.operand, symbol, value))
    if isinstance(expr, ir.Select):
        condition, yes, no = (_substitute(part, symbol, value) for part in (expr.condition, expr.yes, expr.no))
        return fold.select(condition, yes, no)
    return expr
