"""Trip counts such as ``cdiv(K, 64)``, replaced by parameters of their own.

K takes every value, so cdiv(K, 64) does too, while trying K = 0 … bound would try hardly any trip count. The
replacement is exact only if K occurs nowhere else: otherwise two related counts would be taken for independent ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from hb_analyzer.model import (
    Access,
    BinOp,
    Const,
    If,
    IntExpr,
    Loop,
    Name,
    Parameter,
    Program,
    Statement,
    Trigger,
    Wait,
    evaluate,
    names_in,
)
from hb_analyzer.traverse import expressions_of, statements

_MONOTONE = {"+", "*", "/", "cdiv", "max", "min"}


class UnboundedError(Exception):
    """No finite set of trip counts is known to suffice; the message says why."""


def name_composite_trips(program: Program) -> Program:
    """``program`` with every composite trip count replaced by a parameter of its own. Raises UnboundedError."""
    known = {parameter.name: parameter for parameter in program.parameters}
    composites: dict[IntExpr, str] = {}
    for statement in statements(program):
        if isinstance(statement, Loop):
            for part in _composites(statement.trip, known.keys()):
                composites.setdefault(part, str(part))
    if not composites:
        return program
    for statement in statements(program):
        for expr in expressions_of(statement):
            # A loop of a negative count does not run; anywhere else its value matters.
            alone = isinstance(statement, Loop) and expr in composites
            below = [part for part in composites if not alone and not _natural(part) and _contains(expr, part)]
            if below:
                raise UnboundedError(f"{below[0]} in {expr} may be negative")
    fresh = []
    for part, name in composites.items():
        low = {n: known[n].minimum for n in names_in(part)}
        tops = {n: known[n].maximum for n in names_in(part)}
        bounded = {n: top for n, top in tops.items() if top is not None}
        monotone = _monotone(part)
        fresh.append(
            Parameter(
                name,
                max(0, evaluate(part, low)) if monotone else 0,
                max(0, evaluate(part, bounded)) if monotone and len(bounded) == len(tops) else None,
            )
        )
    substituted = replace(substitute(program, composites), parameters=(*program.parameters, *fresh))
    left_over: set[str] = set()
    for statement in statements(substituted):
        for expr in expressions_of(statement):
            left_over |= names_in(expr)
    seen: set[str] = set()
    for part in composites:
        clash = names_in(part) & (left_over | seen)
        if clash:
            raise UnboundedError(
                f"{part} is not provably equal or unrelated to other uses of {', '.join(sorted(clash))}"
            )
        seen |= names_in(part)
    return substituted


def _composites(expr: IntExpr, parameters: Collection[str]) -> Iterator[IntExpr]:
    """Maximal subexpressions over parameters only that are not sums."""
    if not isinstance(expr, BinOp):
        return
    names = names_in(expr)
    if expr.op in ("+", "-", "max", "min"):
        yield from _composites(expr.left, parameters)
        yield from _composites(expr.right, parameters)
    elif names and all(name in parameters for name in names):
        yield expr


def _monotone(expr: IntExpr) -> bool:
    if isinstance(expr, Const):
        return expr.value >= 0
    if isinstance(expr, Name):
        return True
    if expr.op in ("/", "cdiv"):
        return _monotone(expr.left) and isinstance(expr.right, Const) and expr.right.value > 0
    return expr.op in _MONOTONE and _monotone(expr.left) and _monotone(expr.right)


def _contains(expr: IntExpr, part: IntExpr) -> bool:
    return expr == part or (isinstance(expr, BinOp) and (_contains(expr.left, part) or _contains(expr.right, part)))


def _natural(expr: IntExpr) -> bool:
    """Is it certainly not negative, if no name is?"""
    if isinstance(expr, Const):
        return expr.value >= 0
    return isinstance(expr, Name) or (expr.op != "-" and _natural(expr.left) and _natural(expr.right))


def substitute(program: Program, names: dict[IntExpr, str]) -> Program:
    """``program`` with names in the places of expressions."""
    return replace(
        program, roles=tuple(replace(role, body=_substitute_body(role.body, names)) for role in program.roles)
    )


def _substitute(expr: IntExpr, names: dict[IntExpr, str]) -> IntExpr:
    if expr in names:
        return Name(names[expr])
    if isinstance(expr, BinOp):
        return BinOp(expr.op, _substitute(expr.left, names), _substitute(expr.right, names))
    return expr


def _substitute_body(body: tuple[Statement, ...], names: dict[IntExpr, str]) -> tuple[Statement, ...]:
    result: list[Statement] = []
    for statement in body:
        if isinstance(statement, Loop):
            statement = replace(
                statement, trip=_substitute(statement.trip, names), body=_substitute_body(statement.body, names)
            )
        elif isinstance(statement, If):
            statement = replace(
                statement,
                condition=_substitute(statement.condition, names),
                then=_substitute_body(statement.then, names),
                orelse=_substitute_body(statement.orelse, names),
            )
        elif isinstance(statement, Access):
            statement = replace(
                statement, slot=_substitute(statement.slot, names), event_slot=_substitute(statement.event_slot, names)
            )
        elif isinstance(statement, (Trigger, Wait)):
            statement = replace(statement, slot=_substitute(statement.slot, names))
        result.append(statement)
    return tuple(result)
