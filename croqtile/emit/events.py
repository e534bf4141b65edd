"""Events: their mbarriers, waits and triggers.

An instance of a role arrives once: one thread for its warpgroup, after the four warps have met, so that the setting of
an event stands for all of them. The count that an mbarrier is initialised with is ``Event.arrivals``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from croqtile import ir, rewrite
from croqtile.emit import stress
from croqtile.emit.context import Context, Runs
from croqtile.emit.errors import refuse

MAX_SLOTS = 32  # bits of the parity variable

# Statements that one thread can execute for its whole warpgroup.
_ONE_THREAD_IS_ENOUGH = (ir.Let, ir.Assign, ir.ForEach, ir.If, ir.Wait, ir.Trigger, ir.CopyIn)


def executor(role: ir.Role, others: Iterable[ir.Role] = ()) -> Runs:
    """Who executes a role. A warpgroup role that only waits, copies and triggers (a producer) is run by one thread:
    nobody can tell the difference, and no thread has to meet another.

    ``others``: roles that run before or after it. What some of them count together, all threads of the warpgroup must
    count in all of them if they need it in one."""
    if role.thread is not None:
        return Runs.THREAD
    together = [role]
    rest = [other for other in others if other.thread is None]
    for one in together:
        found = [other for other in rest if other not in together and _meet(one, other) and _shared(one, other)]
        together += found
    if all(_one_thread_is_enough(each.body) for each in together):
        return Runs.THREAD
    return Runs.WARPGROUP


def check_counts(roles: Iterable[ir.Role]) -> None:
    """Refuses roles that run one after another and count something together, one of them by a single thread and one by
    its whole warpgroup: only that thread would have counted in both."""
    for one, other in itertools.combinations(roles, 2):
        if (one.thread is None) != (other.thread is None) and _meet(one, other):
            for name in sorted(_shared(one, other)):
                refuse(
                    other.span,
                    f"{name} is counted by one thread of a warpgroup in one role and by all of its threads in another "
                    f"(lines {one.span.line} and {other.span.line}), which differ in what they have counted",
                )


def _meet(one: ir.Role, other: ir.Role) -> bool:
    return one is not other and bool(set(one.instances) & set(other.instances))


def _shared(one: ir.Role, other: ir.Role) -> set[str]:
    """What one role changes and the other sees, in the copies that every thread has: how often it has waited for an
    event, and scalars from outside of the roles."""
    events = set(waited_events(one.body)) & set(waited_events(other.body))
    seen = [set(rewrite.symbols(role.body)) for role in (one, other)]
    scalars = (_changed(one) & seen[1]) | (_changed(other) & seen[0])
    return {event.name for event in events} | {symbol.name for symbol in scalars}


def _changed(role: ir.Role) -> set[ir.Symbol]:
    """The scalars from outside that a role assigns."""
    inside = list(rewrite.statements(role.body))
    own = {statement.symbol for statement in inside if isinstance(statement, ir.Let)}
    return {statement.symbol for statement in inside if isinstance(statement, ir.Assign)} - own


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
    if stress.leaves_out(context, wait):
        return
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
