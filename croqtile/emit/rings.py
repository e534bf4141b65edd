"""Slots that count round with a loop: `(k + c) % S` as a variable that is stepped, not divided, in every iteration."""

from __future__ import annotations

from collections.abc import Iterator

from croqtile import ir
from croqtile.emit.fragments import children
from croqtile.emit.planning import every_statement


def ring_variables(loop: ir.ForEach) -> tuple[dict[ir.Expr, tuple[str, int]], str, str]:
    """Variables that run through `(k + c) % S` with the loop, in place of a division in every iteration: the name and
    S for each expression, and what to add to the loop's head. A value named in the body keeps its name."""
    ring: dict[ir.Expr, tuple[str, int]] = {}
    starts, steps = "", ""
    for expr, offset, slots in _ring_expressions(loop):
        name = next(
            (s.symbol.cname for s in loop.body if isinstance(s, ir.Let) and s.value == expr and not s.symbol.mutable),
            f"{loop.counter.cname}{f'_plus_{offset}' if offset else ''}_mod_{slots}",
        )
        ring[expr] = (name, slots)
        starts += f", {name} = {offset % slots}"
        steps += f", {name} = next_slot<{slots}>({name})"
    return ring, starts, steps


def _ring_expressions(loop: ir.ForEach) -> list[tuple[ir.Expr, int, int]]:
    found: dict[ir.Expr, tuple[int, int]] = {}
    for statement in every_statement(loop.body):
        for whole in _all_expressions(statement):
            for expr in _subexpressions(whole):
                match expr:
                    case ir.Binary("%", ir.Var(symbol), ir.IntLit(slots)) if symbol is loop.counter and slots > 0:
                        found[expr] = (0, slots)
                    case ir.Binary("%", ir.Binary("+", ir.Var(symbol), ir.IntLit(offset)), ir.IntLit(slots)) if (
                        symbol is loop.counter and slots > 0 and offset >= 0
                    ):
                        found[expr] = (offset, slots)
                    case _:
                        pass
    return [(expr, offset, slots) for expr, (offset, slots) in found.items()]


def _all_expressions(statement: ir.Stmt) -> Iterator[ir.Expr]:
    """The integer expressions of a statement itself: values, slots, indices of views."""
    for name in ("value", "extent", "condition", "slot"):
        expr = getattr(statement, name, None)
        if expr is not None:
            yield expr
    for view in _views(statement):
        if view.slot is not None:
            yield view.slot
        yield from (level.index for dim in view.dims for level in dim.levels)


def _views(statement: ir.Stmt) -> Iterator[ir.View]:
    for name in ("source", "target"):
        view = getattr(statement, name, None)
        if isinstance(view, ir.View):
            yield view
    for name in ("a", "b"):
        operand = getattr(statement, name, None)
        if isinstance(operand, ir.SharedOperand):
            yield operand.view
    if isinstance(statement, ir.Call):
        yield from (argument for argument in statement.args if isinstance(argument, ir.View))


def _subexpressions(expr: ir.Expr) -> Iterator[ir.Expr]:
    yield expr
    for child in children(expr):
        yield from _subexpressions(child)
