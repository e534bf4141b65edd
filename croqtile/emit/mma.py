"""Matrix instructions: descriptors, the steps along K, groups, and storing the result."""

from __future__ import annotations

import contextlib
import math

from croqtile import fold, ir
from croqtile.emit import fragments, stress
from croqtile.emit.context import Context, Runs
from croqtile.emit.errors import refuse
from croqtile.emit.shared import Tile, known_divisor, tile
from croqtile.emit.wgmma import Instruction

_STORE = {
    ir.Elem.F16: "store_f16",
    ir.Elem.BF16: "store_bf16",
    ir.Elem.F32: "store_f32",
    ir.Elem.E4M3: "store_e4m3",
    ir.Elem.E5M2: "store_e5m2",
}
# What a store writes at once: a row of 8 elements of 16 bits (stmatrix), else the pair of elements that a thread holds.
_STORE_BYTES = {ir.Elem.F16: 16, ir.Elem.BF16: 16, ir.Elem.F32: 8, ir.Elem.E4M3: 2, ir.Elem.E5M2: 2}
_STEP, _HALF = "step_", "half_"  # loop variables: along K, over halves of 64 rows


def emit_mma(context: Context, mma: ir.Mma) -> None:
    """All instructions of one ``mma.row.*``: 64 rows × n × 32 bytes of K each. They run asynchronously."""
    instruction = _instruction(mma)
    context.instructions.add(instruction)
    _show_stored_tiles(context, mma)
    steps = mma.k // instruction.k
    halves = mma.m // 64
    out = context.out
    with out.block("", note=f"mma.row.{mma.b_layout} {mma.accumulator.name}, line {mma.span.line}"):
        a_operand = _a_operand(context, mma, instruction, steps, halves)
        b_operand = _b_operand(context, mma, instruction, steps)
        out.line("wgmma_fence();")
        with contextlib.ExitStack() as loops:
            accumulator = mma.accumulator.cname
            if halves > 1:
                accumulator += f"[{_HALF}]"
                out.unroll()
                loops.enter_context(out.block(f"for (int {_HALF} = 0; {_HALF} < {halves}; ++{_HALF})"))
            if steps > 1:
                out.unroll()
                out.line(f"for (int {_STEP} = 0; {_STEP} < {steps}; ++{_STEP})")
                loops.enter_context(out.indented())
            starts = id(mma) in context.starting
            accumulate = ("0" if steps == 1 else f"{_STEP} > 0") if starts else "1"
            out.call(instruction.name, [accumulator, *a_operand, b_operand, accumulate])
    context.flight.issued.append(mma.accumulator)
    context.meeting.together = False


def _instruction(mma: ir.Mma) -> Instruction:
    b = mma.b.view.root.elem
    in_registers = isinstance(mma.a, ir.FragOperand)
    a = mma.a.fragment.elem if isinstance(mma.a, ir.FragOperand) else mma.a.view.root.elem
    accumulator = mma.accumulator.elem
    transposed = mma.b_layout == "col"
    eight_bit = (ir.Elem.E4M3, ir.Elem.E5M2)
    if not ((a is b and a in (ir.Elem.F16, ir.Elem.BF16)) or (a in eight_bit and b in eight_bit)):
        refuse(mma.span, f"the matrix unit cannot multiply {a.spelling} by {b.spelling}")
    if accumulator is not ir.Elem.F32 and not (accumulator is ir.Elem.F16 and a is not ir.Elem.BF16):
        refuse(mma.span, f"the matrix unit cannot accumulate {a.spelling} products in {accumulator.spelling}")
    if transposed and a.bytes == 1:
        refuse(mma.span, "operands of 8-bit elements are stored N × K: mma.row.row")
    if in_registers and a.bytes == 1:
        refuse(mma.span, "a fragment of 8-bit elements cannot be an operand")
    instruction = Instruction(mma.n, a, b, accumulator, in_registers, transposed)
    if mma.n % 8 or not 8 <= mma.n <= 256:
        refuse(mma.span, f"one matrix instruction has a multiple of 8 columns up to 256, not {mma.n}")
    if mma.m % 64 or mma.k % instruction.k:
        refuse(mma.span, f"{mma.m} × {mma.k} is no multiple of the instruction's 64 × {instruction.k}")
    return instruction


def _show_stored_tiles(context: Context, mma: ir.Mma) -> None:
    """What the warpgroup's threads wrote, all its warps must see before any of them reads it."""
    for operand in (mma.a, mma.b):
        if isinstance(operand, ir.SharedOperand) and operand.view.root.name in context.meeting.stored:
            context.meet()
            return


# --------------------------------------------------------------------------------------------------------------
# Operands


def _a_operand(context: Context, mma: ir.Mma, instruction: Instruction, steps: int, halves: int) -> list[str]:
    if isinstance(mma.a, ir.FragOperand):
        if fragments.halves(mma.a.fragment) != halves or mma.a.fragment.cols != mma.k:
            refuse(mma.a.span, f"{mma.a.fragment.name} is no operand of {mma.m} × {mma.k} elements")
        name = mma.a.fragment.cname + (f"[{_HALF}]" if halves > 1 else "")
        base = f"4 * {_STEP}" if steps > 1 else ""
        return [f"{name}[{' + '.join(filter(None, (base, str(r) if r or not base else '')))}]" for r in range(4)]
    shared = _operand_tile(mma.a)
    text = _k_major(context, "a_", shared, instruction, steps)
    if halves > 1:
        text = text.replace("a_", f"a_ + {_HALF} * {64 * shared.pitch // 16}", 1)
    return [text]


def _b_operand(context: Context, mma: ir.Mma, instruction: Instruction, steps: int) -> str:
    shared = _operand_tile(mma.b)
    if not instruction.b_transposed:
        return _k_major(context, "b_", shared, instruction, steps)
    start = _last_start_in_panel(shared)
    if start and start + mma.n > shared.panel_columns:
        refuse(mma.b.span, f"{mma.n} columns that start inside a panel of {shared.panel_columns} cross into the next")
    address = context.shared_address(shared.buffer, shared.offset())
    context.out.wrapped(f"const uint64_t b_ = mn_major_descriptor<{shared.pitch}, {shared.panel_bytes}>({address});")
    return "b_" if steps == 1 else f"b_ + {instruction.k * shared.pitch // 16} * {_STEP}"


def _operand_tile(operand: ir.SharedOperand) -> Tile:
    shared = tile(operand.view)
    if not shared.buffer.swizzle:
        refuse(
            operand.span,
            f"the matrix unit reads tiles of 32, 64 or 128 bytes swizzle; {shared.buffer.name} is stored row by row",
        )
    if known_divisor(shared.row) % 8:
        refuse(operand.span, f"a matrix operand starts at a multiple of 8 rows of {shared.buffer.name}")
    return shared


def _k_major(context: Context, name: str, shared: Tile, instruction: Instruction, steps: int) -> str:
    """Declares the descriptor ``name`` and gives the expression for step ``step_`` (units of 16 bytes)."""
    address = context.shared_address(shared.buffer, shared.offset())
    context.out.wrapped(f"const uint64_t {name} = k_major_descriptor<{shared.pitch}>({address});")
    start = _last_start_in_panel(shared)
    if start + steps * instruction.k <= shared.panel_columns:
        return name if steps == 1 else f"{name} + 2 * {_STEP}"
    if start:
        refuse(shared.span, f"this operand starts inside a panel of {shared.panel_columns} columns and leaves it")
    per_panel = shared.panel_columns // instruction.k
    if per_panel == 1:
        return f"{name} + {shared.panel_bytes // 16} * {_STEP}"
    return f"{name} + {_STEP} / {per_panel} * {shared.panel_bytes // 16} + {_STEP} % {per_panel} * 2"


def _last_start_in_panel(shared: Tile) -> int:
    """The greatest column of a panel at which the tile may start."""
    start = fold.integer(shared.column)
    if start is not None:
        return start % shared.panel_columns
    return shared.panel_columns - math.gcd(known_divisor(shared.column), shared.panel_columns)


# --------------------------------------------------------------------------------------------------------------
# Groups


def emit_commit(context: Context) -> None:
    context.out.line("wgmma_commit();")
    context.flight.commit()


def emit_wait(context: Context, wait: ir.MmaWait) -> None:
    """After the wait, results may be read: tell the compiler so, lest it moves a read up past the wait. A warp waits
    for its own part of the instructions only."""
    context.meeting.together = False
    context.out.line(f"wgmma_wait<{wait.pending}>();")
    for fragment in context.flight.wait(wait.pending):
        for array in fragments.each_half(fragment):
            context.out.line(f"registers_complete({array});")


# --------------------------------------------------------------------------------------------------------------
# Results


def emit_store(context: Context, store: ir.MmaStore) -> None:
    """``mma.store``: no warp writes before all have met, since the tile may lie over what others still read; afterwards
    the writes are ordered before accesses by the copy engine and the matrix units."""
    fragment = store.fragment
    shared = tile(store.target)
    if (shared.rows, shared.columns) != (fragment.rows, fragment.cols):
        refuse(
            store.span,
            f"{fragment.name} is {fragment.rows} × {fragment.cols} elements, the tile {shared.rows} × {shared.columns}",
        )
    element = shared.buffer.elem
    if element not in _STORE:
        refuse(store.span, f"a fragment of {fragment.elem.spelling} cannot be stored as {element.spelling}")
    if shared.pitch % 16:
        refuse(
            store.span, f"rows of {shared.pitch} bytes are no multiple of the 16 bytes that mma.store writes at once"
        )
    if known_divisor(shared.column) * shared.elem_bytes % _STORE_BYTES[element]:
        refuse(
            store.span,
            f"mma.store of {element.spelling} starts at a multiple of {_STORE_BYTES[element]} bytes of a row",
        )
    if context.runs is not Runs.WARPGROUP:
        refuse(store.span, "mma.store needs all threads of a warpgroup")
    if not context.meeting.may_store(shared):
        context.meet()
    stress.poison_before_store(context, shared)
    layout = f"TileLayout<{shared.buffer.swizzle}, {shared.pitch}, {shared.panel_bytes}>"
    address = context.shared_address(shared.buffer, shared.start())
    column = context.expression(fold.binary("*", shared.column, ir.IntLit(shared.elem_bytes)))
    for half, array in enumerate(fragments.each_half(fragment)):
        row = context.expression(fold.binary("+", shared.row, ir.IntLit(64 * half)))
        with fragments.as_stored(context, fragment, array, element) as registers:
            context.out.call(f"{_STORE[element]}<{layout}>", [address, row, column, registers])
    context.out.line("fence_proxy_async();")
    context.meeting.store(shared)
