"""Kernel IR → the concurrency model of the analysis engine.

Every role instance (a warpgroup, or its one thread) becomes a role with its own code, specialised by its value of p.
What the model cannot express becomes ``Opaque``: the buffers concerned then overlap nothing, and the events concerned
order nothing. Nothing is ever guessed towards *yes*.

Statements at block level belong to a role of their own, ``block``: all threads run them, but each has an effect once
per CTA, after the roles before it have joined and before the next ones start.
"""

from __future__ import annotations

from dataclasses import replace

from croqtile import ir, symbolic, walk
from croqtile.layout import BLOCK, Layout
from croqtile.parameters import Parameters
from croqtile.resolve import resolved
from croqtile.scalars import Scalars
from croqtile.symbolic import Untranslatable
from croqtile.values import Known, Launch, Scope
from hb_analyzer import model
from hb_analyzer.expressions import bare


def translate(kernel: ir.Kernel) -> model.Program:
    """The program of one CTA of ``kernel`` (lowered IR)."""
    layout = Layout(kernel)
    launch = Launch(kernel)
    parameters = Parameters(launch.facts)
    roles = tuple(
        model.Role(name, _role_body(kernel, layout, launch, parameters, name), layout.kind(name))
        for name in layout.roles
    )
    program = model.Program(
        name=kernel.name,
        buffers=tuple(
            model.Buffer(b.name, b.bytes, b.align, b.count, b.shape, description=_description(b))
            for b in kernel.buffers
        ),
        events=tuple(model.Event(e.name, e.slots, max(e.arrivals, 1)) for e in kernel.events),
        roles=roles,
        framework="croqtile",
        arch="sm_90a",
    )
    return resolved(program, parameters, layout.dropped)


def _role_body(
    kernel: ir.Kernel, layout: Layout, launch: Launch, parameters: Parameters, name: str
) -> tuple[model.Statement, ...]:
    """The code of one role instance. A counter that turns out to be changed where the analysis cannot follow was wrong
    from the start: then the translation begins again without it."""
    unfollowed: set[ir.Symbol] = set()
    while True:
        role = _RoleTranslation(kernel, layout, launch, parameters, name, unfollowed)
        body = role.run()
        if not role.scalars.spoiled:
            return tuple(body)
        unfollowed |= role.scalars.spoiled


def _description(buffer: ir.SharedBuffer) -> str:
    shape = "×".join(map(str, buffer.shape))
    return f"{buffer.count} × " * buffer.is_array + f"{shape} {buffer.elem.spelling}"


class _RoleTranslation:
    """The code of one role instance."""

    def __init__(
        self,
        kernel: ir.Kernel,
        layout: Layout,
        launch: Launch,
        parameters: Parameters,
        name: str,
        unfollowed: set[ir.Symbol],
    ) -> None:
        key = layout.roles[name]
        self.kernel, self.layout, self.parameters, self.name, self.key = kernel, layout, parameters, name, key
        self.scope = Scope(launch, key)
        self.scalars = Scalars(self.scope, kernel.body, lambda step: self.out.append(step), unfollowed)
        self.counters: list[str] = []
        self.out: list[model.Statement] = []
        self.in_role = False  # inside a Roles region (as opposed to block level)

    def run(self) -> list[model.Statement]:
        self.visit(self.kernel.body)
        return self.out

    # -- statements -------------------------------------------------------------------------------------------

    def visit(self, body: tuple[ir.Stmt, ...]) -> None:
        for statement in body:
            try:
                self.statement(statement)
            except Untranslatable as error:
                self.opaque(statement, str(error))

    def statement(self, s: ir.Stmt) -> None:
        if isinstance(s, ir.Let):
            self.scalars.define(s)
            self.parameters.aliases = {**self.scope.aliases(), **self.parameters.aliases}
        elif isinstance(s, ir.Assign):
            self.scalars.assign(s)
        elif isinstance(s, ir.ForEach):
            self.loop(s)
        elif isinstance(s, ir.If):
            self.branch(s)
        elif isinstance(s, ir.Roles):
            self.region(s)
        elif isinstance(s, ir.OnlyWarpgroups):
            if self.key is not None and self.key.warpgroup in s.instances:
                self.visit(s.body)
        elif self.in_role or self.name == BLOCK:
            self.operation(s)

    def region(self, s: ir.Roles) -> None:
        if self.layout.has_block:
            self.out.append(self.layout.meeting(s, "start"))
        self.visit(s.prologue)
        for role in s.roles:
            if self.key is not None and walk.runs(role, self.key):
                self.in_role = True
                self.visit(role.body)
                self.in_role = False
        if self.layout.has_block:
            self.out.append(self.layout.meeting(s, "join"))

    def operation(self, s: ir.Stmt) -> None:
        where = str(s.span)
        if not self.in_role and isinstance(s, (ir.Wait, ir.Trigger, ir.CopyIn, ir.Call, ir.Mma, ir.MmaStore)):
            # Every thread runs these, and nothing makes the threads meet before the roles start.
            raise Untranslatable("it stands at block level, outside of the roles")
        if isinstance(s, ir.Wait):
            slot = self.slot(s.slot, s.event.slots, s.event.name)
            self.out.append(model.Wait(s.event.name, slot, f"wait {_indexed(s.event, slot)}", where))
        elif isinstance(s, ir.Trigger):
            if s.cluster:
                raise Untranslatable("it counts in other CTAs of the cluster, too")
            slot = self.slot(s.slot, s.event.slots, s.event.name)
            self.out.append(model.Trigger(s.event.name, slot, f"trigger {_indexed(s.event, slot)}", where))
        elif isinstance(s, ir.CopyIn):
            if s.multicast:
                raise Untranslatable("other CTAs of the cluster write the tile, too")
            event_slot = self.slot(s.slot, s.event.slots, s.event.name)
            access = self.access(s.target, "w", "tma.copy into", s.span)
            self.emit(replace(access, ends="event", event=s.event.name, event_slot=event_slot, proxy="async"))
        elif isinstance(s, ir.CopyOut):
            self.emit(replace(self.access(s.source, "r", "tma.copy out of", s.span), proxy="async"))
        elif isinstance(s, ir.Mma):
            for operand in (s.a, s.b):
                if isinstance(operand, ir.SharedOperand):
                    access = self.access(operand.view, "r", "mma reads", s.span)
                    self.emit(replace(access, ends="group", proxy="async"))
        elif isinstance(s, ir.MmaCommit):
            self.out.append(model.Commit("mma.commit", where))
        elif isinstance(s, ir.MmaWait):
            self.out.append(model.Drain(s.pending, f"mma.wait<{s.pending}>", where))
        elif isinstance(s, ir.MmaStore):
            # The generated code lets the warpgroup meet before the store and fences after it.
            self.emit(self.access(s.target, "w", "mma.store to", s.span))
        elif isinstance(s, (ir.SyncWarpgroups, ir.SyncCta)):
            if self.in_role:
                self.out.append(self.layout.barrier(s))
        elif isinstance(s, ir.Call):
            for view in walk.shared_views(s):
                read = self.access(view, "r", f"{s.function} reads", s.span)
                self.out += [read, replace(read, mode="w", label=f"{s.function} writes {self.place(read)}")]

    def emit(self, access: model.Access) -> None:
        """Append an access, joined with an equal one just before it where nothing can come between them."""
        for position in range(len(self.out) - 1, -1, -1):
            earlier = self.out[position]
            if not isinstance(earlier, model.Access):
                break
            joined = _join(earlier, access, self.layout.shapes[access.buffer])
            if joined is not None:
                verb = earlier.label.split(access.buffer)[0]
                self.out[position] = replace(joined, label=verb + self.place(joined))
                return
            if access.mode == "w" or earlier.mode == "w":
                break
        self.out.append(access)

    # -- control flow -----------------------------------------------------------------------------------------

    def loop(self, s: ir.ForEach) -> None:
        count = walk.unrolled(s)
        if count is not None and not any(isinstance(inner, ir.Roles) for inner in walk.statements(s.body, None)):
            for iteration in range(count):
                self.scope.known[s.counter] = symbolic.constant(iteration)
                self.visit(s.body)
            return
        scope, scalars = self.scope, self.scalars
        changed = walk.assigned(s.body, self.key)
        extent = scope.value(s.extent)
        if changed & walk.mentioned(s.extent) or extent.counters() & {symbol.cname for symbol in changed}:
            raise Untranslatable("its body changes its own trip count")
        trip = self.parameters.trip_count(extent, scope.facts)
        if extent.is_constant and extent.constant <= 0:
            return
        scalars.enter(changed)
        highest = symbolic.high(extent, scope.facts)
        counter = symbolic.counter(self.counter_name(s.counter), 0, None if highest is None else highest - 1)
        facts, out = scope.facts, self.out
        first = scalars.enter_loop(s, changed, counter)
        scope.known[s.counter] = counter
        scope.facts = (*facts, extent - symbolic.constant(1) - counter, extent - symbolic.constant(1))
        self.counters.append(str(counter))
        self.out = []
        self.visit(s.body)
        scalars.flush()
        self.counters.pop()
        body, self.out = self.out, out
        if body:
            self.out.append(model.Loop(str(counter), trip, tuple(body), str(s.span)))
        scalars.leave_loop(s, changed, first, extent, facts)

    def counter_name(self, symbol: ir.Symbol) -> str:
        """The loop's name in the model: none that a loop around it, a running counter or a launch-time value has."""
        taken = {*self.counters, *self.scope.launch.names.values()}
        taken |= {mutable.cname for mutable in self.scalars.mutables}
        name = symbol.name if symbol.name not in taken else symbol.cname
        while name in taken:
            name += "_"
        return name

    def branch(self, s: ir.If) -> None:
        scope = self.scope
        condition = scope.value(s.condition)
        if condition.is_constant:
            self.visit(s.then if condition.constant else s.orelse)
            return
        test = self.parameters.to_model(condition, scope.facts, control=not condition.launch_only)
        changed = walk.assigned((*s.then, *s.orelse), self.key)
        self.scalars.enter(changed)
        facts, out, before = scope.facts, self.out, dict(scope.known)
        bodies: list[tuple[model.Statement, ...]] = []
        after: list[dict[ir.Symbol, Known]] = []
        for holds, body in ((True, s.then), (False, s.orelse)):
            scope.known, self.out = dict(before), []
            scope.facts = (*facts, *symbolic.guard_facts(condition, holds))
            self.visit(body)
            self.scalars.flush()
            bodies.append(tuple(self.out))
            after.append(scope.known)
        self.out = out
        if any(bodies):
            self.out.append(model.If(test, bodies[0], bodies[1], str(s.span)))
        self.scalars.leave_branches(changed, before, after, facts)

    def opaque(self, s: ir.Stmt, why: str) -> None:
        """A statement that the model cannot express."""
        found = walk.effects((s,), self.key)
        self.scalars.spoil(walk.assigned((s,), self.key))
        if not found or not (self.in_role or self.name == BLOCK or found.roles):
            return
        buffers = dict(found.buffers)
        if found.matrix and not isinstance(s, ir.Mma):
            # Groups of matrix instructions are counted: what this code adds or drains changes every later wait.
            for inner in walk.statements(self.kernel.body, self.key):
                if isinstance(inner, ir.Mma):
                    buffers.update(dict.fromkeys(view.root.name for view in walk.shared_views(inner)))
        for barrier in found.barriers:
            self.layout.dropped.add(self.layout.barrier(barrier).name)
        for region in found.roles:
            self.layout.dropped.update(self.layout.meeting(region, which).name for which in ("start", "join"))
        self.out.append(model.Opaque(f"line {s.span.line}: {why}", tuple(buffers), tuple(found.events), str(s.span)))

    # -- places -----------------------------------------------------------------------------------------------

    def slot(self, expr: ir.Expr, slots: int, what: str) -> model.IntExpr:
        value = self.scope.value(expr)
        facts = self.scope.facts
        within = symbolic.at_least(symbolic.constant(slots - 1) - value, 0, facts)
        if not (within and symbolic.at_least(value, 0, facts)):
            raise Untranslatable(f"slot `{value}` of `{what}` is not provably within 0 … {slots - 1}")
        return self.parameters.to_model(value, facts)

    def access(self, view: ir.View, mode: str, label: str, span: ir.Span) -> model.Access:
        assert isinstance(view.root, ir.SharedBuffer)
        buffer = view.root
        slot = model.ZERO if view.slot is None else self.slot(view.slot, buffer.count, buffer.name)
        access = model.Access(buffer.name, mode, slot, self.box(view, buffer), where=str(span))
        return replace(access, label=f"{label} {self.place(access)}")

    def place(self, access: model.Access) -> str:
        slot = f"[{bare(access.slot)}]" if access.buffer in self.layout.arrays else ""
        rows = "" if not access.region else f" ({', '.join(f'{low}:{high}' for low, high in access.region)})"
        return access.buffer + slot + rows

    def box(self, view: ir.View, buffer: ir.SharedBuffer) -> model.Region:
        """The view as a box in one tile; None if an offset is not a constant here. Raises Untranslatable unless the
        view provably lies in the tile: outside of it are other buffers."""
        bounds: list[tuple[int, int] | None] = []
        for dim, whole in zip(view.dims, buffer.shape, strict=True):
            offset = sum((self.scope.value(_offset(level)) for level in dim.levels), symbolic.constant(0))
            extent = self.scope.value(dim.levels[-1].extent) if dim.levels else symbolic.constant(whole)
            room = symbolic.constant(whole) - extent - offset
            known = offset.is_constant and extent.is_constant
            if not all(symbolic.at_least(distance, 0, self.scope.facts) for distance in (offset, room)):
                raise Untranslatable(f"the tile {'leaves' if known else 'may leave'} `{buffer.name}`")
            bounds.append((offset.constant, offset.constant + extent.constant) if known else None)
        known_bounds = tuple(bound for bound in bounds if bound is not None)
        if len(known_bounds) < len(bounds):
            return None
        whole_tile = all(bound == (0, extent) for bound, extent in zip(known_bounds, buffer.shape, strict=True))
        return model.WHOLE if whole_tile else known_bounds


def _offset(level: ir.Level) -> ir.Expr:
    return ir.Binary("*", level.index, level.step)


def _indexed(event: ir.Event, slot: model.IntExpr) -> str:
    return f"{event.name}[{bare(slot)}]" if event.is_array else event.name


def _join(a: model.Access, b: model.Access, shape: tuple[int, ...]) -> model.Access | None:
    """One access for two that follow each other directly, if they differ at most in abutting regions.

    Two copies into the same place are left apart: they race with each other."""
    if replace(a, region=b.region, label=b.label, where=b.where) != b:
        return None
    racing = a.mode == "w" and a.ends != "here"
    if a.region == b.region:
        return None if racing else a
    if not a.region or not b.region:
        return None
    differing = [i for i, (x, y) in enumerate(zip(a.region, b.region, strict=True)) if x != y]
    if len(differing) != 1:
        return None
    (low, high), (next_low, next_high) = a.region[differing[0]], b.region[differing[0]]
    if (next_low > high or low > next_high) or (racing and next_low != high and low != next_high):
        return None
    region = list(a.region)
    region[differing[0]] = (min(low, next_low), max(high, next_high))
    whole = all(bound == (0, extent) for bound, extent in zip(region, shape, strict=True))
    return replace(a, region=model.WHOLE if whole else tuple(region))
