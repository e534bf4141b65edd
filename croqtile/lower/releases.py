"""Operands released while an instruction may still read them.

Matrix groups that the program commits and awaits itself (``mma.commit; mma.wait<n>;``) may still run when it triggers
the event that lets the producer refill their operands. This pass finds the cases that can be seen inside one role: the
trigger names the very slot that a pending group reads. Anything less certain is left to the analysis of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from croqtile import diagnostics as diag
from croqtile import fold, ir, rewrite


def check(kernel: ir.Kernel, problems: list[diag.Diagnostic]) -> None:
    """Appends a OperandReleased for every such trigger."""
    definitions = {s.symbol: s.value for s in rewrite.statements(kernel.body) if isinstance(s, ir.Let)}
    guards = _guards(kernel, definitions)
    for role in rewrite.roles(kernel):
        walk = _Walk(guards, definitions)
        walk.run(role.body)
        problems += walk.found.values()


# --------------------------------------------------------------------------------------------------------------
# Slot numbers as linear forms


@dataclass(frozen=True)
class Linear:
    """constant + Σ coefficient · symbol, to be taken modulo ``modulus`` if that is set."""

    terms: tuple[tuple[ir.Symbol, int], ...]
    constant: int
    modulus: int | None = None

    def shifted(self, symbol: ir.Symbol) -> Linear:
        """The form for the iteration before: ``symbol`` − 1 in place of ``symbol``."""
        coefficient = dict(self.terms).get(symbol, 0)
        return Linear(self.terms, self.constant - coefficient, self.modulus)


def linear(expr: ir.Expr, definitions: Mapping[ir.Symbol, ir.Expr]) -> Linear | None:
    """``expr`` with its names expanded, if it is linear (modulo a constant, at most once, outermost)."""
    if isinstance(expr, ir.IntLit):
        return Linear((), expr.value)
    if isinstance(expr, ir.Var):
        symbol = expr.symbol
        if symbol.kind is ir.SymbolKind.VALUE and not symbol.mutable and symbol in definitions:
            return linear(definitions[symbol], definitions)
        return None if symbol.mutable else Linear(((symbol, 1),), 0)
    if not isinstance(expr, ir.Binary):
        return None
    left, right = linear(expr.left, definitions), linear(expr.right, definitions)
    if left is None or right is None or left.modulus or right.modulus:
        return None
    if expr.op == "%" and not right.terms and right.constant > 0:
        return Linear(left.terms, left.constant, right.constant)
    if expr.op in "+-":
        sign = 1 if expr.op == "+" else -1
        total = dict(left.terms)
        for symbol, coefficient in right.terms:
            total[symbol] = total.get(symbol, 0) + sign * coefficient
        terms = tuple((s, c) for s, c in total.items() if c)
        return Linear(terms, left.constant + sign * right.constant)
    if expr.op == "*" and not (left.terms and right.terms):
        factor, form = (right.constant, left) if left.terms else (left.constant, right)
        return Linear(tuple((s, c * factor) for s, c in form.terms if factor), form.constant * factor)
    return None


def same_slot(a: Linear | None, b: Linear | None, slots: int) -> bool:
    """Whether both certainly name the same of ``slots`` slots."""
    if slots == 1:
        return True
    if a is None or b is None:
        return False
    if a.modulus not in (None, slots) or b.modulus not in (None, slots):
        return a == b
    difference = dict(a.terms)
    for symbol, coefficient in b.terms:
        difference[symbol] = difference.get(symbol, 0) - coefficient
    multiple = all(c % slots == 0 for c in difference.values())
    return multiple and (a.constant - b.constant) % slots == 0


# --------------------------------------------------------------------------------------------------------------
# Which event lets which buffer be refilled


def _stage(view: ir.View) -> ir.Expr | None:
    """The number of the stage that a tile of shared memory belongs to."""
    assert isinstance(view.root, ir.SharedBuffer)
    if view.root.is_array:
        return view.slot
    levels = view.dims[0].levels
    if not levels:
        return fold.ZERO
    return levels[0].index if levels[0].extent == levels[0].step else None


def _guards(kernel: ir.Kernel, definitions: Mapping[ir.Symbol, ir.Expr]) -> dict[ir.SharedBuffer, ir.Event]:
    """The one event that every copy into a buffer waits for right before, at the slot of its own stage."""
    found: dict[ir.SharedBuffer, set[ir.Event | None]] = {}

    def scan(body: Iterable[ir.Stmt], waits: list[ir.Wait], fresh: bool) -> None:
        for statement in body:
            if isinstance(statement, ir.Wait):
                if not fresh:
                    waits.clear()
                waits.append(statement)
                fresh = True
            elif isinstance(statement, ir.CopyIn):
                fresh = False
                assert isinstance(statement.target.root, ir.SharedBuffer)
                stage = _stage(statement.target)
                event: ir.Event | None = None
                if len(waits) == 1 and stage is not None:
                    wait = waits[0]
                    forms = linear(wait.slot, definitions), linear(stage, definitions)
                    event = wait.event if same_slot(*forms, wait.event.slots) else None
                found.setdefault(statement.target.root, set()).add(event)
            elif isinstance(statement, ir.Trigger):
                fresh = False
            else:
                for inner in rewrite.bodies(statement):
                    scan(inner, list(waits), fresh)

    for role in rewrite.roles(kernel):
        scan(role.body, [], True)
    single = {buffer: next(iter(events)) for buffer, events in found.items() if len(events) == 1}
    return {buffer: event for buffer, event in single.items() if event is not None}


# --------------------------------------------------------------------------------------------------------------
# Pending reads along one role


@dataclass(frozen=True)
class _Read:
    buffer: ir.SharedBuffer
    stage: Linear | None
    span: ir.Span


class _Walk:
    """Follows a role. ``closed``: the reads of each group that may still run; ``open``: not yet committed."""

    def __init__(self, guards: Mapping[ir.SharedBuffer, ir.Event], definitions: Mapping[ir.Symbol, ir.Expr]) -> None:
        self.guards = guards
        self.definitions = definitions
        self.closed: list[tuple[_Read, ...]] = []
        self.open: list[_Read] = []
        self.found: dict[ir.Span, diag.Diagnostic] = {}

    def run(self, body: Iterable[ir.Stmt]) -> None:
        for statement in body:
            if isinstance(statement, ir.Mma):
                self.read(statement)
            elif isinstance(statement, ir.MmaCommit):
                self.closed.append(tuple(self.open))
                self.open = []
            elif isinstance(statement, ir.MmaWait):
                self.closed = self.closed[-statement.pending :] if statement.pending else []
            elif isinstance(statement, ir.Trigger):
                self.release(statement)
            elif isinstance(statement, ir.ForEach):
                self.loop(statement)
            else:
                self.branches(rewrite.bodies(statement))

    def read(self, mma: ir.Mma) -> None:
        for operand in (mma.a, mma.b):
            if isinstance(operand, ir.SharedOperand) and isinstance(operand.view.root, ir.SharedBuffer):
                stage = _stage(operand.view)
                form = linear(stage, self.definitions) if stage is not None else None
                self.open.append(_Read(operand.view.root, form, operand.span))

    def release(self, trigger: ir.Trigger) -> None:
        slot = linear(trigger.slot, self.definitions)
        for read in [read for group in [*self.closed, tuple(self.open)] for read in group]:
            if self.guards.get(read.buffer) is trigger.event and same_slot(slot, read.stage, trigger.event.slots):
                note = diag.Note(read.span, "it is read here, by a group that nothing has waited for")
                problem = diag.OperandReleased(trigger.span, read.buffer.name, trigger.event.name, notes=(note,))
                self.found.setdefault(trigger.span, problem)

    def loop(self, statement: ir.ForEach) -> None:
        before = list(self.closed), list(self.open)
        self.run(statement.body)
        # Once more, with what the iteration before has left pending.
        self.closed = [self.before(group, statement.counter) for group in self.closed]
        self.open = list(self.before(tuple(self.open), statement.counter))
        self.run(statement.body)
        # After the loop its counter means nothing any more; of what is pending, only the buffer is known.
        self.closed = [self.forget(group, statement.counter) for group in self.closed]
        self.open = list(self.forget(tuple(self.open), statement.counter))
        if not self.closed and not self.open:
            self.closed, self.open = before

    def before(self, reads: tuple[_Read, ...], counter: ir.Symbol) -> tuple[_Read, ...]:
        return tuple(_Read(r.buffer, r.stage.shifted(counter) if r.stage else None, r.span) for r in reads)

    def forget(self, reads: tuple[_Read, ...], counter: ir.Symbol) -> tuple[_Read, ...]:
        return tuple(
            _Read(r.buffer, None if r.stage is None or counter in dict(r.stage.terms) else r.stage, r.span)
            for r in reads
        )

    def branches(self, bodies: tuple[tuple[ir.Stmt, ...], ...]) -> None:
        """Only what is pending whichever way was taken is certain; the rest is left to the analysis."""
        if not any(bodies):
            return
        before = list(self.closed), list(self.open)
        ends = []
        for body in bodies:
            self.closed, self.open = list(before[0]), list(before[1])
            self.run(body)
            ends.append((list(self.closed), list(self.open)))
        same = all(end == ends[0] for end in ends)
        self.closed, self.open = ends[0] if same else ([], [])
