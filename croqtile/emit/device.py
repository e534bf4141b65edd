"""The device kernel: one ``__global__`` function per tile function."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from croqtile import ir, rewrite
from croqtile.emit import events, stress
from croqtile.emit.context import Context
from croqtile.emit.errors import refuse
from croqtile.emit.names import kernel_names
from croqtile.emit.plan import EmitPlan
from croqtile.emit.roles import emit_roles, register_budget
from croqtile.emit.statements import Statements
from croqtile.emit.storage import emit_initialisation, emit_storage
from croqtile.emit.wgmma import Instruction, wrapper
from croqtile.emit.writer import Writer

MOST_CTAS = 8  # of a cluster that every GPU of this architecture can launch


def emit_device(plan: EmitPlan) -> tuple[str, frozenset[Instruction]]:
    """The kernel's text, and the matrix instructions whose wrappers (:func:`emit_wrappers`) must stand before it."""
    instructions: set[Instruction] = set()
    context = Context(plan, kernel_names(plan.kernel), Writer(), instructions)
    _head(context)
    with context.out.body():
        _prologue(context)
        _body(context)
    return context.out.text(), frozenset(instructions)


def emit_wrappers(instructions: Iterable[Instruction]) -> str:
    """The wrappers of all kernels of a file, each once."""
    ordered = sorted(set(instructions), key=lambda instruction: instruction.name)
    return "\n".join(wrapper(instruction) for instruction in ordered)


def _head(context: Context) -> None:
    plan, out = context.plan, context.out
    kernel = plan.kernel
    out.comment(f"`{kernel.name}` ({PurePath(kernel.span.file).name}, line {kernel.span.line})")
    out.comment(f"{plan.placement_bytes} bytes of shared memory for buffers, {plan.dynamic_bytes} requested")
    bounds = str(plan.threads)
    minimum = kernel.launch_bounds or (1 if register_budget(kernel) else None)
    if minimum is not None:
        bounds += f", {minimum}"
    if kernel.cluster > MOST_CTAS:
        refuse(kernel.span, f"a cluster has at most {MOST_CTAS} CTAs, not {kernel.cluster}")
    cluster = f" __cluster_dims__({kernel.cluster}, 1, 1)" if kernel.cluster > 1 else ""
    parameters = [f"{param.ctype} {param.name}" for param in plan.params]
    out.call(f"__global__ void{cluster} __launch_bounds__({bounds}) {plan.function}", parameters, tail=" {")


def _prologue(context: Context) -> None:
    plan, out, names = context.plan, context.out, context.names
    out.line("using namespace choreo::device;")
    emit_storage(context)
    out.line(f"const int {names.warpgroup} = warp_uniform(threadIdx.x / 128);")
    out.line(f"[[maybe_unused]] const int {names.thread} = threadIdx.x % 128;")
    for axis in plan.grid:
        out.line(f"{context.unused(axis.symbol)}const int {axis.symbol.cname} = blockIdx.{axis.axis};")
    rank = plan.kernel.cluster_rank
    if rank is not None:
        out.line(f"{context.unused(rank)}const int {rank.cname} = cluster_rank();")
    out.line()
    stress.emit_start(context)
    emit_initialisation(context)
    out.line()


def _body(context: Context) -> None:
    kernel = context.plan.kernel
    blocks = [statement for statement in rewrite.statements(kernel.body) if isinstance(statement, ir.Roles)]
    once = len(blocks) == 1 and blocks[0] in kernel.body
    counted = events.waited_events(kernel.body)
    if not once:
        events.check_counts(rewrite.roles(kernel))
        for block in blocks:
            for role in block.roles:
                counted += events.waited_events(role.body)
    events.declare_phases(context, list(dict.fromkeys(counted)))
    statements = Statements(lambda inner, roles, last: emit_roles(inner, roles, last, statements, once))
    clustered = kernel.cluster > 1
    statements.emit(context, kernel.body, not clustered)
    if clustered:  # no CTA leaves while another may still signal or fill its memory
        context.out.line("cluster_arrive();")
        context.out.line("cluster_wait();")
