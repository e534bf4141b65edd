"""Programs with one thing wrong, and what becomes of each: does anything notice?

A mutant has one wait, trigger, barrier, commit or drain less, a drain that leaves one more group pending, an event with
another count of arrivals or initial settings, or an index shifted by one slot. Where several roles run the same source
line, there is a mutant for each of them and one with all of them.

The *fate* of a mutant is the first of these that holds:

* reported: the engine reports a defect that the original does not have (arrivals, deadlock, overrun, race,
  unawaited copy);
* refused: some pair that could overlap in the original no longer may, or the program is not decided any more;
* equivalent: the engine sees nothing, and neither does an exhaustive simulation of the mutant in its own placement;
* survived: the engine sees nothing, and an execution shows a conflict, a clobber, a race, an overrun or a deadlock;
* open: the engine sees nothing, and there are too many executions to cover them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from hb_analyzer.model import (
    Access,
    Barrier,
    BinOp,
    Commit,
    Const,
    Drain,
    If,
    IntExpr,
    Loop,
    Program,
    Statement,
    Trigger,
    Wait,
)
from hb_analyzer.report import Report
from hb_analyzer.simulator.code import IllFormedError, TooLongError, compile_program
from hb_analyzer.simulator.explore import explore
from hb_analyzer.simulator.layout import Layout, placed
from hb_analyzer.simulator.witness import Sampler, describe

Path = tuple[int, ...]  # role, then positions; in an If, 0 or 1 chooses the branch
Edit = Callable[[Statement], "tuple[Statement, ...]"]

REPORTED = ("arrivals", "deadlock", "overrun", "race", "unawaited")
FATES = (*REPORTED, "refused", "equivalent", "open", "survived")
_TRANSITIONS = 100_000  # explored for one mutant at one choice of trip counts
_RANDOM = 150  # executions first, which find most of what there is to find
_COUNTS = (0, 1, 2, 3, 5)
_PRODUCT = 6  # of the trip counts of nested loops


@dataclass(frozen=True)
class Mutant:
    """``kind`` groups mutants in tables; ``what`` says what was changed."""

    kind: str
    what: str
    program: Program


@dataclass(frozen=True)
class Fate:
    name: str  # one of FATES
    detail: str = ""


def mutants(program: Program) -> Iterator[Mutant]:
    """Every mutant of ``program``."""
    slots = {buffer.name: buffer.slots for buffer in program.buffers}
    event_slots = {event.name: event.slots for event in program.events}
    places: dict[tuple[str, str, str], list[tuple[Path, Edit]]] = {}  # (kind, where, what) -> places in all roles
    for number, role in enumerate(program.roles):
        for path, statement in _statements(role.body, (number,)):
            for kind, what, edit in _edits(statement, slots, event_slots):
                yield Mutant(kind, f"{role.name}: {what}", _edited(program, {path: edit}))
                where = getattr(statement, "where", None) or ""
                if where or kind == "barrier":
                    places.setdefault((kind, where, what), []).append((path, edit))
    for (kind, where, what), same in places.items():
        if len({path[0] for path, _ in same}) > 1:
            yield Mutant(kind, f"all roles: {what}" + (f" ({where})" if where else ""), _edited(program, dict(same)))
    for event in program.events:
        for field, low in (("arrivals", 1), ("initial", 0)):
            for change in (-1, 1):
                value = getattr(event, field) + change
                if value >= low:
                    changed = replace(event, **{field: value})
                    events = tuple(changed if e == event else e for e in program.events)
                    what = f"{event.name}: {field} {value} instead of {value - change}"
                    yield Mutant(field, what, replace(program, events=events))


def _edits(statement: Statement, slots: dict[str, int], event_slots: dict[str, int]) -> Iterator[tuple[str, str, Edit]]:
    """(kind, what, edit) for one statement."""
    if isinstance(statement, (Wait, Trigger, Barrier, Commit, Drain)):
        name = getattr(statement, "event", getattr(statement, "name", ""))
        kind = type(statement).__name__.lower()
        text = f"{kind} {name}".strip()
        if isinstance(statement, (Wait, Trigger)):
            text += f"[{statement.slot}]"
        yield kind, f"without {text}", lambda s: ()
        if isinstance(statement, Drain):
            yield "drain", f"{statement.pending + 1} groups pending", _one_more_pending
        if isinstance(statement, (Wait, Trigger)) and event_slots[statement.event] > 1:
            count = event_slots[statement.event]
            yield "slot", f"{text} one slot on", lambda s: (replace(s, slot=_shifted(s.slot, count)),)  # type: ignore
    elif isinstance(statement, Access):
        text = f"{'read' if statement.mode == 'r' else 'write'} of {statement.buffer}[{statement.slot}]"
        if slots[statement.buffer] > 1:
            size = slots[statement.buffer]
            yield "slot", f"{text} one slot on", lambda s: (replace(s, slot=_shifted(s.slot, size)),)  # type: ignore
        if statement.event is not None and event_slots[statement.event] > 1:
            ring = event_slots[statement.event]
            yield (
                "slot",
                f"{text} bound to the next slot of {statement.event}",
                lambda s: (replace(s, event_slot=_shifted(s.event_slot, ring)),),  # type: ignore
            )


def _one_more_pending(statement: Statement) -> tuple[Statement, ...]:
    assert isinstance(statement, Drain)
    return (replace(statement, pending=statement.pending + 1),)


def _shifted(slot: IntExpr, slots: int) -> IntExpr:
    if isinstance(slot, Const):
        return Const((slot.value + 1) % slots)
    return BinOp("%", BinOp("+", slot, Const(1)), Const(slots))


def _statements(body: tuple[Statement, ...], path: Path) -> Iterator[tuple[Path, Statement]]:
    for position, statement in enumerate(body):
        here = (*path, position)
        if isinstance(statement, Loop):
            yield from _statements(statement.body, here)
        elif isinstance(statement, If):
            yield from _statements(statement.then, (*here, 0))
            yield from _statements(statement.orelse, (*here, 1))
        else:
            yield here, statement


def _edited(program: Program, edits: dict[Path, Edit]) -> Program:
    roles = tuple(
        replace(role, body=_edit_body(role.body, (number,), edits)) for number, role in enumerate(program.roles)
    )
    return replace(program, roles=roles)


def _edit_body(body: tuple[Statement, ...], path: Path, edits: dict[Path, Edit]) -> tuple[Statement, ...]:
    result: list[Statement] = []
    for position, statement in enumerate(body):
        here = (*path, position)
        if here in edits:
            result += edits[here](statement)
        elif isinstance(statement, Loop):
            result.append(replace(statement, body=_edit_body(statement.body, here, edits)))
        elif isinstance(statement, If):
            then = _edit_body(statement.then, (*here, 0), edits)
            result.append(replace(statement, then=then, orelse=_edit_body(statement.orelse, (*here, 1), edits)))
        else:
            result.append(statement)
    return tuple(result)


# ---------------------------------------------------------------------------------------------------------------
# What becomes of them


def fate(original: Report, mutant: Program, analyse: Callable[[Program], Report]) -> Fate:
    """The fate of ``mutant``; ``original`` is the report on the program that it was made from."""
    report = analyse(mutant)
    for kind in REPORTED:
        mine, theirs = (_subjects(r, kind) for r in (report, original))
        if mine - theirs:
            return Fate(kind, ", ".join(sorted(mine - theirs)))
    lost = [f"{v.a} over {v.b}" for v in original.verdicts if v.overlap and not report.verdict(v.a, v.b).overlap]
    if lost or (report.undecided and not original.undecided):
        return Fate("refused", ", ".join(lost))
    return _simulated(mutant, report, {(kind, (s,)) for kind in REPORTED for s in _subjects(original, kind)})


def _subjects(report: Report, kind: str) -> set[str]:
    """What the defects of one kind are about: events, buffers, or deadlock as such."""
    found = {
        "arrivals": report.arrivals,
        "deadlock": report.deadlocks,
        "overrun": report.overruns,
        "race": report.races,
        "unawaited": report.unawaited,
    }
    return {defect.buffer or defect.event or "" if kind != "deadlock" else "" for defect in found[kind]}


def _simulated(mutant: Program, report: Report, known: set[tuple[str, tuple[str, ...]]]) -> Fate:
    coincide = placed(report.placement)
    deadlocks = any(kind == "deadlock" for kind, _ in known)

    def news(findings: dict[tuple[str, tuple[str, ...]], object]) -> list[tuple[str, tuple[str, ...]]]:
        return [key for key in findings if key not in known and not (key[0] == "deadlock" and deadlocks)]

    try:
        for _, _, machine, _ in Sampler(mutant, coincide).executions(0, _RANDOM):
            for key in news(dict(machine.findings)):
                return Fate("survived", describe(machine.findings[key]))
        covered = 0
        for values in _valuations(mutant):
            code = compile_program(mutant, values)
            found = explore(code, Layout(code, coincide), _TRANSITIONS)
            for key in news(dict(found.findings)):
                return Fate("survived", describe(found.findings[key]))
            if not found.complete:
                return Fate("open", f"more than {_TRANSITIONS} transitions at {values}")
            covered += found.states
    except (TooLongError, IllFormedError) as error:
        return Fate("open", str(error) or "too long")
    return Fate("equivalent", f"all executions covered ({covered} states)")


def _valuations(program: Program) -> Iterator[dict[str, int]]:
    """Small trip counts, each as its parameter allows; of several loops not all many."""
    axes = []
    for parameter in program.parameters:
        highest = parameter.maximum if parameter.maximum is not None else parameter.minimum + _COUNTS[-1]
        axes.append(sorted({min(parameter.minimum + count, highest) for count in _COUNTS}))
    for values in product(*axes):
        if len(axes) <= 1 or prod(values) <= _PRODUCT:
            yield {p.name: value for p, value in zip(program.parameters, values, strict=True)}
