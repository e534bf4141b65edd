"""How many triggers complete a setting of each event.

Every warpgroup (or one-thread role) that triggers a slot counts once. Where an index uses the warpgroup number, each
may have slots of its own; so the count is made per slot, over all values that the index can take.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from croqtile import diagnostics as diag
from croqtile import fold, ir, rewrite

_Values = frozenset[int]
_Source = tuple[int | None, int | None]  # who triggers: the warpgroup, and its thread in a role of one thread
_BLOCK: _Source = (None, None)  # the whole CTA, in a statement at block level


def count(kernel: ir.Kernel, problems: list[diag.Diagnostic]) -> ir.Kernel:
    """The kernel with ``arrivals`` set on its events."""
    definitions = {s.symbol: s.value for s in rewrite.statements(kernel.body) if isinstance(s, ir.Let)}
    triggers: dict[ir.Event, list[tuple[_Source, ir.Trigger]]] = {event: [] for event in kernel.events}
    for role in rewrite.roles(kernel):
        for instance in role.instances:
            for trigger in reached(role.body, kernel.warpgroup, instance):
                triggers[trigger.event].append(((instance, role.thread), trigger))
    for trigger in reached(kernel.body, kernel.warpgroup, None):
        triggers[trigger.event].append((_BLOCK, trigger))
    completed: dict[object, object] = {}
    for event, made in triggers.items():
        problems += _mixed(event, made)
        per_slot: list[int] = []
        for slot in range(event.slots):
            arriving = {}
            for source, trigger in made:
                known = {} if source[0] is None else {kernel.warpgroup: source[0]}
                if slot in _Slots(known, definitions, event.slots).of(trigger.slot):
                    arriving[source] = kernel.cluster if trigger.cluster else 1
            per_slot.append(sum(arriving.values()))
        counts = sorted({number for number in per_slot if number})
        if len(counts) > 1:
            problems.append(diag.UnevenArrivals(event.span, event.name, " or ".join(map(str, counts))))
        completed[event] = dataclasses.replace(event, arrivals=max(counts, default=0))
    return rewrite.replace(kernel, completed)


def _mixed(event: ir.Event, made: list[tuple[_Source, ir.Trigger]]) -> list[diag.Diagnostic]:
    """A warpgroup whose triggers count differently would need a different number of arrivals per setting."""
    for source, trigger in made:
        others = [other for who, other in made if who == source and not other.cluster]
        if trigger.cluster and others:
            note = diag.Note(others[0].span, "it counts in this CTA only here")
            return [diag.MixedTriggers(trigger.span, event.name, notes=(note,))]
    return []


def reached(body: Iterable[ir.Stmt], warpgroup: ir.Symbol, instance: int | None) -> Iterator[ir.Trigger]:
    """The triggers that warpgroup ``instance`` (None: the CTA, outside roles) can come to."""
    for statement in body:
        if isinstance(statement, ir.Trigger):
            yield statement
        elif isinstance(statement, ir.ForEach):
            yield from reached(statement.body, warpgroup, instance)
        elif isinstance(statement, ir.OnlyWarpgroups):
            if instance in statement.instances:
                yield from reached(statement.body, warpgroup, instance)
        elif isinstance(statement, ir.If):
            taken = fold.evaluate(statement.condition, {} if instance is None else {warpgroup: instance})
            for side, skipped in ((statement.then, taken == 0), (statement.orelse, taken not in (None, 0))):
                if not skipped:
                    yield from reached(side, warpgroup, instance)


class _Slots:
    """The slots that an index expression may name; every slot where that cannot be told."""

    _LIMIT = 256  # values tracked per expression

    def __init__(self, values: Mapping[ir.Symbol, int], definitions: Mapping[ir.Symbol, ir.Expr], slots: int) -> None:
        self.values = values
        self.definitions = definitions
        self.everything = frozenset(range(slots))

    def of(self, expr: ir.Expr) -> _Values:
        return self._of(expr) or self.everything

    def _of(self, expr: ir.Expr) -> _Values | None:
        if isinstance(expr, ir.IntLit):
            return frozenset((expr.value,))
        if isinstance(expr, ir.Var):
            return self._symbol(expr.symbol)
        if not isinstance(expr, ir.Binary):
            return None
        left, right = self._of(expr.left), self._of(expr.right)
        if expr.op == "%" and left is None and right is not None and len(right) == 1:
            return frozenset(range(max(right))) if max(right) <= self._LIMIT else None
        if left is None or right is None or len(left) * len(right) > self._LIMIT:
            return None
        results = {fold.integer(fold.binary(expr.op, ir.IntLit(a), ir.IntLit(b))) for a in left for b in right}
        return frozenset(value for value in results if value is not None)

    def _symbol(self, symbol: ir.Symbol) -> _Values | None:
        if symbol in self.values:
            return frozenset((self.values[symbol],))
        if symbol.kind is ir.SymbolKind.VALUE:
            known = symbol in self.definitions and not symbol.mutable
            return self._of(self.definitions[symbol]) if known else None
        limit = fold.integer(symbol.bound) if symbol.bound is not None else None
        return frozenset(range(limit)) if limit is not None and limit <= self._LIMIT else None
