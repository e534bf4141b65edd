"""Decides what both sides of the launch need: tensor maps, kernel parameters, grid axes, shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from croqtile import ir, rewrite, smem
from croqtile.emit import tensormap
from croqtile.emit.copies import Copy, plan_copy
from croqtile.emit.errors import refuse
from croqtile.emit.plan import EmitPlan, GridAxis, MapPlan, Param
from croqtile.stress import Stress
from hb_analyzer.report import Placement

MAX_THREADS = 2048  # of an SM (compute capability 9.0)

POINTER_TYPES = {
    ir.Elem.F16: "__half",
    ir.Elem.BF16: "__nv_bfloat16",
    ir.Elem.F32: "float",
    ir.Elem.E4M3: "__nv_fp8_e4m3",
    ir.Elem.E5M2: "__nv_fp8_e5m2",
    ir.Elem.S32: "int",
    ir.Elem.U32: "unsigned int",
    ir.Elem.S8: "signed char",
    ir.Elem.U8: "unsigned char",
}


def make_plan(kernel: ir.Kernel, placement: Placement, stress: Stress | None = None) -> EmitPlan:
    """``kernel`` is lowered; ``placement`` has an offset for each of its buffers. Raises CompileError for what the
    hardware cannot do."""
    _check_launch_bounds(kernel)
    maps = _maps(kernel)
    barriers, static_events = _barriers(kernel, placement.size)
    return EmitPlan(
        kernel=kernel,
        offsets={buffer.name: placement.offsets[buffer.name] for buffer in kernel.buffers},
        placement_bytes=placement.size,
        dynamic_bytes=placement.size + smem.slack(kernel),
        barrier_offsets=barriers,
        static_events=static_events,
        maps=maps,
        params=_params(kernel, maps),
        grid=_grid(kernel),
        threads=128 * kernel.warpgroups,
        stress=stress,
    )


def _check_launch_bounds(kernel: ir.Kernel) -> None:
    threads, ctas = 128 * kernel.warpgroups, kernel.launch_bounds or 1
    if ctas * threads > MAX_THREADS:
        refuse(
            kernel.span,
            f"launch_bounds({ctas}) asks for {ctas} CTAs of {threads} threads on an SM, "
            f"which holds {MAX_THREADS} threads",
        )


def _grid(kernel: ir.Kernel) -> tuple[GridAxis, ...]:
    """The first index is blockIdx.x and varies fastest: CTAs that run together walk down the rows of the output and
    share the tiles of the right operand (measured on an H200, 1P1C f16, 4096³: 550 TFLOPS, 425 the other way)."""
    return tuple(GridAxis(symbol, axis) for symbol, axis in zip(kernel.grid, ("x", "y", "z"), strict=False))


# --------------------------------------------------------------------------------------------------------------
# Shared memory


def _barriers(kernel: ir.Kernel, placement_bytes: int) -> tuple[dict[str, int], tuple[ir.Event, ...]]:
    """Offsets behind the placement, and the events that live in static shared memory instead."""
    offsets: dict[str, int] = {}
    static: list[ir.Event] = []
    position = -(-placement_bytes // smem.BARRIER_BYTES) * smem.BARRIER_BYTES
    room = smem.barrier_room(kernel) - (position - placement_bytes)
    for event in kernel.events:
        size = smem.BARRIER_BYTES * event.slots
        if size <= room:
            offsets[event.name] = position
            position, room = position + size, room - size
        else:
            static.append(event)
    return offsets, tuple(static)


# --------------------------------------------------------------------------------------------------------------
# Tensor maps and parameters

Ranges = Mapping[ir.Symbol, tensormap.Range]


def _with_ranges(
    body: tuple[ir.Stmt, ...], warpgroup: ir.Symbol | None, ranges: Ranges
) -> Iterator[tuple[ir.Stmt, Ranges]]:
    for statement in body:
        yield statement, ranges
        if isinstance(statement, ir.ForEach):
            yield from _with_ranges(statement.body, warpgroup, ranges)
        elif isinstance(statement, ir.If):
            yield from _with_ranges(statement.then + statement.orelse, warpgroup, ranges)
        elif isinstance(statement, ir.OnlyWarpgroups):
            yield from _with_ranges(statement.body, warpgroup, role_ranges(warpgroup, statement.instances))
        elif isinstance(statement, ir.Roles):
            yield from _with_ranges(statement.prologue, warpgroup, ranges)
            for role in statement.roles:
                yield from _with_ranges(role.body, warpgroup, role_ranges(warpgroup, role.instances))


def role_ranges(warpgroup: ir.Symbol | None, instances: tuple[int, ...]) -> Ranges:
    """What a role knows about its warpgroup index."""
    return {} if warpgroup is None else {warpgroup: (min(instances), max(instances))}


def _maps(kernel: ir.Kernel) -> tuple[MapPlan, ...]:
    """One map per way in which a tensor is seen, in order of first use."""
    maps: list[MapPlan] = []
    taken = _names(kernel)
    for statement, ranges in _with_ranges(kernel.body, kernel.warpgroup, {}):
        if not isinstance(statement, (ir.CopyIn, ir.CopyOut)):
            continue
        copy = plan_copy(statement, ranges)
        writes = isinstance(statement, ir.CopyOut)
        found = find_map(maps, copy)
        if found is None:
            same_tensor = sum(1 for known in maps if known.tensor is copy.tensor)
            name = f"{copy.tensor.name}_map" + (f"_{same_tensor + 1}" if same_tensor else "")
            name += "_" * (name in taken)
            maps.append(MapPlan(name, copy.tensor, copy.dims, copy.tile.buffer.swizzle, writes, copy.whole))
        elif writes and not found.writes:
            maps[maps.index(found)] = replace(found, writes=True)
    return tuple(maps)


def _names(kernel: ir.Kernel) -> set[str]:
    """The names that the program has chosen."""
    names = {node.cname for node in rewrite.nodes(kernel) if isinstance(node, (ir.Symbol, ir.Fragment))}
    names.update(tensor.name for tensor in kernel.tensors)
    names.update(buffer.name for buffer in kernel.buffers)
    return names | {event.name for event in kernel.events}


def find_map(maps: list[MapPlan] | tuple[MapPlan, ...], copy: Copy) -> MapPlan | None:
    """The map among ``maps`` that ``copy`` can use."""
    for known in maps:
        if known.tensor is copy.tensor and known.dims == copy.dims and known.swizzle == copy.tile.buffer.swizzle:
            return known
    return None


def _params(kernel: ir.Kernel, maps: tuple[MapPlan, ...]) -> tuple[Param, ...]:
    """Maps first (they need an alignment of 64 bytes), then pointers, dimensions, captured scalars."""
    params = [Param(plan.name, "const __grid_constant__ CUtensorMap", plan) for plan in maps]
    written, read = _addressed_tensors(kernel)
    for tensor in kernel.tensors:
        if tensor in written or tensor in read:
            constant = "" if tensor in written else "const "
            params.append(Param(tensor.name, f"{constant}{POINTER_TYPES[tensor.elem]}*", tensor))
    params += [Param(symbol.cname, "int", symbol) for symbol in kernel.dims]
    params += [Param(captured.symbol.cname, captured.symbol.ctype, captured) for captured in kernel.captured]
    return tuple(params)


def _addressed_tensors(kernel: ir.Kernel) -> tuple[set[ir.Tensor], set[ir.Tensor]]:
    """Tensors that the kernel reaches through pointers: handed to functions (which may write), and read by elements."""
    written: set[ir.Tensor] = set()
    read: set[ir.Tensor] = set()
    for node in rewrite.nodes(kernel.body):
        if isinstance(node, ir.Call):
            views = (argument for argument in node.args if isinstance(argument, ir.View))
            written.update(view.root for view in views if isinstance(view.root, ir.Tensor))
        elif isinstance(node, ir.TensorElement):
            read.add(node.tensor)
    return written, read
