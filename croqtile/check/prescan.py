"""What a piece of syntax tree assigns and calls, before it is checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from croqtile import ast


def assignments(body: Iterable[ast.Stmt], into_roles: bool = False) -> Counter[str]:
    """How often each name is defined or assigned in ``body``; roles count only if ``into_roles``."""
    count: Counter[str] = Counter()
    for statement in body:
        if isinstance(statement, (ast.Assign, ast.Declare)):
            count[statement.name.name] += 1
        elif isinstance(statement, ast.If):
            count += assignments(statement.then, into_roles) + assignments(statement.orelse, into_roles)
        elif isinstance(statement, ast.InThreads) and statement.asynchronous and not into_roles:
            continue
        elif isinstance(statement, (ast.Parallel, ast.InThreads, ast.ForEach, ast.Block)):
            count += assignments(statement.body, into_roles)
    return count


def called(body: Iterable[ast.Stmt]) -> set[str]:
    """The functions that ``call`` statements of ``body`` name."""
    names: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.Call):
            names.add(statement.function.name)
        elif isinstance(statement, ast.If):
            names |= called(statement.then) | called(statement.orelse)
        elif isinstance(statement, (ast.Parallel, ast.InThreads, ast.ForEach, ast.Block)):
            names |= called(statement.body)
    return names
