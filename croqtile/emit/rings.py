"""Slots that count round with a loop: `(k + c) % S` as a variable that is stepped, not divided, in every iteration."""

from __future__ import annotations

from croqtile import ir, rewrite


def ring_variables(loop: ir.ForEach) -> tuple[dict[ir.Expr, tuple[str, int]], str, str]:
    """Variables that run through `(k + c) % S` with the loop, in place of a division in every iteration: the name and
    S for each expression, and what to add to the loop's head. A value named in the body keeps its name."""
    ring: dict[ir.Expr, tuple[str, int]] = {}
    starts, steps = "", ""
    for expr, offset, slots in _ring_expressions(loop):
        name = next(
            (s.symbol.cname for s in loop.body if isinstance(s, ir.Let) and s.value == expr and _is_slot(s.symbol)),
            f"{loop.counter.cname}{f'_plus_{offset}' if offset else ''}_mod_{slots}",
        )
        ring[expr] = (name, slots)
        starts += f", {name} = {offset % slots}"
        steps += f", {name} = next_slot<{slots}>({name})"
    return ring, starts, steps


def _is_slot(symbol: ir.Symbol) -> bool:
    return symbol.ctype == "int" and not symbol.mutable


def _ring_expressions(loop: ir.ForEach) -> list[tuple[ir.Expr, int, int]]:
    found: dict[ir.Expr, tuple[int, int]] = {}
    for node in rewrite.nodes(loop.body):
        match node:
            case ir.Binary("%", ir.Var(symbol), ir.IntLit(slots)) if symbol is loop.counter and slots > 0:
                found[node] = (0, slots)
            case ir.Binary("%", ir.Binary("+", ir.Var(symbol), ir.IntLit(offset)), ir.IntLit(slots)) if (
                symbol is loop.counter and slots > 0 and offset >= 0
            ):
                found[node] = (offset, slots)
            case _:
                pass
    return [(expr, offset, slots) for expr, (offset, slots) in found.items()]
