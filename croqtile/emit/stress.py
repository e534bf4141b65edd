"""What a stress build has beside the kernel: delays, NaN in all of shared memory, NaN over what is dead.

**What is dead, and who may poison it.** Let x be a write into buffer B, where it stands in its role. For every buffer A
that the analysis lets overlap B, all accesses of A are over when x begins or begin when x has ended, and no value of A
from before x is read after it; that holds wherever A and B lie. So x may write to all of A as well, and nobody can
tell: just before x, its role fills A with NaN, except for bytes

* of buffers that must not overlap B: they may hold values;
* of B itself, apart from those that x is about to write. These are dead by the analysis of races inside B: a copy
  into a slot begins after all reads of what the slot held.

The poison is part of x for all orderings: it comes after the meeting of the warps that precedes x (and they meet again
before x writes), and the proxy fence that follows x, or for a copy stands before it, orders it before what the copy
engine and the matrix units do later. Several writers of B may poison a byte at once; all write the same value.
With clusters, nothing is poisoned: the analysis does not decide them.
"""

from __future__ import annotations

from collections.abc import Iterable

from croqtile import ir
from croqtile.emit.context import Context, Runs
from croqtile.emit.shared import Tile, tile

UNIT = 16  # bytes written at once

_DELAYED_BEFORE = (
    ir.Wait,
    ir.Trigger,
    ir.CopyIn,
    ir.CopyOut,
    ir.Mma,
    ir.MmaWait,
    ir.MmaStore,
    ir.SyncWarpgroups,
    ir.SyncCta,
    ir.Call,
)
_DELAYED_AFTER = (ir.Wait, ir.Trigger, ir.CopyIn, ir.CopyOut, ir.MmaCommit, ir.MmaStore, ir.SyncWarpgroups, ir.Call)


def emit_start(context: Context) -> None:
    """At the start of the kernel: the random numbers of this warp, and NaN in all of dynamic shared memory, by all
    threads, before the mbarriers come to life."""
    plan, out = context.plan, context.out
    if plan.stress is None:
        return
    if plan.stress.warning:
        out.comment(f"WARNING: deliberately wrong, for tests only: {plan.stress.warning}.")
    out.line(f"choreo::stress::Delays delay_({context.names.warpgroup});")
    memory = f"shared_address({plan.kernel.name}_memory_)"
    out.line(f"choreo::stress::poison({memory}, {plan.dynamic_bytes // UNIT * UNIT}, threadIdx.x, {plan.threads});")
    out.line("fence_proxy_async();")
    out.line("__syncthreads();")
    out.line()


def delay(context: Context) -> None:
    """A delay, unless one stands just before."""
    out = context.out
    if context.plan.stress is None or (out.lines and out.lines[-1].lstrip().startswith("delay_(")):
        return
    out.line(f"delay_({next(context.delays)});")


def delay_before(context: Context, statement: ir.Stmt) -> None:
    if isinstance(statement, _DELAYED_BEFORE):
        delay(context)


def delay_after(context: Context, statement: ir.Stmt) -> None:
    if isinstance(statement, _DELAYED_AFTER):
        delay(context)


def leaves_out(context: Context, wait: ir.Wait) -> bool:
    """In a deliberately wrong build: is this wait left out?"""
    stress = context.plan.stress
    if stress is None or wait.event.name not in stress.unwaited:
        return False
    context.out.comment(f"WARNING: the wait for {wait.event.name} is left out")
    return True


def poison_before_copies(context: Context, copies: Iterable[ir.CopyIn]) -> None:
    """By the one thread that issues the copies: a sample of the bytes, since it has to write them alone."""
    places = _places(context, (tile(copy.target) for copy in copies))
    if not places:
        return
    with context.out.block("if (choreo::stress::thread_poisons())"):
        for address, size in places:
            context.out.line(f"choreo::stress::poison_sample({address}, {size}, delay_.state);")
        context.out.line("fence_proxy_async();")
    delay(context)


def poison_before_store(context: Context, target: Tile) -> None:
    """By the warpgroup that stores, whose warps have met; they meet again before one of them stores."""
    places = _places(context, (target,))
    if not places or context.runs is not Runs.WARPGROUP:
        return
    with context.out.block("if (choreo::stress::warpgroup_poisons())"):
        for address, size in places:
            context.out.line(f"choreo::stress::poison({address}, {size}, {context.names.thread}, 128);")
        context.out.line(f"named_barrier_sync({context.names.meeting()}, 128);")
    delay(context)


def _places(context: Context, targets: Iterable[Tile]) -> list[tuple[str, int]]:
    """(address, bytes) of what is dead when the targets are about to be written, each once."""
    stress = context.plan.stress
    if stress is None or context.plan.kernel.cluster > 1:
        return []
    found: dict[tuple[str, int], None] = {}
    for target in targets:
        for low, high in dead_ranges(context, target.buffer.name):
            found[f"memory_ + {low}" if low else "memory_", high - low] = None
        if target.buffer.name in stress.slots:
            for offset, size in _rows(target):
                found[context.shared_address(target.buffer, offset), size] = None
    return list(found)


def dead_ranges(context: Context, written: str) -> list[tuple[int, int]]:
    """The bytes (first, one past the last) of other buffers that are dead at every write into ``written``."""
    plan = context.plan
    assert plan.stress is not None
    places = {b.name: (plan.offsets[b.name], plan.offsets[b.name] + b.bytes) for b in plan.kernel.buffers}
    dead = {name for name in places if frozenset((name, written)) in plan.stress.accepted}
    ranges = sorted(places[name] for name in dead)
    for name in places.keys() - dead:
        ranges = [piece for whole in ranges for piece in _without(whole, places[name])]
    merged: list[tuple[int, int]] = []
    for low, high in ranges:
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    whole_units = [(-(-low // UNIT) * UNIT, high // UNIT * UNIT) for low, high in merged]
    return [(low, high) for low, high in whole_units if low < high]


def _without(whole: tuple[int, int], hole: tuple[int, int]) -> list[tuple[int, int]]:
    pieces = (whole[0], min(whole[1], hole[0])), (max(whole[0], hole[1]), whole[1])
    return [(low, high) for low, high in pieces if low < high]


def _rows(target: Tile) -> list[tuple[ir.Expr, int]]:
    """(offset in the buffer, bytes) of the rows of a tile, one for each panel; none if the tile is a part of a panel's
    columns, so that other bytes stand between its rows, or starts at a column that is not known."""
    width = target.panel_columns
    if not (isinstance(target.column, ir.IntLit) and target.column.value % width == 0 and target.columns % width == 0):
        return []
    if target.pitch % UNIT:
        return []
    return [(target.offset(0, column), target.rows * target.pitch) for column in range(0, target.columns, width)]
