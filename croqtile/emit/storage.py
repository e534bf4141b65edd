"""The shared memory of a kernel: where every buffer and every mbarrier is, and how the mbarriers come to life."""

from __future__ import annotations

from croqtile import ir, smem
from croqtile.emit.context import Context
from croqtile.emit.events import arrivals

DECLARED_ALIGNMENT = 1024  # the same in all kernels of a file, whose declarations are one array to the linker


def emit_storage(context: Context) -> None:
    """The addresses of buffers and mbarriers. Where the slack allows it, the base is rounded up to the alignment of the
    placement; elsewhere it is aligned as it is, behind nothing or behind padded static memory."""
    plan, names, out = context.plan, context.names, context.out
    alignment = smem.alignment(plan.kernel)
    out.line(f"extern __shared__ __align__({DECLARED_ALIGNMENT}) uint8_t dynamic_memory_[];")
    static_bytes = smem.static_bytes(plan.kernel)
    if static_bytes:
        out.line(f"__shared__ __align__({alignment}) uint64_t barriers_[{static_bytes // smem.BARRIER_BYTES}];")
    if smem.slack(plan.kernel) >= alignment and smem.barrier_room(plan.kernel) == 0:
        out.line(f"const uint32_t memory_ = align_up(shared_address(dynamic_memory_), {alignment});")
    else:
        out.line("const uint32_t memory_ = shared_address(dynamic_memory_);")
        out.line(f"if (memory_ % {alignment} != 0) __trap();  // swizzled tiles and their descriptors rely on it")
    for buffer in plan.kernel.buffers:
        offset = plan.offsets[buffer.name]
        place = f"memory_ + {offset}" if offset else "memory_"
        out.line(
            f"const uint32_t {names.buffers[buffer.name]} = {place};  // {_description(buffer)}, up to "
            f"{offset + buffer.bytes}"
        )
    static_position = 0
    for event in plan.kernel.events:
        if event in plan.static_events:
            place = "shared_address(barriers_)" + (f" + {static_position}" if static_position else "")
            static_position += smem.BARRIER_BYTES * event.slots
        else:
            place = f"memory_ + {plan.barrier_offsets[event.name]}"
        what = "mbarrier" if event.slots == 1 else f"{event.slots} mbarriers"
        out.line(f"const uint32_t {names.events[event.name]} = {place};  // {what}")


def _description(buffer: ir.SharedBuffer) -> str:
    shape = " × ".join(str(extent) for extent in buffer.shape)
    count = f"{buffer.count} tiles of " if buffer.is_array else ""
    layout = f"swizzle {buffer.swizzle}" if buffer.swizzle else "row-major"
    return f"{count}{shape} {buffer.elem.spelling}, {layout}"


def emit_initialisation(context: Context) -> None:
    """By one thread, before any role starts."""
    plan, out = context.plan, context.out
    used = [(event, arrivals(plan.kernel, event)) for event in plan.kernel.events]
    with out.block("if (threadIdx.x == 0)"):
        for tensor_map in plan.maps:
            out.line(f"prefetch_map({tensor_map.name});")
        for event, count in used:
            name = context.names.events[event.name]
            count = max(count, 1)  # an event that nobody triggers is never set; 0 is no legal count
            if event.slots == 1:
                out.line(f"mbarrier_init({name}, {count});")
            else:
                out.line(f"for (int s_ = 0; s_ < {event.slots}; ++s_) mbarrier_init({name} + 8 * s_, {count});")
        if used:
            out.line("mbarrier_init_fence();")
    if plan.kernel.cluster > 1:
        out.line("cluster_arrive();")
        out.line("cluster_wait();")
    else:
        out.line("__syncthreads();")
