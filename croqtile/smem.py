"""Shared memory of one block on SM90: what a launch may ask for, and what a kernel asks for beside its buffers."""

from __future__ import annotations

from croqtile import ir, rewrite

# Bytes of shared memory that one block may use on SM90 (227 KiB, with the opt-in attribute).
BLOCK_LIMIT = 232448

# The base of dynamic shared memory is only 16-byte aligned. Kernels that load operands with swizzle 128 align it to
# 1024 in the kernel; the others declare 128 and need no more than that.
SLACK_SWIZZLED = 1024
SLACK = 128

BARRIER_BYTES = 8  # one mbarrier


def slack(kernel: ir.Kernel) -> int:
    """Bytes that the launch requests beyond the placement."""
    swizzled = any(
        isinstance(operand, ir.SharedOperand) and operand.swizzle == 128
        for statement in rewrite.statements(kernel.body)
        if isinstance(statement, ir.Mma)
        for operand in (statement.a, statement.b)
    )
    return SLACK_SWIZZLED if swizzled else SLACK


def barrier_bytes(kernel: ir.Kernel) -> int:
    """Bytes of the kernel's mbarriers: they lie in the slack as far as it has room, else in static shared memory."""
    return BARRIER_BYTES * sum(event.slots for event in kernel.events)
