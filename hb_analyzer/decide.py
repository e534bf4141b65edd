"""Decides for every pair of buffers whether they may share addresses, and reports the program's defects.

The program is unrolled at the trip counts of ``trips.py``; on each graph both conditions of ``conditions.py`` are
tested for all pairs. For one loop the distance form (``distance.py``) decides all trip counts at once: there a yes
needs both. What the model cannot express, and a program that deadlocks, is answered no.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations

from hb_analyzer.conditions import Conditions, Finding, Pair, atoms_by_buffer
from hb_analyzer.defects import ArrivalCensus, Parameters, cause, deadlocks, overruns, smallest
from hb_analyzer.graph import Ordering, topological_order
from hb_analyzer.interleave import interleaving
from hb_analyzer.model import Access, Opaque, Program
from hb_analyzer.placement import place, sequential
from hb_analyzer.proof import proof_paths
from hb_analyzer.regions import Atoms
from hb_analyzer.report import Defect, Report, Verdict
from hb_analyzer.trips import Domain, UnboundedError, domain_of, walk
from hb_analyzer.unroll import NODE_LIMIT, ModelError, TooLargeError, Unroller, Unrolling

ORDERED = "all accesses are ordered at every trip count, and no value is lost"


@dataclass
class Decision:
    """Everything decided about a program; what ``analyse`` turns into a report."""

    program: Program
    refused: dict[Pair, Verdict] = field(default_factory=dict)
    races: dict[Pair, Defect] = field(default_factory=dict)
    deadlocks: list[Defect] = field(default_factory=list)
    overruns: list[Defect] = field(default_factory=list)
    arrivals: list[Defect] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)  # events that order nothing
    notes: list[str] = field(default_factory=list)
    evidence: dict[Pair, tuple[Finding, Unrolling]] = field(default_factory=dict)


def analyse(program: Program) -> Report:
    """Verdicts for all pairs of buffers, defects, and a placement that overlaps only what was proved."""
    decision = decide(program)
    names = sorted(buffer.name for buffer in program.buffers)
    verdicts = tuple(
        decision.refused.get(pair) or Verdict(*pair, overlap=True, why=ORDERED) for pair in combinations(names, 2)
    )
    blocks = {buffer.name: (buffer.size, buffer.align) for buffer in program.buffers}
    return Report(
        program=program.name,
        framework=program.framework,
        baseline=sequential(blocks),
        verdicts=verdicts,
        placement=place(blocks, [frozenset((v.a, v.b)) for v in verdicts if not v.overlap]),
        deadlocks=tuple(decision.deadlocks),
        overruns=tuple(decision.overruns),
        races=tuple(decision.races.values()),
        arrivals=tuple(decision.arrivals),
        assumptions=program.assumptions,
        notes=tuple(decision.notes),
    )


def explain_pair(program: Program, a: str, b: str) -> Verdict:
    """The verdict of ``analyse`` for two buffers, with its evidence: the chains that order their accesses, or an
    interleaving in which the overlap is observed. Raises KeyError if a name is unknown or a == b."""
    low, high = pair = (min(a, b), max(a, b))
    known = {buffer.name for buffer in program.buffers}
    if a == b or not {a, b} <= known:
        raise KeyError(pair)
    decision = decide(program)
    if pair in decision.evidence:
        finding, run = decision.evidence[pair]
        return replace(decision.refused[pair], interleaving=interleaving(run, finding))
    if pair in decision.refused:
        return decision.refused[pair]
    domain = domain_of(program)
    # Far enough for every ring to wrap around once.
    depth = 1 + max([1, *(buffer.slots for buffer in program.buffers), *(event.slots for event in program.events)])
    values = {name: min(values[-1], max(values[0], depth)) for name, values in domain.ranges.items()}
    run = Unroller(domain.program).run(values)
    run.link(decision.silent)
    ordering = Ordering(run, topological_order(run.preds))
    return Verdict(low, high, True, why=ORDERED, proof=proof_paths(run, ordering, low, high))


def decide(program: Program) -> Decision:
    """Decides all pairs. Never raises for a program of the model's types: what it cannot decide it refuses."""
    decision = Decision(program)
    pairs = set(combinations(sorted(buffer.name for buffer in program.buffers), 2))
    _refuse_statically(decision, pairs)
    try:
        domain = domain_of(program)
        _decide_by_unrolling(decision, domain, pairs)
    except UnboundedError as error:
        _refuse_rest(decision, pairs, str(error))
    except ModelError as error:
        _refuse_rest(decision, pairs, f"the program cannot be executed: {error}")
    except TooLargeError:
        _refuse_rest(decision, pairs, "unrolling all trip counts that must be tried is too large")
    if decision.deadlocks:
        deadlock = decision.deadlocks[0]
        _refuse_rest(decision, pairs, f"the program deadlocks: {deadlock.why}", deadlock.parameters)
    return decision


def _refuse_statically(decision: Decision, pairs: set[Pair]) -> None:
    """Barrier storage, and what the model cannot express."""
    program = decision.program
    owned = {buffer.name for buffer in program.buffers if buffer.barrier_storage}
    unknown: dict[str, Opaque] = {}
    for role in program.roles:
        for statement in walk(role.body):
            if isinstance(statement, Opaque):
                decision.silent.update(statement.events)
                for name in statement.buffers:
                    unknown.setdefault(name, statement)
                decision.notes.append(statement.reason + (f" ({statement.where})" if statement.where else ""))
    for pair in pairs:
        for name in pair:
            if name in unknown:
                opaque = unknown[name]
                where = f" ({opaque.where})" if opaque.where else ""
                decision.refused[pair] = Verdict(*pair, False, "unknown", f"{name}: {opaque.reason}{where}")
            elif name in owned and pair not in decision.refused:
                why = f"{name} holds mbarriers, which own their bytes until an mbarrier.inval that a CTA barrier orders"
                decision.refused[pair] = Verdict(*pair, False, "conflict", why)


def _refuse_rest(decision: Decision, pairs: set[Pair], why: str, parameters: Parameters = ()) -> None:
    for pair in pairs:
        decision.refused.setdefault(pair, Verdict(*pair, False, "unknown", why, parameters=parameters))
    decision.notes.append(why)


def _decide_by_unrolling(decision: Decision, domain: Domain, pairs: set[Pair]) -> None:
    unroller = Unroller(domain.program)

    def smaller() -> Iterator[Unrolling]:
        unroller.budget = NODE_LIMIT
        return (unroller.run(values) for values in domain.valuations())

    runs = [unroller.run(values) for values in domain.valuations(whole=False)]
    census = ArrivalCensus()
    for run in runs:
        census.add(run)
    arrivals = census.defects(domain.program)
    decision.arrivals = list(arrivals.values())
    decision.silent |= arrivals.keys()
    atoms = atoms_by_buffer(domain.program)
    buffers = [buffer.name for buffer in domain.program.buffers]
    targets = {pair for pair in pairs if pair not in decision.refused} | {(name, name) for name in buffers}
    while True:
        sweep = Sweep(domain.program, atoms, frozenset(decision.silent), set(targets))
        complete = all(sweep.visit(run, crossing=domain.prefix is None) for run in runs)
        if domain.prefix is not None and (not complete or sweep.found()):
            # Smaller values of the prefix parameter too: for the smallest witness, or because the shortcut fails here.
            known, sweep = sweep.found(), Sweep(domain.program, atoms, frozenset(decision.silent), set(targets))
            for run in smaller():
                sweep.visit(run)
                if complete and sweep.found() >= known:
                    break
        if not sweep.broken:
            break
        # Their arrivals can be counted for the wrong setting: they order nothing, so decide again without them.
        decision.silent |= sweep.broken.keys()
        decision.overruns += sweep.broken.values()
        unroller.budget = NODE_LIMIT
        runs = [unroller.run(values) for values in domain.valuations(whole=False)]
    decision.deadlocks = list(smallest(sweep.deadlocks))
    decision.overruns = list(smallest([*decision.overruns, *sweep.overruns]))
    for finding, run in sweep.findings:
        if finding.pair[0] == finding.pair[1]:
            decision.races[finding.pair] = _race(finding, run)
        else:
            decision.refused[finding.pair] = _verdict(finding, run)
            decision.evidence[finding.pair] = (finding, run)


class Sweep:
    """Collects, over unrollings with growing trip counts, the first finding of each pair and of each defect."""

    def __init__(self, program: Program, atoms: dict[str, Atoms], silent: frozenset[str], targets: set[Pair]) -> None:
        self.program = program
        self.atoms = atoms
        self.silent = silent
        self.targets = targets  # pairs still open
        self.findings: list[tuple[Finding, Unrolling]] = []
        self.deadlocks: list[Defect] = []
        self.overruns: list[Defect] = []
        self.broken: dict[str, Defect] = {}  # events whose arrivals overrun

    def found(self) -> set[object]:
        """Pairs with findings and causes of defects, to compare two sweeps."""
        defects = [*self.deadlocks, *self.overruns, *self.broken.values()]
        return {finding.pair for finding, _ in self.findings} | {cause(defect) for defect in defects}

    def visit(self, run: Unrolling, crossing: bool = True) -> bool:
        """Links and tests one unrolling. False iff ``crossing`` is not allowed and an edge leads to an earlier tile."""
        parameters = _parameters(run)
        run.link(self.silent)
        order = topological_order(run.preds)
        if run.stuck or len(order) < len(run.preds):
            self.deadlocks += deadlocks(run, parameters)
            return True
        if not crossing and run.crosses_tiles():
            return False
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


def _parameters(run: Unrolling) -> Parameters:
    return tuple(run.values.items())


def _verdict(finding: Finding, run: Unrolling) -> Verdict:
    first, second = run.accesses[finding.first], run.accesses[finding.second]
    a, b = run.site(first.begin), run.site(second.begin)
    return Verdict(
        *finding.pair,
        overlap=False,
        kind="clobber" if finding.kind == "clobber" else "conflict",
        why=explain_finding(finding, run),
        first=a,
        second=b,
        parameters=_parameters(run),
    )


def _race(finding: Finding, run: Unrolling) -> Defect:
    first, second = run.accesses[finding.first], run.accesses[finding.second]
    return Defect(
        "race",
        f"race in {first.op.buffer}[{first.slot}]: {explain_finding(finding, run)}",
        run.site(first.begin),
        run.site(second.begin),
        buffer=first.op.buffer,
        parameters=_parameters(run),
        interleaving=interleaving(run, finding),
    )


def explain_finding(finding: Finding, run: Unrolling) -> str:
    """The finding in one sentence."""
    first, second = run.accesses[finding.first], run.accesses[finding.second]
    a, b = run.site(first.begin), run.site(second.begin)
    if finding.kind == "clobber":
        assert finding.between is not None
        between = run.accesses[finding.between]
        return (
            f"the value that {_what(first.op)} leaves ({a}) is still read ({b}) after "
            f"{_what(between.op)} ({run.site(between.begin)})"
        )
    if finding.kind == "proxy":
        return (
            f"no proxy fence between {_what(first.op)} by threads ({a}) and the asynchronous {_what(second.op)} ({b})"
        )
    never = next((f"; {_what(x.op)} is never awaited" for x in (first, second) if x.end is None), "")
    return f"{_what(first.op)} ({a}) and {_what(second.op)} ({b}) are not ordered{never}"


def _what(op: Access) -> str:
    kind = "read of" if op.mode == "r" else "copy into" if op.ends == "event" else "write of"
    return f"{kind} {op.buffer}"
