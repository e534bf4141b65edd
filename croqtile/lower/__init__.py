"""Completes a checked kernel: what the program leaves implicit becomes explicit.

rounds     stages that count round in several statements
stages     a buffer that holds several stages → an array of them
layouts    SharedBuffer.swizzle
arrivals   Event.arrivals
shapes     Mma.m, n, k
groups     implied MmaCommit and MmaWait
releases   diagnoses operands that are released while an instruction may still read them
"""

from __future__ import annotations

from croqtile import ir
from croqtile.diagnostics import CompileError, Diagnostic
from croqtile.lower import arrivals, groups, layouts, releases, rounds, shapes, stages


def lower(kernel: ir.Kernel) -> ir.Kernel:
    """The completed kernel. Raises CompileError where no layout or no safe completion exists."""
    problems: list[Diagnostic] = []
    kernel = rounds.join(kernel)
    kernel = stages.split(kernel)
    kernel = layouts.assign(kernel, problems)
    kernel = arrivals.count(kernel, problems)
    kernel = shapes.infer(kernel)
    kernel = groups.close(kernel)
    releases.check(kernel, problems)
    if problems:
        raise CompileError(problems)
    return kernel
