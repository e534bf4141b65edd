"""Events: their mbarriers, waits and triggers.

An instance of a role arrives once: one thread for its warpgroup, after the four warps have met, so that the setting of
an event stands for all of them. The count that an mbarrier is initialised with is ``Event.arrivals``.
"""

from __future__ import annotations

from collections.abc import Iterable

from croqtile import ir, rewrite
from croqtile.emit.context import Context, Runs
from croqtile.emit.errors import refuse

MAX_SLOTS = 32  # bits of the parity variable

# Statements that one thread can execute for its whole warpgroup.
_ONE_THREAD_IS_ENOUGH = (ir.Let, ir.Assign, ir.ForEach, ir.If, ir.Wait, ir.Trigger, ir.CopyIn)


def executor(role: ir.Role, others: Iterable[ir.Role] = ()) -> Runs:
    """Who executes a role. A warpgroup role that only waits, copies and triggers (a producer) is run by one thread:
    nobody can tell the difference, and no thread has to meet another.

    ``others``: the roles with which it shares its counts of settings. Where all threads of its warpgroup wait for an
    event in one of them, all must count the settings of that event here, too."""
    if role.thread is not None:
        return Runs.THREAD
    counted = set(waited_events(role.body))
    related = (other for other in others if other.thread is None and set(other.instances) & set(role.instances))
    counting = (other for other in related if counted & set(waited_events(other.body)))
    if all(_one_thread_is_enough(each.body) for each in (role, *counting)):
        return Runs.THREAD
    return Runs.WARPGROUP


def check_counts(roles: Iterable[ir.Role]) -> None:
    """Refuses roles that share their counts of settings but are run by one thread here and by a whole warpgroup there:
    only that thread would have counted what it has waited for."""
    seen: dict[tuple[int, ir.Event], ir.Role] = {}
    for role in roles:
        for event in waited_events(role.body):
            for instance in role.instances:
                other = seen.setdefault((instance, event), role)
                if (other.thread is None) != (role.thread is None):
                    refuse(
                        role.span,
                        f"{event.name} is waited for by one thread of warpgroup {instance} in one role and by all of "
                        f"its threads in another (lines {other.span.line} and {role.span.line}), which count apart",
                    )


def _one_thread_is_enough(body: tuple[ir.Stmt, ...]) -> bool:
    for statement in body:
        if not isinstance(statement, _ONE_THREAD_IS_ENOUGH):
            return False
        if isinstance(statement, ir.ForEach) and not _one_thread_is_enough(statement.body):
            return False
        if isinstance(statement, ir.If) and not _one_thread_is_enough(statement.then + statement.orelse):
            return False
    return True


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
    triggers = (node for node in rewrite.statements(kernel.body) if isinstance(node, ir.Trigger))
    return any(trigger.cluster for trigger in triggers if trigger.event is event)


def emit_trigger(context: Context, trigger: ir.Trigger) -> None:
    """An arrival: by the thread, or by one thread after all of the warpgroup (or of the CTA) have got here."""
    address = slot_address(context, trigger.event, trigger.slot)
    suffix = "_cluster" if trigger.cluster else ""
    count = f", {context.plan.kernel.cluster}" if trigger.cluster else ""
    arrive = f"mbarrier_arrive{suffix}({address}{count});"
    if context.runs is Runs.THREAD:
        context.out.line(arrive)
        return
    if not context.meeting.just_met:
        context.meet()
    thread = context.names.thread if context.runs is Runs.WARPGROUP else "threadIdx.x"
    context.out.line(f"if ({thread} == 0) {arrive}")
