"""``--dump``: the results of the passes as text, for people and for tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any

from croqtile import driver, ir
from croqtile.driver import Compilation
from hb_analyzer import model
from hb_analyzer.expressions import bare


def dump(compilation: Compilation, name: str) -> str:
    """The result of the pass ``name``: ``parse``, ``check``, ``lower``, ``analyse`` or ``emit``."""
    text = _PASSES[name](compilation)
    return f"// {name}: {compilation.path}\n" + text.rstrip("\n") + "\n"


def _parse(compilation: Compilation) -> str:
    from croqtile.parse import parse

    return "\n".join(line for function in compilation.unit.functions for line in tree(parse(function)))


def _check(compilation: Compilation) -> str:
    from croqtile.check import check
    from croqtile.irprint import print_kernel
    from croqtile.parse import parse

    return "\n".join(print_kernel(check(parse(function))) for function in compilation.unit.functions)


def _lower(compilation: Compilation) -> str:
    from croqtile.irprint import print_kernel

    return "\n".join(print_kernel(kernel) for kernel in compilation.unit.kernels)


def _analyse(compilation: Compilation) -> str:
    return "\n".join(program_text(analysis.program) for analysis in compilation.analyses)


_PASSES: dict[str, Callable[[Compilation], str]] = {
    "parse": _parse,
    "check": _check,
    "lower": _lower,
    "analyse": _analyse,
    "emit": driver.generate,
}


# --------------------------------------------------------------------------------------------------------------
# Syntax trees


def tree(node: Any, label: str = "", depth: int = 0) -> Iterator[str]:
    """A tree of dataclasses, one node or plain value a line; places in the file are left out."""
    margin = "  " * depth + (f"{label}: " if label else "")
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        plain: list[tuple[str, Any]] = []
        nested: list[tuple[str, Any]] = []
        for field in dataclasses.fields(node):
            value = getattr(node, field.name)
            if isinstance(value, ir.Span) or value is None or value == ():
                continue
            target = nested if isinstance(value, tuple) or dataclasses.is_dataclass(value) else plain
            target.append((field.name, value))
        values = " ".join(f"{name}={_plain(value)}" for name, value in plain)
        yield f"{margin}{type(node).__name__} {values}".rstrip()
        for name, value in nested:
            yield from tree(value, name, depth + 1)
    elif isinstance(node, tuple):
        for item in node:
            yield from tree(item, label, depth)
    else:
        yield f"{margin}{_plain(node)}"


def _plain(value: object) -> str:
    return value.name if isinstance(value, Enum) else str(value)


# --------------------------------------------------------------------------------------------------------------
# Programs of the analysis


def program_text(program: model.Program) -> str:
    """What the analysis engine is asked about."""
    lines = [f"program {program.name}"]
    for buffer in program.buffers:
        shape = "×".join(map(str, buffer.shape))
        lines.append(f"  buffer {buffer.name}: {buffer.size} bytes, {buffer.slots} × {shape}, align {buffer.align}")
    for event in program.events:
        lines.append(f"  event {event.name}: {event.slots} slots, {event.arrivals} arrivals")
    for parameter in program.parameters:
        low, high = parameter.minimum, parameter.maximum
        lines.append(f"  parameter {parameter.name}" + (f" ≥ {low}" if high is None else f": {low} … {high}"))
    for note in program.assumptions:
        lines.append(f"  assumption: {note}")
    for role in program.roles:
        lines += [f"  role {role.name} ({role.kind})", *body_lines(role.body, 2)]
    return "\n".join(lines) + "\n"


def body_lines(body: Iterable[model.Statement], depth: int = 0) -> Iterator[str]:
    """The code of a role, a line for each operation."""
    margin = "  " * depth
    for s in body:
        if isinstance(s, model.Loop):
            yield f"{margin}loop {s.counter} < {bare(s.trip)}"
            yield from body_lines(s.body, depth + 1)
        elif isinstance(s, model.If):
            yield f"{margin}if {bare(s.condition)}"
            yield from body_lines(s.then, depth + 1)
            if s.orelse:
                yield f"{margin}else"
                yield from body_lines(s.orelse, depth + 1)
        elif isinstance(s, model.Access):
            until = f", ends with {s.event}[{bare(s.event_slot)}]" if s.event is not None else f", ends: {s.ends}"
            region = " (unknown region)" if s.region is None else ""
            yield f"{margin}{s.mode} {s.label}{region}{until}, {s.proxy}{'' if s.fenced else ', not fenced'}"
        elif isinstance(s, model.Barrier):
            yield f"{margin}barrier {s.name}: {', '.join(s.members)}"
        elif isinstance(s, model.Step):
            yield f"{margin}step {s.counter} += {s.by}"
        elif isinstance(s, model.Opaque):
            concerned = ", ".join((*s.buffers, *s.events))
            yield f"{margin}opaque ({concerned}): {s.reason}"
        else:
            yield f"{margin}{s.label or type(s).__name__}"
