"""Events: their mbarriers, arrival counts, waits and triggers.

A warpgroup arrives once per warp, so that the setting of an event stands for all its warps; a role of one thread
arrives once. The count that an mbarrier is initialised with is the sum over the instances that trigger the event.
"""

from __future__ import annotations

from collections.abc import Iterator

from croqtile import ir
from croqtile.emit.context import Context, Runs
from croqtile.emit.errors import refuse

WARPS = 4
MAX_SLOTS = 32  # bits of the parity variable

# Statements that one thread can execute for its whole warpgroup.
_ONE_THREAD_IS_ENOUGH = (ir.Let, ir.Assign, ir.ForEach, ir.If, ir.Wait, ir.Trigger, ir.CopyIn)


def executor(role: ir.Role) -> Runs:
    """Who executes a role. A warpgroup role that only waits, copies and triggers (a producer) is run by one thread:
    nobody can tell the difference, and no thread has to meet another."""
    if role.thread is not None or _one_thread_is_enough(role.body):
        return Runs.THREAD
    return Runs.WARPGROUP


def _one_thread_is_enough(body: tuple[ir.Stmt, ...]) -> bool:
    for statement in body:
        if not isinstance(statement, _ONE_THREAD_IS_ENOUGH):
            return False
        if isinstance(statement, ir.ForEach) and not _one_thread_is_enough(statement.body):
            return False
        if isinstance(statement, ir.If) and not _one_thread_is_enough(statement.then + statement.orelse):
            return False
    return True


def arrivals(kernel: ir.Kernel, event: ir.Event) -> int:
    """Arrivals that complete a phase of the event's mbarriers."""
    weights: dict[tuple[int, int | None], int] = {}
    from_block = 0
    clusterwide = False
    for trigger, runs, role, instances in _triggers(kernel.body, None):
        if trigger.event is not event:
            continue
        clusterwide = clusterwide or trigger.cluster
        if role is None:
            from_block = 1
        else:
            weight = 1 if runs is Runs.THREAD else WARPS
            weights.update({(instance, role.thread): weight for instance in instances})
    return (sum(weights.values()) + from_block) * (kernel.cluster if clusterwide else 1)


Found = tuple[ir.Trigger, Runs, "ir.Role | None", tuple[int, ...]]


def _triggers(body: tuple[ir.Stmt, ...], role: ir.Role | None, instances: tuple[int, ...] = ()) -> Iterator[Found]:
    for statement in body:
        match statement:
            case ir.Trigger():
                yield statement, executor(role) if role else Runs.BLOCK, role, instances
            case ir.ForEach():
                yield from _triggers(statement.body, role, instances)
            case ir.If():
                yield from _triggers(statement.then + statement.orelse, role, instances)
            case ir.OnlyWarpgroups():
                yield from _triggers(statement.body, role, statement.instances)
            case ir.Roles():
                for inner in statement.roles:
                    yield from _triggers(inner.body, inner, inner.instances)
            case _:
                pass


def waited_events(body: tuple[ir.Stmt, ...]) -> list[ir.Event]:
    """The events that these statements wait for, in order of first wait, without those of nested roles."""
    found: dict[ir.Event, None] = {}
    for statement in body:
        if isinstance(statement, ir.Wait):
            found[statement.event] = None
        for inner in _bodies(statement):
            found.update(dict.fromkeys(waited_events(inner)))
    return list(found)


def _bodies(statement: ir.Stmt) -> tuple[tuple[ir.Stmt, ...], ...]:
    if isinstance(statement, (ir.ForEach, ir.OnlyWarpgroups)):
        return (statement.body,)
    if isinstance(statement, ir.If):
        return (statement.then, statement.orelse)
    return ()


def declare_phases(context: Context, events: list[ir.Event]) -> None:
    """One parity bit per slot, all zero: the first wait of a slot is for its phase 0."""
    if not events:
        return
    for event in events:
        if event.slots > MAX_SLOTS:
            refuse(event.span, f"an event that is waited for has at most {MAX_SLOTS} slots, {event.name} {event.slots}")
    names = ", ".join(f"{context.names.phases(event)} = 0" for event in events)
    context.out.line(f"uint32_t {names};  // bit s: parity of the next wait for slot s")


def slot_address(context: Context, event: ir.Event, slot: ir.Expr) -> str:
    """Address of the mbarrier of a slot."""
    name = context.names.events[event.name]
    if isinstance(slot, ir.IntLit):
        return f"{name} + {8 * slot.value}" if slot.value else name
    return f"{name} + 8 * {context.printer().operand(slot)}"


def emit_wait(context: Context, wait: ir.Wait) -> None:
    event = context.names.events[wait.event.name]
    wait_function = "event_wait_cluster" if _is_clusterwide(context.plan.kernel, wait.event) else "event_wait"
    slot = context.expression(wait.slot)
    context.out.line(f"{wait_function}({event}, {slot}, {context.names.phases(wait.event)});")


def _is_clusterwide(kernel: ir.Kernel, event: ir.Event) -> bool:
    return any(trigger.cluster for trigger, *_ in _triggers(kernel.body, None) if trigger.event is event)


def emit_trigger(context: Context, trigger: ir.Trigger) -> None:
    """An arrival: by the thread, by one lane of each warp of the warpgroup, or by one thread after all of the CTA."""
    address = slot_address(context, trigger.event, trigger.slot)
    suffix = "_cluster" if trigger.cluster else ""
    count = f", {context.plan.kernel.cluster}" if trigger.cluster else ""
    if context.runs is Runs.THREAD:
        context.out.line(f"mbarrier_arrive{suffix}({address}{count});")
    elif context.runs is Runs.WARPGROUP:
        context.out.line(f"warp_arrive{suffix}({address}{count});")
    else:
        context.meet()
        context.out.line(f"if (threadIdx.x == 0) mbarrier_arrive{suffix}({address}{count});")
