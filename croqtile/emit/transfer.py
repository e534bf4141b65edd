"""Bulk copies between the tensors and shared memory, and calls of the program's own device functions."""

from __future__ import annotations

from croqtile import fold, ir, rewrite
from croqtile.emit import stress
from croqtile.emit.context import Context, Runs
from croqtile.emit.copies import Copy, plan_copy
from croqtile.emit.errors import refuse
from croqtile.emit.events import slot_address
from croqtile.emit.planning import POINTER_TYPES, find_map
from croqtile.emit.shared import tile

MOST_BYTES = (1 << 20) - 1  # that a phase of an mbarrier can wait for


def emit_closed_set(context: Context, copies: list[ir.CopyIn], trigger: ir.Trigger) -> None:
    """Copies by one thread that are directly followed by the trigger of their slot: the arrival announces their bytes
    together. It may come first, because the phase cannot complete before the bytes have landed."""
    planned = [plan_copy(copy, context.ranges) for copy in copies]
    _check_size(context, list(zip(copies, planned, strict=True)))
    barrier = slot_address(context, trigger.event, trigger.slot)
    stress.poison_before_copies(context, copies)
    announced = " + ".join(_bytes(context, copy, plan) for copy, plan in zip(copies, planned, strict=True))
    context.out.line(f"mbarrier_arrive_expect_bytes({barrier}, {announced});")
    for copy, plan in zip(copies, planned, strict=True):
        stress.delay(context)
        _emit_loads(context, copy, plan)


def emit_copy_in(context: Context, copy: ir.CopyIn) -> None:
    """A copy on its own: its bytes are added to what the slot's current phase waits for; its trigger comes later."""
    plan = plan_copy(copy, context.ranges)
    _check_size(context, [(copy, plan)])
    if context.runs is Runs.THREAD:
        stress.poison_before_copies(context, [copy])
        _announce(context, copy, plan)
        _emit_loads(context, copy, plan)
        return
    # All warps are done with the tile's old contents before the elected thread lets the copy engine overwrite them.
    if not context.meeting.together or context.meeting.stored:
        context.meet()
    with context.out.block(f"if ({_elected(context)})", note=f"tma.copy.async, line {copy.span.line}"):
        stress.poison_before_copies(context, [copy])
        _announce(context, copy, plan)
        _emit_loads(context, copy, plan)


def _check_size(context: Context, copies: list[tuple[ir.CopyIn, Copy]]) -> None:
    cluster = context.plan.kernel.cluster
    size = sum(plan.bytes * (cluster if copy.multicast else 1) for copy, plan in copies)
    if size > MOST_BYTES:
        refuse(copies[0][0].span, f"an event counts at most {MOST_BYTES} bytes for one setting, and this is {size}")


def _bytes(context: Context, copy: ir.CopyIn, plan: Copy) -> str:
    """What arrives in this CTA: of a multicast copy, the tiles of all CTAs of the cluster, which execute it alike."""
    cluster = context.plan.kernel.cluster
    return f"{cluster} * {plan.bytes}" if copy.multicast and cluster > 1 else str(plan.bytes)


def _announce(context: Context, copy: ir.CopyIn, plan: Copy) -> None:
    if id(copy) not in context.announced:
        barrier = slot_address(context, copy.event, copy.slot)
        context.out.line(f"mbarrier_expect_bytes({barrier}, {_bytes(context, copy, plan)});")


def announce_multicasts(context: Context, branch: ir.If) -> None:
    """Before a branch that not all CTAs of the cluster take: every CTA expects what those that take it will send."""
    rank, cluster = context.plan.kernel.cluster_rank, context.plan.kernel.cluster
    if rank is None or rank not in rewrite.symbols(branch.condition):
        return
    taken = [fold.evaluate(branch.condition, {rank: number}) for number in range(cluster)]
    for body, truth in ((branch.then, True), (branch.orelse, False)):
        for copy in rewrite.statements(body):
            if not (isinstance(copy, ir.CopyIn) and copy.multicast):
                continue
            if None in taken or copy not in body:
                refuse(copy.span, f"which CTAs send this tile must follow from {rank.name} alone, in one step")
            if context.runs is not Runs.THREAD:
                refuse(copy.span, "a multicast copy under a condition belongs in a role of one thread")
            senders = sum(bool(value) == truth for value in taken)
            barrier = slot_address(context, copy.event, copy.slot)
            size = plan_copy(copy, context.ranges).bytes
            if senders:
                times = f"{senders} * " if senders > 1 else ""
                context.out.line(f"mbarrier_expect_bytes({barrier}, {times}{size});")
            context.announced.add(id(copy))


def _elected(context: Context) -> str:
    """The thread that acts for all that execute the statement. It makes the arrivals too, so that the bytes it
    announces are never later than the arrival that ends their phase."""
    return "threadIdx.x == 0" if context.runs is Runs.BLOCK else f"{context.names.thread} == 0"


def _emit_loads(context: Context, copy: ir.CopyIn, plan: Copy) -> None:
    tensor_map = find_map(context.plan.maps, plan)
    assert tensor_map is not None, "make_plan has made a map for every copy"
    barrier = slot_address(context, copy.event, copy.slot)
    for piece in plan.pieces:
        address = context.shared_address(plan.tile.buffer, piece.offset)
        coordinates = [context.expression(coordinate) for coordinate in piece.coordinates]
        if copy.multicast and context.plan.kernel.cluster > 1:
            context.out.call(
                f"tma_load_multicast<{context.plan.kernel.cluster}>",
                [address, tensor_map.name, barrier, *coordinates],
            )
        else:
            context.out.call("tma_load", [address, tensor_map.name, barrier, *coordinates])


def emit_copies_out(context: Context, copies: list[ir.CopyOut], last: bool) -> None:
    """Shared → global, by one thread once all writers have met; then everyone waits until the copies are complete.
    ``last``: nothing follows that could touch the sources or the destinations; then it is enough that the sources have
    been read, without which the CTA must not end."""
    if context.runs is not Runs.THREAD and not (context.meeting.together and not context.meeting.stored):
        context.meet()
    if context.runs is Runs.THREAD:
        _emit_stores(context, copies, last)
        return
    with context.out.block(f"if ({_elected(context)})", note=f"tma.copy, line {copies[0].span.line}"):
        _emit_stores(context, copies, last)
    context.meeting.together = False
    if not last:
        context.meet()


def _emit_stores(context: Context, copies: list[ir.CopyOut], last: bool) -> None:
    for copy in copies:
        plan = plan_copy(copy, context.ranges)
        tensor_map = find_map(context.plan.maps, plan)
        assert tensor_map is not None, "make_plan has made a map for every copy"
        for piece in plan.pieces:
            address = context.shared_address(plan.tile.buffer, piece.offset)
            coordinates = [context.expression(coordinate) for coordinate in piece.coordinates]
            context.out.call("tma_store", [tensor_map.name, address, *coordinates])
    context.out.line("tma_store_wait();" if last else "tma_store_complete();")


def emit_call(context: Context, call: ir.Call) -> None:
    """A device function by all threads: it may read what others wrote, and write what they read."""
    context.meet()
    context.out.call(call.function, [_argument(context, argument) for argument in call.args])
    views = [argument for argument in call.args if isinstance(argument, ir.View)]
    in_tensors = any(isinstance(view.root, ir.Tensor) for view in views)
    context.out.line("fence_proxy_async_everywhere();" if in_tensors else "fence_proxy_async();")
    context.meet()


def _argument(context: Context, argument: ir.Expr | ir.View) -> str:
    if not isinstance(argument, ir.View):
        return context.expression(argument)
    if isinstance(argument.root, ir.SharedBuffer):
        shared = tile(argument)
        if shared.buffer.swizzle:
            refuse(argument.span, f"{shared.buffer.name} is swizzled; only row-major tiles can be passed to a function")
        address = context.shared_address(shared.buffer, shared.offset())
        return f"shared_pointer<{POINTER_TYPES[shared.buffer.elem]}>({address})"
    return _pointer(context, argument)


def _pointer(context: Context, view: ir.View) -> str:
    """Where a view of a tensor starts. Elements are counted in 64 bits: a tensor may have more than 2³¹ of them."""
    name, text = view.root.name, ""
    assert isinstance(view.root, ir.Tensor)
    for dim, extent in zip(view.dims, view.root.dims, strict=True):
        start: ir.Expr = fold.ZERO
        for level in dim.levels:
            start = fold.binary("+", start, fold.binary("*", level.index, level.step))
        if text:
            rest = "" if start == fold.ZERO else f" + {context.expression(start)}"
            text = f"({text} * {context.printer().operand(extent)}{rest})"
        elif start != fold.ZERO:
            text = f"static_cast<int64_t>({context.expression(start)})"
    return f"{name} + {text}" if text else name
