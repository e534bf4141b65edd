"""The roles of a CTA: one if/else chain over the warpgroup index, with registers moved from producers to consumers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from croqtile import ir, rewrite
from croqtile.emit import events, fragments
from croqtile.emit.context import Context, Flight, Meeting, Runs
from croqtile.emit.planning import role_ranges
from croqtile.emit.statements import Statements, fragments_of
from croqtile.layout import role_word
from croqtile.walk import RoleKey

REGISTER_FILE = 65536  # 32-bit registers of an SM
PRODUCER_REGISTERS = 24  # the least that setmaxnreg takes
MOST_REGISTERS = 240  # of a consumer thread; 255 is the limit of the instruction set
WORKING_REGISTERS = 56  # that a role wants beside its fragments


@dataclass(frozen=True)
class Registers:
    """Per thread after the roles have split; None: as launched."""

    producer: int
    consumer: int


def emit_roles(context: Context, roles: ir.Roles, last: bool, statements: Statements, once: bool) -> None:
    """``once``: these are the only roles of the kernel and run once, so that what a role counts is its own."""
    out = context.out
    statements.emit(context, roles.prologue, False)
    budget = register_budget(context.plan.kernel) if once else None
    branches = _branches(roles)
    covered = {instance for instances, _ in branches for instance in instances}
    idle = tuple(p for p in range(context.plan.kernel.warpgroups) if p not in covered)
    chain = len(covered) == sum(len(instances) for instances, _ in branches)
    for index, (instances, members) in enumerate(branches):
        remaining = index == len(branches) - 1 and chain and index > 0 and not idle
        keyword = "else" if remaining else f"if ({_condition(context, instances)})"
        if chain and index > 0 and not remaining:
            keyword = f"else {keyword}"
        head = f"}} {keyword}" if chain and index > 0 else keyword
        out.line(f"{head} {{  // {_description(members)}")
        with out.indented():
            _emit_branch(context, members, last, statements, once, budget)
        if not chain:
            out.line("}")
    if idle and budget and not chain:
        with out.block(f"if ({_condition(context, idle)})"):
            out.line(f"give_registers<{budget.producer}>();")
    if chain:
        if idle and budget:
            out.line("} else {")
            with out.indented():
                out.line(f"give_registers<{budget.producer}>();")
        out.line("}")
    if not last:
        out.line("__syncthreads();")
        context.meeting.met()


def _branches(roles: ir.Roles) -> list[tuple[tuple[int, ...], list[ir.Role]]]:
    """Roles of the same warpgroups (several threads of one) share a branch."""
    branches: dict[tuple[int, ...], list[ir.Role]] = {}
    for role in roles.roles:
        branches.setdefault(tuple(sorted(role.instances)), []).append(role)
    return list(branches.items())


def _condition(context: Context, instances: tuple[int, ...]) -> str:
    name = context.names.warpgroup
    first, last = instances[0], instances[-1]
    if len(instances) == 1:
        return f"{name} == {first}"
    if instances == tuple(range(first, last + 1)):
        bounds = [f"{name} >= {first}"] if first > 0 else []
        if last < context.plan.kernel.warpgroups - 1 or not bounds:
            bounds.append(f"{name} <= {last}")
        return " && ".join(bounds)
    return " || ".join(f"{name} == {instance}" for instance in instances)


def _description(members: list[ir.Role]) -> str:
    lines = ", ".join(f"line {role.span.line}" for role in members)
    kinds = {role_word([role], RoleKey(role.instances[0], role.thread)) for role in members}
    return f"{' and '.join(sorted(kinds))}, {lines}"


def _emit_branch(
    context: Context,
    members: list[ir.Role],
    last: bool,
    statements: Statements,
    once: bool,
    budget: Registers | None,
) -> None:
    out = context.out
    if budget:
        producer = all(_is_producer(role) for role in members)
        out.line(f"give_registers<{budget.producer}>();" if producer else f"take_registers<{budget.consumer}>();")
    for role in members:
        runs = events.executor(role, () if once else rewrite.roles(context.plan.kernel))
        inner = replace(
            context,
            runs=runs,
            instances=role.instances,
            ranges=role_ranges(context.plan.kernel.warpgroup, role.instances),
            meeting=Meeting(),
            flight=Flight(),
        )
        if runs is Runs.THREAD:
            thread = 0 if role.thread is None else role.thread
            with out.block(f"if ({context.names.thread} == {thread})"):
                _emit_role(inner, role, last, statements, once)
        else:
            _emit_role(inner, role, last, statements, once)


def _emit_role(context: Context, role: ir.Role, last: bool, statements: Statements, once: bool) -> None:
    if once:
        events.declare_phases(context, events.waited_events(role.body))
    for fragment in fragments_of(role.body):
        fragments.declare(context, fragment)
    statements.emit(context, role.body, last)


# --------------------------------------------------------------------------------------------------------------
# Registers


def _is_producer(role: ir.Role) -> bool:
    """Does the role only move data?"""
    return not fragments_of(role.body) and not any(isinstance(s, ir.Call) for s in rewrite.statements(role.body))


def register_budget(kernel: ir.Kernel) -> Registers | None:
    """Registers are moved if the program asks for a number of CTAs per SM (`launch_bounds`), or if the fragments of a
    role leave it too few of those that a launch gives to every thread; and only if one can give and another take."""
    roles = [
        role
        for statement in rewrite.statements(kernel.body)
        if isinstance(statement, ir.Roles)
        for role in statement.roles
    ]
    consumers = {p for role in roles if not _is_producer(role) for p in role.instances}
    producers = set(range(kernel.warpgroups)) - consumers
    per_thread = REGISTER_FILE // (128 * kernel.warpgroups * (kernel.launch_bounds or 1)) // 8 * 8
    if not consumers or not producers or per_thread >= MOST_REGISTERS:
        return None
    needed = max(_fragment_registers(role) for role in roles) + WORKING_REGISTERS
    if kernel.launch_bounds is None and needed <= per_thread:
        return None
    available = per_thread * kernel.warpgroups - PRODUCER_REGISTERS * len(producers)
    return Registers(PRODUCER_REGISTERS, min(MOST_REGISTERS, available // len(consumers) // 8 * 8))


def _fragment_registers(role: ir.Role) -> int:
    return sum(fragments.registers(fragment) * fragments.halves(fragment) for fragment in fragments_of(role.body))
