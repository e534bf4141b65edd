"""Walking and rebuilding :mod:`croqtile.ir` trees, whatever their node types."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from croqtile import ir

Node = TypeVar("Node")

# Compared by identity: replaced as a whole, never rebuilt just because something inside changed.
_OBJECTS = (ir.Symbol, ir.Tensor, ir.SharedBuffer, ir.Event, ir.Fragment)


def replace(node: Node, mapping: Mapping[Any, Any]) -> Node:
    """``node`` with every object of ``mapping`` replaced by its image, everywhere inside.

    Keys are symbols, tensors, buffers, events or fragments. What holds none of them is shared with the original.
    """
    result: Node = _replace(node, mapping)
    return result


def _replace(node: Any, mapping: Mapping[Any, Any]) -> Any:
    if isinstance(node, _OBJECTS):
        return mapping.get(node, node)
    if isinstance(node, tuple):
        items = tuple(_replace(item, mapping) for item in node)
        return node if all(a is b for a, b in zip(items, node, strict=True)) else items
    if isinstance(node, ir.Span) or not dataclasses.is_dataclass(node):
        return node
    changes = {}
    for field in dataclasses.fields(node):
        old = getattr(node, field.name)
        new = _replace(old, mapping)
        if new is not old:
            changes[field.name] = new
    return dataclasses.replace(node, **changes) if changes and not isinstance(node, type) else node


def replace_views(kernel: ir.Kernel, change: Callable[[ir.View], ir.View]) -> ir.Kernel:
    """``kernel`` with ``change`` applied to every view."""

    def visit(node: Any) -> Any:
        if isinstance(node, ir.View):
            return change(node)
        if isinstance(node, tuple):
            items = tuple(visit(item) for item in node)
            return node if all(a is b for a, b in zip(items, node, strict=True)) else items
        if isinstance(node, (ir.Span, *_OBJECTS)) or not dataclasses.is_dataclass(node):
            return node
        changes = {f.name: visit(getattr(node, f.name)) for f in dataclasses.fields(node)}
        changes = {name: new for name, new in changes.items() if new is not getattr(node, name)}
        return dataclasses.replace(node, **changes) if changes and not isinstance(node, type) else node

    return dataclasses.replace(kernel, body=visit(kernel.body))


def statements(body: Iterable[ir.Stmt]) -> Iterator[ir.Stmt]:
    """Every statement of ``body``, nested ones included, in program order; those of roles too."""
    for statement in body:
        yield statement
        for inner in bodies(statement):
            yield from statements(inner)


def bodies(statement: ir.Stmt) -> tuple[tuple[ir.Stmt, ...], ...]:
    """The statement lists directly inside ``statement``."""
    if isinstance(statement, (ir.ForEach, ir.OnlyWarpgroups)):
        return (statement.body,)
    if isinstance(statement, ir.If):
        return (statement.then, statement.orelse)
    if isinstance(statement, ir.Roles):
        return (statement.prologue, *(role.body for role in statement.roles))
    return ()


def nodes(node: Any) -> Iterator[Any]:
    """Every IR node inside ``node``, itself first. Symbols, tensors, buffers, events and fragments are not entered."""
    if isinstance(node, tuple):
        for item in node:
            yield from nodes(item)
    elif isinstance(node, _OBJECTS):
        yield node
    elif dataclasses.is_dataclass(node) and not isinstance(node, ir.Span):
        yield node
        for field in dataclasses.fields(node):
            yield from nodes(getattr(node, field.name))


def symbols(node: Any) -> Iterator[ir.Symbol]:
    """Every symbol that ``node`` mentions."""
    return (item for item in nodes(node) if isinstance(item, ir.Symbol))


def roles(kernel: ir.Kernel) -> Iterator[ir.Role]:
    """Every role of the kernel, in program order."""
    for statement in statements(kernel.body):
        if isinstance(statement, ir.Roles):
            yield from statement.roles


def transform(body: tuple[ir.Stmt, ...], change: Callable[[ir.Stmt], ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """``body`` with ``change`` applied to every statement, innermost first."""

    def visit(statement: ir.Stmt) -> ir.Stmt:
        if isinstance(statement, (ir.ForEach, ir.OnlyWarpgroups)):
            statement = dataclasses.replace(statement, body=transform(statement.body, change))
        elif isinstance(statement, ir.If):
            then, orelse = transform(statement.then, change), transform(statement.orelse, change)
            statement = dataclasses.replace(statement, then=then, orelse=orelse)
        elif isinstance(statement, ir.Roles):
            inner = tuple(dataclasses.replace(r, body=transform(r.body, change)) for r in statement.roles)
            statement = dataclasses.replace(statement, roles=inner, prologue=transform(statement.prologue, change))
        return change(statement)

    return tuple(visit(statement) for statement in body)


def each_role(kernel: ir.Kernel, change: Callable[[tuple[ir.Stmt, ...]], tuple[ir.Stmt, ...]]) -> ir.Kernel:
    """The kernel with ``change`` applied to the body of every role."""

    def visit(statement: ir.Stmt) -> ir.Stmt:
        if not isinstance(statement, ir.Roles):
            return statement
        return dataclasses.replace(
            statement, roles=tuple(dataclasses.replace(role, body=change(role.body)) for role in statement.roles)
        )

    return dataclasses.replace(kernel, body=transform(kernel.body, visit))
