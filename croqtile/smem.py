"""Shared memory of one block on SM90: what a launch may ask for, and what a kernel asks for beside its buffers."""

from __future__ import annotations

from croqtile import ir, rewrite

# Bytes of shared memory that one block may use on SM90 (227 KiB, with the opt-in attribute).
BLOCK_LIMIT = 232448

# Kernels that load operands with swizzle 128 have their mbarriers in static shared memory and round the base of dynamic
# memory up to 1024 bytes in the kernel; the others keep the mbarriers behind the placement, as far as there is room.
SLACK_SWIZZLED = 1024
SLACK = 128

BARRIER_BYTES = 8  # one mbarrier
COPY_ALIGNMENT = 128  # of a shared tile that the copy engine fills


def slack(kernel: ir.Kernel) -> int:
    """Bytes that the launch requests beyond the placement."""
    return SLACK_SWIZZLED if _loads_swizzled(kernel) else SLACK


def barrier_room(kernel: ir.Kernel) -> int:
    """Bytes behind the placement that mbarriers may use. None where aligning the base may take the whole slack. (That
    also keeps the 4-stage GEMM without overlap at one block per SM: twice its 115712 bytes alone fill an SM exactly.)
    """
    return 0 if _loads_swizzled(kernel) else SLACK


def static_bytes(kernel: ir.Kernel) -> int:
    """Static shared memory of the kernel: the mbarriers of events that find no room behind the placement. The toolchain
    pads it to the alignment that is declared for dynamic memory, which follows it."""
    room, static = barrier_room(kernel), 0
    for event in kernel.events:
        size = BARRIER_BYTES * event.slots
        if size <= room:
            room -= size
        else:
            static += size
    unit = declared_alignment(kernel)
    return -(-static // unit) * unit


def alignment(kernel: ir.Kernel) -> int:
    """Bytes to which the base of the placement must be aligned."""
    return max((buffer.align for buffer in kernel.buffers), default=COPY_ALIGNMENT)


def declared_alignment(kernel: ir.Kernel) -> int:
    """Bytes to which the declaration of dynamic memory aligns it."""
    return COPY_ALIGNMENT if _loads_swizzled(kernel) else alignment(kernel)


def _loads_swizzled(kernel: ir.Kernel) -> bool:
    return any(
        isinstance(operand, ir.SharedOperand) and operand.swizzle == 128
        for statement in rewrite.statements(kernel.body)
        if isinstance(statement, ir.Mma)
        for operand in (statement.a, statement.b)
    )
