"""Unrolls a program at all trip counts that must be tried, and collects what is found.

Trip counts grow, so what is kept of each pair and defect is its smallest witness.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hb_analyzer.conditions import Conditions, Finding, Pair
from hb_analyzer.defects import ArrivalCensus, cause, deadlocks, overruns
from hb_analyzer.graph import Ordering, topological_order
from hb_analyzer.regions import Atoms
from hb_analyzer.report import Defect
from hb_analyzer.trips import Domain
from hb_analyzer.unawaited import Tiles, unawaited
from hb_analyzer.unroll import Unroller
from hb_analyzer.unrolling import TooLargeError, Unrolling


class Sweep:
    """Collects, over unrollings with growing trip counts, the first finding of each pair and of each defect."""

    def __init__(self, atoms: Mapping[str, Atoms], silent: Collection[str], targets: Collection[Pair]) -> None:
        self.atoms = atoms
        self.silent = silent
        self.targets = set(targets)  # pairs still open
        self.findings: list[tuple[Finding, Unrolling]] = []
        self.deadlocks: list[Defect] = []
        self.overruns: list[Defect] = []
        self.broken: dict[str, Defect] = {}  # events whose arrivals overrun
        self.unawaited: dict[str, Defect] = {}  # by buffer

    def found(self) -> set[object]:
        """Pairs with findings and causes of defects, to compare two sweeps."""
        defects = [*self.deadlocks, *self.overruns, *self.broken.values(), *self.unawaited.values()]
        return {finding.pair for finding, _ in self.findings} | {cause(defect) for defect in defects}

    def visit(self, run: Unrolling, tiles: Tiles | None = None) -> bool:
        """Links and tests one unrolling. False iff it is to stand for fewer ``tiles``, too, and an edge leads to an
        earlier tile."""
        parameters = run.parameters()
        run.link(self.silent)
        order = topological_order(run.preds)
        if run.stuck or len(order) < len(run.preds):
            self.deadlocks += deadlocks(run, parameters)
            return True
        if tiles is not None and run.crosses_tiles():
            return False
        for defect in unawaited(run, self.silent, tiles):
            self.unawaited.setdefault(defect.buffer or "", defect)
        ordering = Ordering(run, order)
        for overrun in overruns(run, ordering, parameters):
            if overrun.breaks_order:
                self.broken.setdefault(overrun.event, overrun.defect)
            else:
                self.overruns.append(overrun.defect)
        for finding in Conditions(run, ordering, self.atoms).findings(self.targets):
            self.targets.discard(finding.pair)
            self.findings.append((finding, run))
        return True


def sweep(
    domain: Domain, atoms: Mapping[str, Atoms], silent: Collection[str], targets: Collection[Pair]
) -> tuple[Sweep, dict[str, Defect]]:
    """Everything found at the trip counts of ``domain``, and the events whose arrivals cannot be right.

    ``targets``: pairs to decide (a name twice: races inside that buffer). ``silent`` events, and those returned, order
    nothing. Raises ModelError and TooLargeError.
    """
    unroller = Unroller(domain.program, domain.prefix)
    runs = [unroller.run(values) for values in domain.valuations(whole=False)]
    census = ArrivalCensus()
    for run in runs:
        census.add(run)
    arrivals = census.defects(domain.program)
    silent = {*silent, *arrivals}
    found = Sweep(atoms, silent, targets)
    tiles = Tiles(domain.prefix, domain.ranges[domain.prefix][0]) if domain.prefix is not None else None
    complete = all(found.visit(run, tiles) for run in runs)
    if domain.prefix is None or (complete and not found.found()):
        return found, arrivals
    # Smaller values of the prefix parameter too: for the smallest witnesses, or because the shortcut fails here.
    whole = Sweep(atoms, silent, targets)
    unroller = Unroller(domain.program)
    try:
        for values in domain.valuations():
            whole.visit(unroller.run(values))
            if complete and whole.found() >= found.found():
                break
    except TooLargeError:
        if not complete:
            raise
        return found, arrivals
    return whole, arrivals
