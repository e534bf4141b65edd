"""Decides for every pair of buffers whether they may share addresses, and reports the program's defects.

What is decided, and by what:

* the model's rules are checked (``validate.py``); barrier storage, and buffers that an Opaque statement touches, are
  refused outright;
* the trip counts that stand for all trip counts are chosen (``trips.py``); where no finite choice is known to suffice,
  everything is refused;
* at each of them the program is unrolled into its happens-before graph (``unroll.py``, ``unrolling.py``), which is
  checked for deadlocks and overruns (``defects.py``) and closed (``graph.py``). Events whose arrivals cannot be right
  order nothing, and all is decided again without them: an order is used only if every arrival it rests on is counted
  for the setting that it is meant for;
* both conditions of sharing, and races inside each buffer, are tested on every pair of access instances
  (``conditions.py``);
* copies that nobody waits for are looked for (``unawaited.py``); they bear on no pair, as they end after everything;
* a program of one loop is also decided for all trip counts at once (``single_loop.py``, ``distance*.py``): there a yes
  needs both answers. Nested loops rest on the choice of trip counts alone;
* a program that deadlocks at some trip count is refused as a whole: what it would have done is not known.

A yes therefore means: at no trip count does the graph leave a conflict or a clobber. A no carries its smallest witness.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations

from hb_analyzer.composite_trips import UnboundedError
from hb_analyzer.conditions import Finding, Pair, atoms_by_buffer
from hb_analyzer.defects import Parameters, smallest
from hb_analyzer.distance_conditions import DistanceDecision, decide_by_distance
from hb_analyzer.graph import Ordering, topological_order
from hb_analyzer.interleave import interleaving
from hb_analyzer.model import Opaque, Program
from hb_analyzer.placement import place, sequential
from hb_analyzer.proof import proof_paths
from hb_analyzer.regions import Atoms
from hb_analyzer.report import Defect, Report, Verdict
from hb_analyzer.single_loop import OutOfClassError
from hb_analyzer.sweep import sweep
from hb_analyzer.traverse import accesses_of, walk
from hb_analyzer.trips import Domain, domain_of
from hb_analyzer.unroll import Unroller
from hb_analyzer.unrolling import ModelError, TooLargeError, Unrolling
from hb_analyzer.validate import validate
from hb_analyzer.wording import describe_access, race_of, verdict_of

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
    unawaited: dict[str, Defect] = field(default_factory=dict)  # by buffer
    silent: set[str] = field(default_factory=set)  # events that order nothing
    notes: list[str] = field(default_factory=list)
    undecided: str = ""
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
        unawaited=tuple(decision.unawaited.values()),
        assumptions=program.assumptions,
        notes=tuple(decision.notes),
        undecided=decision.undecided,
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
    try:
        validate(program)
        _refuse_statically(decision, pairs)
        for event in sorted({str(a.event) for a in accesses_of(program) if a.event in decision.silent}):
            decision.notes.append(f"whether somebody waits for every copy bound to {event} is not checked")
        _decide_open(decision, domain_of(program), pairs)
    except UnboundedError as error:
        decision.undecided = str(error)
    except ModelError as error:
        decision.undecided = f"the model does not allow this program: {error}"
    except TooLargeError:
        decision.undecided = "unrolling all trip counts that must be tried is too large"
    if decision.undecided:
        _refuse_rest(decision, pairs, decision.undecided)
    elif decision.deadlocks:
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


def _decide_open(decision: Decision, domain: Domain, pairs: set[Pair]) -> None:
    """Decides what is not refused yet: by unrolling and, for one loop, by distances as well."""
    program = domain.program
    atoms = atoms_by_buffer(program)
    targets = {pair for pair in pairs if pair not in decision.refused} | {(b.name, b.name) for b in program.buffers}
    while True:
        found, arrivals = sweep(domain, atoms, decision.silent, targets)
        decision.arrivals = list(arrivals.values())
        decision.silent |= arrivals.keys()
        # Arrivals that can be counted for the wrong setting: such events order nothing, so decide again without them.
        broken = dict(found.broken)
        distances = _distances(decision, domain, atoms) if not broken and not found.deadlocks else None
        if distances is not None:
            for event in distances.broken:
                why = f"{event}: at large trip counts an arrival can come before the setting before its own"
                broken[event] = Defect("overrun", why, event=event)
        if not broken:
            break
        decision.silent |= broken.keys()
        decision.overruns += broken.values()
    decision.deadlocks = list(smallest(found.deadlocks))
    decision.overruns = list(smallest([*decision.overruns, *found.overruns]))
    decision.unawaited = found.unawaited
    for finding, run in found.findings:
        if finding.pair[0] == finding.pair[1]:
            decision.races[finding.pair] = race_of(finding, run)
        else:
            decision.refused[finding.pair] = verdict_of(finding, run)
            decision.evidence[finding.pair] = (finding, run)
    if distances is not None:
        _refuse_by_distance(decision, distances)


def _distances(decision: Decision, domain: Domain, atoms: dict[str, Atoms]) -> DistanceDecision | None:
    """The distance form, if the program has it and unrolling did not try every trip count that can occur."""
    used = [parameter for parameter in domain.program.parameters if parameter.name in domain.ranges]
    if len(used) != 1 or (used[0].maximum is not None and used[0].maximum <= domain.ranges[used[0].name][-1]):
        return None
    try:
        result = decide_by_distance(domain.program, decision.silent, atoms, used[0].minimum)
    except OutOfClassError as reason:
        most = domain.ranges[used[0].name][-1]
        decision.notes.append(f"decided by unrolling alone, up to trip count {most} ({reason})")
        return None
    return result


def _refuse_by_distance(decision: Decision, distances: DistanceDecision) -> None:
    """A yes needs both forms. They agree on these programs, so this adds nothing unless one of them is wrong."""
    if distances.deadlock:
        decision.deadlocks.append(Defect("deadlock", "circular wait inside one iteration of the loop"))
    for pair, (kind, first, second) in distances.refused.items():
        if pair not in decision.refused:
            what = f"{describe_access(first.op)} and {describe_access(second.op)}"
            verdict_kind = "clobber" if kind == "clobber" else "conflict"
            why = f"{what}: {verdict_kind} at some trip count beyond those unrolled"
            decision.refused[pair] = Verdict(*pair, False, verdict_kind, why)
    for name, copy in distances.unawaited.items():
        if name not in decision.unawaited:
            why = f"{describe_access(copy.op)} may be under way when the CTA ends"
            why += " at some trip count beyond those unrolled"
            decision.unawaited[name] = Defect("unawaited", why, buffer=name, event=copy.op.event)
    for name, (first, second) in distances.races.items():
        if (name, name) not in decision.races:
            why = f"race in {name}: {describe_access(first.op)} and {describe_access(second.op)} are not ordered"
            decision.races[name, name] = Defect("race", f"{why} at some trip count beyond those unrolled", buffer=name)
