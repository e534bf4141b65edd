"""From a program's text to emitted device code, for the tests of emission."""

from __future__ import annotations

from pathlib import Path

import tile

from croqtile import ir, rewrite
from croqtile.analyse import analyse
from croqtile.emit.context import Context, Runs
from croqtile.emit.device import emit_device
from croqtile.emit.names import kernel_names
from croqtile.emit.plan import EmitPlan
from croqtile.emit.planning import make_plan
from croqtile.emit.writer import Writer


def plan_of(directory: Path, text: str, sala: bool = True) -> EmitPlan:
    kernel = tile.lowered(directory, text)
    return make_plan(kernel, analyse(kernel, sala).placement)


def device(directory: Path, text: str, sala: bool = True) -> str:
    """The text of the only kernel."""
    return emit_device(plan_of(directory, text, sala))[0]


def context(plan: EmitPlan, runs: Runs = Runs.WARPGROUP, instances: tuple[int, ...] = (1,)) -> Context:
    """As inside a role, with nothing emitted yet."""
    return Context(plan, kernel_names(plan.kernel), Writer(), set(), runs, instances)


def emitted(context: Context) -> str:
    return "\n".join(context.out.lines)


def find(kernel: ir.Kernel, kind: type[ir.Stmt], number: int = 0) -> ir.Stmt:
    """The statement of a kind, counted from 0."""
    return [statement for statement in rewrite.statements(kernel.body) if isinstance(statement, kind)][number]
