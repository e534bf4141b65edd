"""Following the scalars of one role instance through its code, including those that change.

A scalar that is only ever stepped is a linear function of a loop's counter, or a running counter of the analysis
(``Step``); ``walk.mutables`` says which. Any other is known from one assignment to the next, and unknown where loops or
branches meet. A running counter's increments are held back until the end of the straight-line code around them, so that
a stage computed before ``it = it + 1`` is still the stage of the old count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from croqtile import ir, symbolic, walk
from croqtile.symbolic import Affine, Facts, Untranslatable
from croqtile.values import Known, Scope
from croqtile.walk import Mutable
from hb_analyzer import model


class Scalars:
    """``emit`` takes the Steps of running counters. ``unfollowed``: scalars that cannot be followed by counting; those
    found on the way are added to ``spoiled``, and what was translated before is then void."""

    def __init__(
        self,
        scope: Scope,
        body: tuple[ir.Stmt, ...],
        emit: Callable[[model.Step], None],
        unfollowed: Collection[ir.Symbol] = (),
    ) -> None:
        self.scope = scope
        self.emit = emit
        self.mutables = walk.mutables(body, scope.key)
        for symbol in unfollowed:
            self.mutables[symbol] = Mutable()
        self.spoiled: set[ir.Symbol] = set()
        self.pending: dict[ir.Symbol, int] = {}  # increments not yet emitted
        self.raw: dict[ir.Symbol, Affine] = {}  # values before any `% modulus`

    def define(self, let: ir.Let) -> None:
        self.scope.bind(let.symbol, let.value)
        known, how = self.scope.known[let.symbol], self.mutables.get(let.symbol)
        if how is None or how.mode != "running":
            return
        if isinstance(known, Affine) and not known.counters() and self._counts_round(known, how):
            count = symbolic.counter(let.symbol.cname, None if how.decreasing else 0)
            self.raw[let.symbol] = known + count
            self._show(let.symbol)
        else:
            how.mode = "flow"

    def assign(self, assign: ir.Assign) -> None:
        symbol, update = assign.symbol, walk.update_of(assign)
        if symbol in self.raw and update is not None:
            self.pending[symbol] = self.pending.get(symbol, 0) + update.by
            self.raw[symbol] = self.raw[symbol] + symbolic.constant(update.by)
            self._show(symbol)
        else:
            self.scope.bind(symbol, assign.value)

    def flush(self, symbols: Collection[ir.Symbol] | None = None) -> None:
        """Emit what is pending (for ``symbols``). Values computed from the old count are lost."""
        for symbol in list(self.pending):
            if symbols is not None and symbol not in symbols:
                continue
            by = self.pending.pop(symbol)
            if by == 0:
                continue
            self.emit(model.Step(symbol.cname, by))
            self.raw[symbol] = self.raw[symbol] - symbolic.constant(by)
            self._lose(symbol)
            self._show(symbol)

    # -- loops and branches

    def enter(self, changed: set[ir.Symbol]) -> None:
        """Before code that assigns ``changed`` and may run any number of times."""
        self.flush(changed)
        for symbol in changed & self.raw.keys():
            self._lose(symbol)

    def enter_loop(self, loop: ir.ForEach, changed: set[ir.Symbol], counter: Affine) -> dict[ir.Symbol, Affine]:
        """At the head of a loop with the counter ``counter``: what holds in every iteration. Returns the first values
        of the scalars that are linear in the counter, for ``leave_loop``. Call ``enter`` first."""
        first: dict[ir.Symbol, Affine] = {}
        for symbol in changed - self.raw.keys():
            how, known = self.mutables[symbol], self.scope.known.get(symbol)
            if how.mode == "closed" and isinstance(known, Affine) and self._counts_round(known, how):
                first[symbol] = known
                self.scope.known[symbol] = self._advanced(known, how, how.per_iteration.get(id(loop), 0), counter)
            else:
                self.scope.forget(symbol, "its value differs between the iterations of a loop")
        return first

    def leave_loop(
        self, loop: ir.ForEach, changed: set[ir.Symbol], first: dict[ir.Symbol, Affine], extent: Affine, facts: Facts
    ) -> None:
        """After the loop; ``facts`` are those from before it."""
        self.scope.facts = facts
        for symbol in changed & self.raw.keys():
            self._lose(symbol)
        for symbol in changed - self.raw.keys():
            how = self.mutables[symbol]
            if symbol in first and symbolic.at_least(extent, 0, facts):
                step = how.per_iteration.get(id(loop), 0)
                self.scope.known[symbol] = self._advanced(first[symbol], how, step, extent)
            else:
                self.scope.forget(symbol, "it is assigned in a loop")

    def leave_branches(
        self, changed: set[ir.Symbol], before: dict[ir.Symbol, Known], after: list[dict[ir.Symbol, Known]], facts: Facts
    ) -> None:
        """After an if; ``after`` holds what was known at the end of each branch."""
        self.scope.known, self.scope.facts = before, facts
        for symbol in changed & self.raw.keys():
            self._lose(symbol)
            self._show(symbol)
        for symbol in changed - self.raw.keys():
            values = [known.get(symbol) for known in after]
            if values[0] is not None and values[0] == values[1]:
                self.scope.known[symbol] = values[0]
            else:
                self.scope.forget(symbol, "it is assigned under a condition")

    def spoil(self, changed: set[ir.Symbol]) -> None:
        """``changed`` are assigned in code that the analysis cannot follow."""
        for symbol in changed:
            if symbol in self.raw:
                self.spoiled.add(symbol)
                self._lose(symbol)
            self.scope.forget(symbol, "it is assigned in code that the analysis cannot follow")

    # -- values

    def _show(self, symbol: ir.Symbol) -> None:
        self.scope.known[symbol] = self._reduced(self.raw[symbol], self.mutables[symbol])

    def _counts_round(self, start: Affine, how: Mutable) -> bool:
        """Is a scalar that starts at ``start`` its count modulo ``how.modulus`` already before it is stepped?"""
        if how.modulus is None:
            return True
        facts = self.scope.facts
        below = symbolic.at_least(symbolic.constant(how.modulus - 1) - start, 0, facts)
        return below and symbolic.at_least(start, 0, facts)

    def _advanced(self, start: Affine, how: Mutable, by: int, count: Affine) -> Known:
        return self._reduced(start + count.scaled(by), how)

    def _reduced(self, value: Affine, how: Mutable) -> Known:
        if how.modulus is None:
            return value
        try:
            return symbolic.remainder(value, symbolic.constant(how.modulus), self.scope.facts)
        except Untranslatable as error:
            return str(error)

    def _lose(self, symbol: ir.Symbol) -> None:
        """The count of ``symbol`` changes: forget what was computed from it."""
        for other, known in self.scope.known.items():
            if other is not symbol and isinstance(known, Affine) and symbol.cname in known.counters():
                self.scope.forget(other, f"it was computed from `{symbol.name}`, which has changed since")
        self.scope.facts = tuple(fact for fact in self.scope.facts if symbol.cname not in fact.counters())
