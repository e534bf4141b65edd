"""Conditions that compare parameters with each other, such as ``N == 3 * M``, replaced by parameters that are 0 or 1.

Such a condition has one value in all of a run. Which values occur together with which trip counts is a matter of
arithmetic that no bound on the trip counts covers (``N == 3 * M && M == 3 * K``), so both values are tried with all
trip counts: a superset of what can happen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from hb_analyzer.composite_trips import UnboundedError, substitute
from hb_analyzer.model import ZERO, BinOp, If, IntExpr, Parameter, Program, names_in
from hb_analyzer.traverse import statements

COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}


def name_relations(program: Program) -> Program:
    """``program`` with every comparison of several parameters replaced by a parameter. Raises UnboundedError."""
    parameters = {parameter.name for parameter in program.parameters}
    found: dict[IntExpr, str] = {}
    for statement in statements(program):
        if isinstance(statement, If):
            for atom in atoms_of(statement.condition):
                if _relates(atom, parameters):
                    if not (isinstance(atom, BinOp) and atom.op in COMPARISONS):
                        raise UnboundedError(f"the condition {atom} relates several parameters")
                    found.setdefault(atom, str(atom))
    if not found:
        return program
    fresh = tuple(Parameter(name, 0, 1) for name in found.values())
    return replace(substitute(program, found), parameters=(*program.parameters, *fresh))


def _relates(atom: IntExpr, parameters: Collection[str]) -> bool:
    names = names_in(atom)
    return len(names) > 1 and all(name in parameters for name in names)


def atoms_of(condition: IntExpr) -> Iterator[IntExpr]:
    """The conditions that ``condition`` joins by and, or, and not."""
    if isinstance(condition, BinOp) and condition.op in ("&&", "||"):
        yield from atoms_of(condition.left)
        yield from atoms_of(condition.right)
    elif isinstance(condition, BinOp) and (condition.op, condition.right) == ("==", ZERO) and _joins(condition.left):
        yield from atoms_of(condition.left)
    else:
        yield condition


def _joins(expr: IntExpr) -> bool:
    return isinstance(expr, BinOp) and expr.op in ("&&", "||", *COMPARISONS)
