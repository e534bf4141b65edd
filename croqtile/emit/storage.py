"""The shared memory of a kernel: where every buffer and every mbarrier is, and how the mbarriers come to life."""

from __future__ import annotations

from croqtile import ir, smem
from croqtile.emit.context import Context


def emit_storage(context: Context) -> None:
    """The addresses of buffers and mbarriers. Where the slack allows it, the base is rounded up to the alignment of the
    placement; elsewhere its declaration aligns it."""
    plan, names, out = context.plan, context.names, context.out
    alignment, declared = smem.alignment(plan.kernel), smem.declared_alignment(plan.kernel)
    # A name of its own, because all external declarations of one name must have the same alignment.
    dynamic = f"{plan.kernel.name}_memory_"
    out.line(f"extern __shared__ __align__({declared}) uint8_t {dynamic}[];")
    if plan.static_events:
        out.line(f"__shared__ uint64_t barriers_[{sum(event.slots for event in plan.static_events)}];")
    if declared < alignment:
        out.line(f"const uint32_t memory_ = align_up(shared_address({dynamic}), {alignment});")
    else:
        out.line(f"const uint32_t memory_ = shared_address({dynamic});")
        out.line(f"if (memory_ % {alignment} != 0) __trap();  // the tiles rely on it")
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
    with out.block("if (threadIdx.x == 0)"):
        for tensor_map in plan.maps:
            out.line(f"prefetch_map({tensor_map.name});")
        for event in plan.kernel.events:
            name = context.names.events[event.name]
            count = max(event.arrivals, 1)  # an event that nobody triggers is never set; 0 is no legal count
            if event.slots == 1:
                out.line(f"mbarrier_init({name}, {count});")
            else:
                out.line(f"for (int s_ = 0; s_ < {event.slots}; ++s_) mbarrier_init({name} + 8 * s_, {count});")
        if plan.kernel.events:
            out.line("mbarrier_init_fence();")
    if plan.kernel.cluster > 1:
        out.line("cluster_arrive();")
        out.line("cluster_wait();")
    else:
        out.line("__syncthreads();")
