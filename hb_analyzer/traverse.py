"""Walks over the statements and expressions of a program."""

from __future__ import annotations

from collections.abc import Iterator

from hb_analyzer.model import Access, If, IntExpr, Loop, Program, Statement, Trigger, Wait


def walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement of a body, in every branch and loop, outer ones first."""
    for statement in body:
        yield statement
        if isinstance(statement, Loop):
            yield from walk(statement.body)
        elif isinstance(statement, If):
            yield from walk(statement.then)
            yield from walk(statement.orelse)


def statements(program: Program) -> Iterator[Statement]:
    """Every statement of every role."""
    for role in program.roles:
        yield from walk(role.body)


def expressions_of(statement: Statement) -> tuple[IntExpr, ...]:
    """The trip count, condition or slots of a statement itself, without what it contains."""
    if isinstance(statement, Loop):
        return (statement.trip,)
    if isinstance(statement, If):
        return (statement.condition,)
    if isinstance(statement, Access):
        return (statement.slot, statement.event_slot)
    if isinstance(statement, (Trigger, Wait)):
        return (statement.slot,)
    return ()


def accesses_of(program: Program) -> Iterator[Access]:
    """Every access statement, in every branch."""
    return (statement for statement in statements(program) if isinstance(statement, Access))
