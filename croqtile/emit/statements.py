"""Statements of roles and of the block level, in program order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from croqtile import ir, rewrite
from croqtile.emit import events, fragments, mma, stress, transfer
from croqtile.emit.context import Context, Flight, Meeting, Runs
from croqtile.emit.errors import refuse
from croqtile.emit.planning import role_ranges
from croqtile.emit.rings import ring_variables

UNROLL = 8  # loops of at most so many iterations are unrolled

# Statements after which nobody has to meet again: the warps have met in them, with nothing but an arrival since then.
_MEET_LAST = (ir.Trigger, ir.SyncWarpgroups, ir.SyncCta, ir.Call, ir.CopyOut)

EmitRoles = Callable[[Context, ir.Roles, bool], None]


class Statements:
    """Emits statement lists; ``roles`` emits the role blocks that stand at block level."""

    def __init__(self, roles: EmitRoles) -> None:
        self._roles = roles

    def emit(self, context: Context, body: tuple[ir.Stmt, ...], last: bool) -> None:
        """``last``: nothing follows ``body`` before the role (or the kernel) ends."""
        position = 0
        context.meeting.just_met = False
        while position < len(body):
            stress.delay_before(context, body[position])
            taken = self._grouped(context, body, position, last)
            if not taken:
                self._one(context, body, position, last and position == len(body) - 1)
                taken = 1
            position += taken
            stress.delay_after(context, body[position - 1])
            if not isinstance(body[position - 1], _MEET_LAST):
                context.meeting.just_met = False

    def _grouped(self, context: Context, body: tuple[ir.Stmt, ...], position: int, last: bool) -> int:
        """Statements that are emitted together; the number of them, or 0."""
        copies_out = _run_of(ir.CopyOut, body, position)
        if copies_out:
            transfer.emit_copies_out(context, copies_out, last and position + len(copies_out) == len(body))
            return len(copies_out)
        copies_in = _run_of(ir.CopyIn, body, position)
        following = position + len(copies_in)
        if copies_in and context.runs is Runs.THREAD and following < len(body):
            closing = body[following]
            closed = isinstance(closing, ir.Trigger) and all(_same_slot(copy, closing) for copy in copies_in)
            if closed and not any(id(copy) in context.announced for copy in copies_in):
                assert isinstance(closing, ir.Trigger)
                transfer.emit_closed_set(context, copies_in, closing)
                return len(copies_in) + 1
        return 0

    def _one(self, context: Context, body: tuple[ir.Stmt, ...], position: int, last: bool) -> None:
        statement = body[position]
        out = context.out
        match statement:
            case ir.Let(symbol, value):
                if context.ring.get(value) != symbol.cname:
                    const = context.unused(symbol) + ("" if symbol.mutable else "const ")
                    out.line(f"{const}{symbol.ctype} {symbol.cname} = {context.expression(value)};")
            case ir.Assign(symbol, value):
                out.line(f"{symbol.cname} = {context.expression(value)};")
            case ir.ForEach():
                self._loop(context, statement, last)
            case ir.If():
                self._branches(context, statement, last)
            case ir.OnlyWarpgroups(condition, instances, inner):
                nested = replace(
                    context, instances=instances, ranges=role_ranges(context.plan.kernel.warpgroup, instances)
                )
                before, unmet = context.flight.copy(), context.meeting.copy()
                with out.block(f"if ({context.expression(condition)})"):
                    self.emit(nested, inner, last)
                _join(context, inner, before, unmet)
            case ir.Wait():
                events.emit_wait(context, statement)
            case ir.Trigger():
                events.emit_trigger(context, statement)
            case ir.CopyIn():
                transfer.emit_copy_in(context, statement)
            case ir.CopyOut():
                raise AssertionError("copies out are grouped")
            case ir.AccFill(fragment, value):
                if not _starts_next_mma(context, statement, body[position + 1 :]):
                    fragments.emit_fill(context, fragment, value)
            case ir.FragDecl(fragment):
                if fragment.init is not None:
                    fragments.emit_fill(context, fragment, fragment.init)
            case ir.FragApply():
                fragments.emit_apply(context, statement)
            case ir.FragCopy():
                fragments.emit_copy(context, statement)
            case ir.FragReduce():
                fragments.emit_reduce(context, statement)
            case ir.Mma():
                mma.emit_mma(context, statement)
            case ir.MmaCommit():
                mma.emit_commit(context)
            case ir.MmaWait():
                mma.emit_wait(context, statement)
            case ir.MmaStore():
                mma.emit_store(context, statement)
            case ir.SyncWarpgroups():
                _sync_warpgroups(context, statement)
            case ir.SyncCta():
                _sync_cta(context, statement)
            case ir.Call():
                transfer.emit_call(context, statement)
            case ir.Roles():
                self._roles(context, statement, last)

    def _loop(self, context: Context, loop: ir.ForEach, last: bool) -> None:
        counter = loop.counter.cname
        constant = loop.extent.value if isinstance(loop.extent, ir.IntLit) else None
        unrolled = constant is not None and constant <= UNROLL
        ring, starts, steps = ({}, "", "") if unrolled else ring_variables(loop)
        names = {expr: name for expr, (name, _) in ring.items()}
        inner = replace(context, ring={**context.ring, **names})
        if unrolled:
            context.out.unroll()
        elif ring and not any(isinstance(inner, ir.FragApply) for inner in rewrite.statements(loop.body)):
            # Once round the ring per iteration: slots and addresses are constants of an unrolled body. (A wish: nvcc
            # 13.0 leaves loops rolled whose extent is computed in their head, such as cdiv(K, 64) in the GEMMs.)
            context.out.unroll(max(slots for _, slots in ring.values()))
        extent = context.expression(loop.extent)
        before, unmet = context.flight.copy(), context.meeting.copy()
        context.flight.enter(loop.body)
        context.meeting.unknown(_written_buffers(loop.body))
        first, second = f"for (int {counter} = 0{starts}; {counter} < {extent};", f"++{counter}{steps})"
        if context.out.fits(f"{first} {second} {{"):
            first = f"{first} {second}"
        else:
            context.out.line(first)
            first = f"     {second}"
        with context.out.block(first, note=f"line {loop.span.line}"):
            self.emit(inner, loop.body, False)
        if constant:
            context.meeting.unknown(_written_buffers(loop.body))
        else:  # perhaps it does not run at all
            _join(context, loop.body, before, unmet)

    def _branches(self, context: Context, branch: ir.If, last: bool) -> None:
        out = context.out
        transfer.announce_multicasts(context, branch)
        before, unmet = context.flight.copy(), context.meeting.copy()
        with out.block(f"if ({context.expression(branch.condition)})", "} else {" if branch.orelse else "}"):
            self.emit(context, branch.then, last)
        after, met = context.flight.copy(), context.meeting.copy()
        context.flight.restore(before)
        context.meeting.restore(unmet)
        if branch.orelse:
            with out.indented():
                self.emit(context, branch.orelse, last)
            out.line("}")
        _join(context, branch.then + branch.orelse, after, met)


def _run_of(kind: type[ir.Stmt], body: tuple[ir.Stmt, ...], position: int) -> list:  # type: ignore[type-arg]
    """The statements of one kind that directly follow each other."""
    found = []
    while position < len(body) and isinstance(body[position], kind):
        found.append(body[position])
        position += 1
    return found


def _same_slot(copy: ir.CopyIn, trigger: ir.Trigger) -> bool:
    return copy.event is trigger.event and copy.slot == trigger.slot and not trigger.cluster


def _written_buffers(body: tuple[ir.Stmt, ...]) -> set[str]:
    stores = (
        statement.target.root.name for statement in rewrite.statements(body) if isinstance(statement, ir.MmaStore)
    )
    return set(stores)


def _join(context: Context, body: tuple[ir.Stmt, ...], flight: Flight, meeting: Meeting) -> None:
    """Behind ``body``, which may have been executed or not: ``flight`` and ``meeting`` hold at the end of the other
    way."""
    context.meeting.unknown(_written_buffers(body))
    context.meeting.join(meeting)
    context.flight.join(flight)


# --------------------------------------------------------------------------------------------------------------
# Accumulators


def _starts_next_mma(context: Context, fill: ir.AccFill, following: tuple[ir.Stmt, ...]) -> bool:
    """Is the next use of the accumulator, in the same statement list, an ``mma`` onto it? Then that one's first
    instruction ignores the old contents (scale-d 0), and nothing has to be filled with zeros."""
    if not (isinstance(fill.value, ir.FloatLit) and _is_zero(fill.value.text)):
        return False
    for statement in following:
        if isinstance(statement, ir.Mma) and statement.accumulator is fill.fragment:
            context.starting.add(id(statement))
            return True
        if fill.fragment in rewrite.nodes(statement):
            return False
    return False


def _is_zero(literal: str) -> bool:
    return not literal.endswith("inf") and float(literal.rstrip("fF")) == 0.0


def fragments_of(body: tuple[ir.Stmt, ...]) -> list[ir.Fragment]:
    """The fragments that these statements use, in order of their places in the file."""
    used = {node for node in rewrite.nodes(body) if isinstance(node, ir.Fragment)}
    return sorted(used, key=lambda fragment: (fragment.span.line, fragment.span.column, fragment.cname))


# --------------------------------------------------------------------------------------------------------------
# Barriers


def _sync_warpgroups(context: Context, sync: ir.SyncWarpgroups) -> None:
    if context.runs is Runs.THREAD:
        refuse(sync.span, "a role of one thread cannot take part in sync.wg")
    members = tuple(sorted(sync.members))
    if members == context.instances and len(members) == 1:
        context.meet()
        return
    number = context.names.barriers[members]
    context.out.line(f"named_barrier_sync({number}, {128 * len(members)});")
    context.meeting.met()


def _sync_cta(context: Context, sync: ir.SyncCta) -> None:
    if context.runs is Runs.THREAD:
        refuse(sync.span, "a role of one thread cannot take part in sync.shared")
    context.out.line("__syncthreads();")
    context.meeting.met()
