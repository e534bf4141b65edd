"""Names of a program's trip counts and counters that the expression grammar of pattern files can read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .model import Access, BinOp, If, IntExpr, Loop, Name, Program, Statement, Step, Trigger, Wait, names_in

_IDENTIFIER = re.compile(r"[A-Za-z_][\w.]*")


def all_names(program: Program) -> list[str]:
    """Parameters first, so that these keep their names where two would become the same."""
    names = [parameter.name for parameter in program.parameters]

    def visit(body: Iterable[Statement]) -> None:
        for statement in body:
            if isinstance(statement, Loop):
                names.extend([statement.counter, *sorted(names_in(statement.trip))])
                visit(statement.body)
            elif isinstance(statement, If):
                names.extend(sorted(names_in(statement.condition)))
                visit((*statement.then, *statement.orelse))
            elif isinstance(statement, Step):
                names.append(statement.counter)
            elif isinstance(statement, (Access, Trigger, Wait)):
                names.extend(sorted(names_in(statement.slot)))
                if isinstance(statement, Access):
                    names.extend(sorted(names_in(statement.event_slot)))

    for role in program.roles:
        visit(role.body)
    return list(dict.fromkeys(names))


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Names that the expression grammar reads: a trip count may be called "K / 64" in a program."""
    result: dict[str, str] = {}
    for name in names:
        base = name if _IDENTIFIER.fullmatch(name) else "n_" + re.sub(r"\W+", "_", name).strip("_")
        candidate, number = base, 1
        while candidate in result.values() or candidate in ("cdiv", "max", "min"):
            number += 1
            candidate = f"{base}_{number}"
        result[name] = candidate
    return result


def renamed(expr: IntExpr, names: Mapping[str, str]) -> IntExpr:
    """``expr`` with every name replaced."""
    if isinstance(expr, Name):
        return Name(names[expr.name])
    if isinstance(expr, BinOp):
        return BinOp(expr.op, renamed(expr.left, names), renamed(expr.right, names))
    return expr
