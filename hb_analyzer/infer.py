"""Loops, carried events and counts that a pattern file leaves unsaid.

The published format has no loop marks. A role's loop is then the *hull* of its phases on cycles of G
(``phase_graph.py``): earlier phases are its prologue, later ones its epilogue, each run once, and all hulls run the
same number N ≥ 1 of times. An event is *carried* (its wait in iteration i+1 is satisfied by iteration i, so the first
wait needs a setting made before the loop) by the first rule that applies:

  (a) ``initial`` says that it starts set;
  (b) a prologue phase and a hull phase both trigger it;
  then, among the events on cycles of the edges that remain inside one iteration:
  (c) it has the direction (triggering role → waiting role) of an (a)/(b) event, and not the reverse of one;
  (d) it goes from a role that is not a producer into one named producer;
  (e) nothing tells which event of the cycle is carried: all are, and no buffer of the cycle may overlap another.

Each rule is applied to all events at once, so the order of the file does not matter. What (c), (d) and (e) decide is
an assumption, and printed.

A signal that is missing in such a file takes phases off the cycles of G, so that they seem to run once and *more*
overlap seems safe. The buffers of a phase outside the hulls that waits for something and triggers an event for which
nobody waits, or that waits for an event that nobody sets, therefore answer "unknown".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .model import Name, Parameter
from .pattern import LoopSpec, Pattern, PhaseId
from .phase_graph import GraphNode, PhaseEdge, cycle_groups, edges_on_cycles, nodes_of, phase_edges

HULL = "loop"  # the name of the inferred loop
HULL_SPEC = LoopSpec("i", Name("N"))
HULL_PARAMETER = Parameter("N", minimum=1)


@dataclass
class Inference:
    """Everything that ``translate.py`` needs beyond the file."""

    edges: list[PhaseEdge]
    loops: dict[PhaseId, tuple[str, ...]]  # loops around each phase, outermost first
    carried: dict[str, str] = field(default_factory=dict)  # event -> why, for people
    initial: dict[str, int] = field(default_factory=dict)  # event -> settings made before the roles start
    arrivals: dict[str, int] = field(default_factory=dict)
    slots: dict[str, int] = field(default_factory=dict)  # event -> slots
    stages: dict[str, int] = field(default_factory=dict)  # buffer -> slots
    wait_once: set[tuple[PhaseId, str]] = field(default_factory=set)  # waited for in the first iteration only
    credited: set[tuple[PhaseId, str]] = field(default_factory=set)  # triggers that `initial` stands for
    unknown: dict[str, str] = field(default_factory=dict)  # buffer -> why the answer is unknown
    assumptions: list[str] = field(default_factory=list)

    def looped(self, id: PhaseId) -> bool:
        return bool(self.loops[id])


def infer(pattern: Pattern) -> Inference:
    """Loops, carried events, arrival counts and ring depths of a pattern."""
    edges = phase_edges(pattern)
    if pattern.marked:
        result = Inference(edges, {id: phase.loop for id, phase in pattern.phases()})
        _carried_as_written(pattern, result)
    else:
        nodes = nodes_of(pattern, edges)
        result = Inference(edges, _hulls(pattern, nodes, edges))
        _carried(pattern, nodes, result)
        _single_waits(pattern, result)
        _missing_signals(pattern, result)
    _arrivals(pattern, result)
    _depths(pattern, result)
    return result


# ---------------------------------------------------------------------------------------------------------------
# Loops


def _hulls(pattern: Pattern, nodes: list[GraphNode], edges: list[PhaseEdge]) -> dict[PhaseId, tuple[str, ...]]:
    on_cycles = cycle_groups(nodes, edges)
    loops: dict[PhaseId, tuple[str, ...]] = {}
    for group in pattern.groups:
        ids = [PhaseId(group.name, i) for i in range(len(group.phases))]
        looping = [id.position for id in ids if id in on_cycles]
        for id in ids:
            inside = bool(looping) and looping[0] <= id.position <= looping[-1]
            loops[id] = (HULL,) if inside else ()
    return loops


def _is_prologue(result: Inference, id: PhaseId) -> bool:
    """Run once, and not after a loop of its role."""
    return not any(
        result.loops[other] for other in result.loops if other.role == id.role and other.position <= id.position
    )


# ---------------------------------------------------------------------------------------------------------------
# Carried events


def _released_before(pattern: Pattern, result: Inference, event: str) -> bool:
    triggers = pattern.triggers_of(event)
    return any(_is_prologue(result, t) for t in triggers) and any(result.looped(t) for t in triggers)


def _carried_as_written(pattern: Pattern, result: Inference) -> None:
    """Rules (a) and (b). With loop marks that is all: nothing is assumed."""
    for event in pattern.event_names():
        if event in pattern.events and pattern.events[event].initial:
            result.initial[event] = pattern.events[event].initial or 0
            result.carried[event] = "starts set"
        elif _released_before(pattern, result, event):
            result.carried[event] = "released before the loop"


def _carried(pattern: Pattern, nodes: list[GraphNode], result: Inference) -> None:
    _carried_as_written(pattern, result)
    certain = sorted(result.carried)
    fixed = {event for event, spec in pattern.events.items() if spec.initial == 0}  # the file forbids the assumption

    def inside_iteration(edge: PhaseEdge) -> bool:
        return edge.kind != "event" or edge.name not in result.carried

    def cyclic_events() -> dict[int, set[str]]:
        """The events on cycles inside one iteration, by component."""
        found = edges_on_cycles(nodes, result.edges, inside_iteration)
        return {
            number: {edge.name for edge in edges if edge.kind == "event" and edge.name not in fixed}
            for number, edges in found.items()
        }

    def assume(event: str, why: str) -> None:
        result.carried[event] = why
        result.initial[event] = 1
        result.assumptions.append(f'event "{event}" starts set: {why}')

    directions = {pair: event for event in reversed(certain) for pair in _directions(pattern, event)}
    reverse = {(to, source) for source, to in directions}
    for event in sorted(set().union(*cyclic_events().values())):
        pairs = _directions(pattern, event)
        same = sorted(pairs & set(directions))
        if same and not pairs & reverse:
            source, to = same[0]
            model = directions[same[0]]
            assume(event, f'it goes from {source} to {to}, as "{model}" does, which {_how(result.carried[model])}')

    for event in sorted(set().union(*cyclic_events().values())):
        pairs = _directions(pattern, event)
        into = sorted((s, t) for s, t in pairs if _is_producer(pattern, t) and not _is_producer(pattern, s))
        if into:
            assume(event, f"it goes from {into[0][0]} into the producer {into[0][1]}, and a loop needs one such event")

    for number, events in sorted(cyclic_events().items(), key=lambda item: sorted(item[1])):
        if not events:
            continue
        cycle = edges_on_cycles(nodes, result.edges, inside_iteration)[number]
        names = ", ".join(sorted(events))
        for buffer in _buffers_on(pattern, cycle):
            result.unknown.setdefault(buffer, f"nothing tells which of the events {names} starts set")
    for event in sorted(set().union(*cyclic_events().values())):
        assume(event, "no rule tells which event of its cycle does, so all are taken to, and its buffers never overlap")


def _how(why: str) -> str:
    return {"released before the loop": "is released before the loop"}.get(why, why)


def _directions(pattern: Pattern, event: str) -> set[tuple[str, str]]:
    return {(t.role, w.role) for t in pattern.triggers_of(event) for w in pattern.waits_of(event)}


def _is_producer(pattern: Pattern, role: str) -> bool:
    return pattern.group(role).is_producer


def _buffers_on(pattern: Pattern, edges: Iterable[PhaseEdge]) -> list[str]:
    ids = {node for edge in edges for node in (edge.source, edge.target) if isinstance(node, PhaseId)}
    return sorted({buffer for id in ids for buffer in pattern.phase(id).buffers})


def _single_waits(pattern: Pattern, result: Inference) -> None:
    """An event waited for in a hull but triggered only outside is waited for once, in the first iteration."""
    for event in pattern.event_names():
        triggers = pattern.triggers_of(event)
        if triggers and not any(result.looped(t) for t in triggers):
            result.wait_once |= {(wait, event) for wait in pattern.waits_of(event) if result.looped(wait)}


def _missing_signals(pattern: Pattern, result: Inference) -> None:
    """Half a handshake outside the hulls: it may belong to a loop that the missing half would show."""
    for id, phase in sorted(pattern.phases(), key=lambda item: item[0]):  # not the order of the file
        if result.looped(id):
            continue
        unset = [s.event for s in phase.waits if not pattern.triggers_of(s.event) and not result.initial.get(s.event)]
        unheard = [s.event for s in phase.triggers if phase.waits and not pattern.waits_of(s.event)]
        problems = [f'nobody triggers "{event}"' for event in unset] + [f'nobody waits for "{e}"' for e in unheard]
        for buffer in phase.buffers if problems else ():
            why = f'{problems[0]}: with a signal missing, it cannot be told whether "{phase.label}" is in a loop'
            result.unknown.setdefault(buffer, why)


# ---------------------------------------------------------------------------------------------------------------
# Counts


def _arrivals(pattern: Pattern, result: Inference) -> None:
    """How many roles set an event together, where the file does not say: all that trigger it in loops (or at all)."""
    for event in pattern.event_names():
        declared = pattern.events[event].arrivals if event in pattern.events else None
        if declared is not None:
            result.arrivals[event] = declared
            continue
        triggers = pattern.triggers_of(event)
        looping = {t.role for t in triggers if result.looped(t)}
        once = {t.role for t in triggers if not result.looped(t)}
        roles = looping or once
        result.arrivals[event] = max(1, len(roles))
        if len(roles) > 1:
            names = ", ".join(sorted(roles))
            result.assumptions.append(
                f'event "{event}" is set when all of {names} have triggered it ("arrivals" is not given)'
            )
        early = [t for t in triggers if _is_prologue(result, t)]
        if looping and early and {t.role for t in early} != looping:
            result.credited |= {(t, event) for t in early}
            result.initial[event] = result.initial.get(event, 0) + 1
            result.assumptions.append(
                f'the triggers of event "{event}" before the loop ({", ".join(sorted({t.role for t in early}))}) '
                f"make one complete setting"
            )


def _depths(pattern: Pattern, result: Inference) -> None:
    """Slots of events and buffers. A pattern's ``stages`` is the depth of whatever is used in innermost loops only
    (releases before the loop aside) and has no depth of its own."""
    default = pattern.stages or 1
    outer = {name for path in result.loops.values() for name in path[:-1]}

    def innermost(id: PhaseId) -> bool:
        return bool(result.loops[id]) and result.loops[id][-1] not in outer

    for event in pattern.event_names():
        declared = pattern.events[event].slots if event in pattern.events else None
        triggers, waits = pattern.triggers_of(event), pattern.waits_of(event)
        ring = bool(triggers and waits) and all(
            innermost(id) or (id in triggers and _is_prologue(result, id)) for id in (*triggers, *waits)
        )
        result.slots[event] = declared or (default if ring and any(innermost(t) for t in triggers) else 1)
    users: dict[str, list[PhaseId]] = {}
    for id, phase in pattern.phases():
        for buffer in phase.buffers:
            users.setdefault(buffer, []).append(id)
    for buffer_spec in pattern.buffers:
        uses = users.get(buffer_spec.name, [])
        ring = buffer_spec.name in pattern.undeclared_stages and bool(uses) and all(innermost(id) for id in uses)
        fits = buffer_spec.size % default == 0
        result.stages[buffer_spec.name] = default if ring and fits else buffer_spec.slots
