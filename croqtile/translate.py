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
from croqtile.symbolic import Affine, Untranslatable
from croqtile.values import Launch, Scope
from croqtile.walk import RoleKey
from hb_analyzer import model


def translate(kernel: ir.Kernel) -> model.Program:
    """The program of one CTA of ``kernel`` (lowered IR)."""
    layout = Layout(kernel)
    launch = Launch(kernel)
    parameters = Parameters(launch.facts)
    roles: list[model.Role] = []
    for name, key in layout.roles.items():
        role = _RoleTranslation(kernel, layout, launch, parameters, name, key)
        roles.append(model.Role(name, tuple(role.run()), layout.kind(name)))
    program = model.Program(
        name=kernel.name,
        buffers=tuple(
            model.Buffer(b.name, b.bytes, b.align, b.count, b.shape, description=_description(b))
            for b in kernel.buffers
        ),
        events=tuple(model.Event(e.name, e.slots, max(e.arrivals, 1)) for e in kernel.events),
        roles=tuple(roles),
        framework="croqtile",
        arch="sm_90a",
    )
    return resolved(program, parameters, layout.dropped)


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
        key: RoleKey | None,
    ) -> None:
        self.kernel, self.layout, self.parameters, self.name, self.key = kernel, layout, parameters, name, key
        self.scope = Scope(launch, key)
        self.mutables = walk.mutables(kernel.body, key)
        self.pending: dict[ir.Symbol, int] = {}  # running counters: increments not yet in the output as a Step
        self.raw: dict[ir.Symbol, Affine] = {}  # their value before any `% modulus`
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
            self.define(s)
        elif isinstance(s, ir.Assign):
            self.assign(s)
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

    # -- scalars ----------------------------------------------------------------------------------------------

    def define(self, s: ir.Let) -> None:
        self.scope.bind(s.symbol, s.value)
        self.parameters.aliases = {**self.scope.aliases(), **self.parameters.aliases}
        known = self.scope.known[s.symbol]
        how = self.mutables.get(s.symbol)
        if how is None or how.mode != "running":
            return
        if isinstance(known, Affine):
            self.raw[s.symbol] = known + self.running(s.symbol, how)
            self.show(s.symbol, how)
        else:
            how.mode = "flow"

    def running(self, symbol: ir.Symbol, how: walk.Mutable) -> Affine:
        return symbolic.counter(symbol.cname, None if how.decreasing else 0)

    def show(self, symbol: ir.Symbol, how: walk.Mutable) -> None:
        raw = self.raw[symbol]
        if how.modulus is None:
            self.scope.known[symbol] = raw
            return
        try:
            self.scope.known[symbol] = symbolic.remainder(raw, symbolic.constant(how.modulus), self.scope.facts)
        except Untranslatable as error:
            self.scope.forget(symbol, str(error))

    def assign(self, s: ir.Assign) -> None:
        how = self.mutables[s.symbol]
        update = walk.update_of(s)
        if how.mode == "running" and update is not None:
            self.pending[s.symbol] = self.pending.get(s.symbol, 0) + update.by
            self.raw[s.symbol] = self.raw[s.symbol] + symbolic.constant(update.by)
            self.show(s.symbol, how)
        else:
            self.scope.bind(s.symbol, s.value)

    def flush(self, symbols: set[ir.Symbol] | None = None) -> None:
        """Write the pending increments of running counters as Steps. Values computed from the old count are lost."""
        for symbol in list(self.pending):
            by = self.pending[symbol]
            if by == 0 or (symbols is not None and symbol not in symbols):
                continue
            del self.pending[symbol]
            self.out.append(model.Step(symbol.cname, by))
            self.raw[symbol] = self.raw[symbol] - symbolic.constant(by)
            self.lose_counts(symbol)
            self.show(symbol, self.mutables[symbol])

    def lose_counts(self, symbol: ir.Symbol) -> None:
        for other, known in self.scope.known.items():
            if other is not symbol and isinstance(known, Affine) and symbol.cname in known.counters():
                self.scope.forget(other, f"it was computed from `{symbol.name}`, which has changed since")

    def enter(
        self, changed: set[ir.Symbol], loop: ir.ForEach | None, counter: Affine | None
    ) -> dict[ir.Symbol, Affine]:
        """Before code that assigns ``changed`` and may run any number of times (a loop) or not at all (a branch).

        Returns the value per iteration of those that are linear in the loop's counter, for ``leave``."""
        linear: dict[ir.Symbol, Affine] = {}
        self.flush({symbol for symbol in changed if self.mutables[symbol].mode == "running"})
        for symbol in changed:
            how, known = self.mutables[symbol], self.scope.known.get(symbol)
            if how.mode == "running":
                self.lose_counts(symbol)
            elif loop is not None and counter is not None and how.mode == "closed" and isinstance(known, Affine):
                linear[symbol] = known
                self.scope.known[symbol] = self.advanced(known, how, how.per_iteration.get(id(loop), 0), counter)
            elif loop is not None:
                self.scope.forget(symbol, "its value differs between the iterations of a loop")
        return linear

    def advanced(self, start: Affine, how: walk.Mutable, by: int, count: Affine) -> Affine | str:
        value = start + count.scaled(by)
        if how.modulus is None:
            return value
        try:
            return symbolic.remainder(value, symbolic.constant(how.modulus), self.scope.facts)
        except Untranslatable as error:
            return str(error)

    # -- control flow -----------------------------------------------------------------------------------------

    def loop(self, s: ir.ForEach) -> None:
        count = walk.unrolled(s)
        if count is not None and not any(isinstance(inner, ir.Roles) for inner in walk.statements(s.body, None)):
            for iteration in range(count):
                self.scope.known[s.counter] = symbolic.constant(iteration)
                self.visit(s.body)
            return
        scope = self.scope
        changed = walk.assigned(s.body, self.key)
        if changed & walk.mentioned(s.extent):
            raise Untranslatable("its body changes its own trip count")
        extent = scope.value(s.extent)
        trip = self.parameters.trip_count(extent, scope.facts)
        if extent.is_constant and extent.constant <= 0:
            return
        highest = symbolic.high(extent, scope.facts)
        counter = symbolic.counter(self.counter_name(s.counter), 0, None if highest is None else highest - 1)
        outer_facts, outer_out = scope.facts, self.out
        linear = self.enter(changed, s, counter)
        outer_out = self.out
        self.out = []
        scope.known[s.counter] = counter
        scope.facts = (*outer_facts, extent - symbolic.constant(1) - counter, extent - symbolic.constant(1))
        self.counters.append(str(counter))
        self.visit(s.body)
        self.flush()
        self.counters.pop()
        body, self.out, scope.facts = self.out, outer_out, outer_facts
        if body:
            self.out.append(model.Loop(str(counter), trip, tuple(body), str(s.span)))
        for symbol in changed:
            how = self.mutables[symbol]
            if symbol in linear and symbolic.at_least(extent, 0, scope.facts):
                scope.known[symbol] = self.advanced(linear[symbol], how, how.per_iteration.get(id(s), 0), extent)
            elif how.mode != "running":
                scope.forget(symbol, "it is assigned in a loop")

    def counter_name(self, symbol: ir.Symbol) -> str:
        clash = symbol.name in self.counters or symbol.name in self.scope.launch.names.values()
        return symbol.cname if clash else symbol.name

    def branch(self, s: ir.If) -> None:
        scope = self.scope
        condition = scope.value(s.condition)
        if condition.is_constant:
            self.visit(s.then if condition.constant else s.orelse)
            return
        test = self.parameters.to_model(condition, scope.facts, control=not condition.launch_only)
        changed = walk.assigned((*s.then, *s.orelse), self.key)
        self.enter(changed, None, None)
        outer_facts, outer_out = scope.facts, self.out
        before = dict(scope.known)
        bodies: list[tuple[model.Statement, ...]] = []
        after: list[dict[ir.Symbol, Affine | str]] = []
        for holds, body in ((True, s.then), (False, s.orelse)):
            scope.known, self.out = dict(before), []
            scope.facts = (*outer_facts, *symbolic.guard_facts(condition, holds))
            self.visit(body)
            self.flush()
            bodies.append(tuple(self.out))
            after.append(scope.known)
        scope.known, scope.facts, self.out = before, outer_facts, outer_out
        if any(bodies):
            self.out.append(model.If(test, bodies[0], bodies[1], str(s.span)))
        for symbol in changed:
            if self.mutables[symbol].mode == "running":
                self.show(symbol, self.mutables[symbol])
            elif after[0].get(symbol) == after[1].get(symbol):
                scope.known[symbol] = after[0].get(symbol, "it is assigned under a condition")
            else:
                scope.forget(symbol, "it is assigned under a condition")

    def opaque(self, s: ir.Stmt, why: str) -> None:
        """A statement that the model cannot express."""
        found = walk.effects((s,), self.key)
        for symbol in walk.assigned((s,), self.key):
            self.mutables[symbol].mode = "flow"
            self.pending.pop(symbol, None)
            self.lose_counts(symbol)
            self.scope.forget(symbol, "it is assigned in code that the analysis cannot follow")
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
        slot = f"[{_plain(access.slot)}]" if access.buffer in self.layout.arrays else ""
        rows = "" if not access.region else f" ({', '.join(f'{low}:{high}' for low, high in access.region)})"
        return access.buffer + slot + rows

    def box(self, view: ir.View, buffer: ir.SharedBuffer) -> model.Region:
        """The view as a box in one tile; None if an offset is not a constant here."""
        bounds: list[tuple[int, int]] = []
        for dim, whole in zip(view.dims, buffer.shape, strict=True):
            try:
                offset = sum((self.scope.value(_offset(level)) for level in dim.levels), symbolic.constant(0))
                extent = self.scope.value(dim.levels[-1].extent) if dim.levels else symbolic.constant(whole)
            except Untranslatable:
                return None
            if not (offset.is_constant and extent.is_constant):
                return None
            bounds.append((offset.constant, offset.constant + extent.constant))
        if any(low < 0 or high > whole for (low, high), whole in zip(bounds, buffer.shape, strict=True)):
            raise Untranslatable(f"the tile leaves `{buffer.name}`")
        whole_tile = all(bound == (0, extent) for bound, extent in zip(bounds, buffer.shape, strict=True))
        return model.WHOLE if whole_tile else tuple(bounds)


def _offset(level: ir.Level) -> ir.Expr:
    return ir.Binary("*", level.index, level.step)


def _indexed(event: ir.Event, slot: model.IntExpr) -> str:
    return f"{event.name}[{_plain(slot)}]" if event.is_array else event.name


def _plain(expr: model.IntExpr) -> str:
    """Without the parentheses around the whole."""
    text = str(expr)
    return text[1:-1] if isinstance(expr, model.BinOp) and text.startswith("(") else text


def _join(a: model.Access, b: model.Access, shape: tuple[int, ...]) -> model.Access | None:
    """One access for two that follow each other directly, if they differ at most in abutting regions."""
    if replace(a, region=b.region, label=b.label, where=b.where) != b:
        return None
    if a.region == b.region:
        return a
    if not a.region or not b.region:
        return None
    differing = [i for i, (x, y) in enumerate(zip(a.region, b.region, strict=True)) if x != y]
    if len(differing) != 1:
        return None
    (low, high), (next_low, next_high) = a.region[differing[0]], b.region[differing[0]]
    if next_low > high or low > next_high:
        return None
    region = list(a.region)
    region[differing[0]] = (min(low, next_low), max(high, next_high))
    whole = all(bound == (0, extent) for bound, extent in zip(region, shape, strict=True))
    return replace(a, region=model.WHOLE if whole else tuple(region))
