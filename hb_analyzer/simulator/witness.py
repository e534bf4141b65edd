"""Searches for executions that show something, makes them smaller, and prints them.

An execution is its trip counts and the list of processes in the order in which they moved; replaying the list gives it
again. A smaller one has smaller trip counts, no transition without which it still shows the same, and few changes from
one process to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from hb_analyzer.model import Access, Barrier, Drain, Program, Trigger, Wait
from hb_analyzer.simulator.code import (
    BEGIN_END,
    DRAIN,
    MEET,
    TRIGGER,
    Code,
    IllFormedError,
    Instruction,
    TooLongError,
    compile_program,
)
from hb_analyzer.simulator.layout import Coincide, Layout, everything
from hb_analyzer.simulator.machine import Finding, Machine
from hb_analyzer.simulator.schedules import draw
from hb_analyzer.table import table

Key = tuple[str, tuple[str, ...]]  # kind and subject of a finding
_TRIALS = 1500  # replays spent on making one execution smaller


@dataclass
class Execution:
    """``schedule``: processes in order, up to the finding."""

    code: Code
    layout: Layout
    schedule: list[int]
    finding: Finding

    @property
    def values(self) -> Mapping[str, int]:
        return self.code.values


def run(code: Code, layout: Layout, random: Random) -> tuple[Machine, list[int]]:
    """One execution under a random schedule, to its end."""
    machine = Machine(code, layout)
    choose = draw(machine, random)
    schedule: list[int] = []
    while enabled := machine.enabled():
        process = choose(machine, enabled)
        schedule.append(process)
        machine.step(process)
    machine.finish()
    return machine, schedule


def replay(code: Code, layout: Layout, schedule: Sequence[int], key: Key) -> tuple[Finding | None, list[int]]:
    """Runs ``schedule``, leaving out what is not enabled, until ``key`` is found; the finding and what was run."""
    machine = Machine(code, layout)
    done: list[int] = []
    for process in schedule:
        if machine.halted:
            break
        if process >= machine.copies_from:
            flight = machine.flying.get(process - machine.copies_from)
            if flight is None or not flight.key[0]:
                continue
        elif not machine.ready(process):
            continue
        machine.step(process)
        done.append(process)
        if key in machine.findings:
            return machine.findings[key], done
    if key[0] == "deadlock" and not machine.enabled():
        machine.finish()
    return machine.findings.get(key), done


@dataclass(frozen=True)
class Sampler:
    """Runs a program again and again: run number i uses the seed ``seed`` + i for everything that is random."""

    program: Program
    coincide: Coincide = everything
    warps: tuple[int, ...] = (1, 1, 1, 2)
    fixed: Mapping[str, int] | None = None  # trip counts; drawn if not given
    counts: tuple[int, ...] = (0, 1, 1, 2, 2, 3, 4, 5, 9)

    def compiled(self, random: Random) -> tuple[Code, Layout]:
        values = {
            p.name: min(p.minimum + random.choice(self.counts), p.maximum if p.maximum is not None else 1 << 30)
            for p in self.program.parameters
        }
        values.update(self.fixed or {})
        code = compile_program(self.program, values, random.choice(self.warps))
        return code, Layout(code, self.coincide)

    def one(self, seed: int) -> tuple[Code, Layout, Machine, list[int]]:
        random = Random(seed)
        code, layout = self.compiled(random)
        machine, schedule = run(code, layout, random)
        return code, layout, machine, schedule

    def executions(self, seed: int, schedules: int) -> Iterator[tuple[Code, Layout, Machine, list[int]]]:
        for number in range(schedules):
            yield self.one(seed + number)


def search(sampler: Sampler, wanted: Iterable[Key], seed: int, schedules: int) -> Execution | None:
    """The first execution that shows one of ``wanted``."""
    keys = list(wanted)
    for code, layout, machine, schedule in sampler.executions(seed, schedules):
        for key in keys:
            if key in machine.findings:
                return Execution(code, layout, schedule, machine.findings[key])
    return None


# ---------------------------------------------------------------------------------------------------------------
# Smaller executions


def minimise(execution: Execution, coincide: Coincide) -> Execution:
    """Smaller trip counts, then fewer transitions, then fewer changes of process."""
    best = execution
    program, warps, key = best.code.program, best.code.warps, best.finding.key
    best = _shorten(best, key)
    for parameter in program.parameters:
        for count in range(parameter.minimum, best.values[parameter.name]):
            smaller = _at({**best.values, parameter.name: count}, best, program, warps, coincide, key)
            if smaller is not None:
                best = smaller
                break
    return _group(_shorten(best, key), key)


def _at(
    values: Mapping[str, int], best: Execution, program: Program, warps: int, coincide: Coincide, key: Key
) -> Execution | None:
    """An execution at other trip counts that shows the same, by random schedules."""
    try:
        code = compile_program(program, values, warps)
    except (IllFormedError, TooLongError):
        return None
    layout = Layout(code, coincide)
    for seed in range(60):
        machine, schedule = run(code, layout, Random(seed))
        if key in machine.findings:
            return _shorten(Execution(code, layout, schedule, machine.findings[key]), key)
    return None


def _shorten(execution: Execution, key: Key) -> Execution:
    """Delta debugging: leaves out ever smaller stretches of the schedule."""
    finding, schedule = replay(execution.code, execution.layout, execution.schedule, key)
    assert finding is not None, "a replay shows what the execution showed"
    trials = 0
    size = max(1, len(schedule) // 2)
    while size and key[0] != "deadlock":
        start = 0
        while start < len(schedule) and trials < _TRIALS:
            trials += 1
            shorter = schedule[:start] + schedule[start + size :]
            found, done = replay(execution.code, execution.layout, shorter, key)
            if found is not None:
                finding, schedule = found, done
            else:
                start += size
        size //= 2
    return Execution(execution.code, execution.layout, schedule, finding)


def _group(execution: Execution, key: Key) -> Execution:
    """Moves transitions next to others of their process where that changes nothing."""
    schedule, finding = execution.schedule, execution.finding
    for position in range(len(schedule)):
        process = schedule[position]
        earlier = max((i for i in range(position) if schedule[i] == process), default=None)
        if earlier is None or earlier == position - 1:
            continue
        moved = [*schedule[: earlier + 1], process, *schedule[earlier + 1 : position], *schedule[position + 1 :]]
        found, done = replay(execution.code, execution.layout, moved, key)
        if found is not None and len(done) == len(schedule):
            schedule, finding = done, found
    return Execution(execution.code, execution.layout, schedule, finding)


# ---------------------------------------------------------------------------------------------------------------
# Tables


@dataclass(frozen=True)
class Row:
    step: int
    role: str
    iteration: str
    operation: str
    note: str


def rows(execution: Execution) -> list[Row]:
    """The execution as people read it; transitions of one process that belong together make one row."""
    machine = Machine(execution.code, execution.layout)
    result: list[Row] = []
    for step, process in enumerate(execution.schedule, 1):
        instruction = machine.next(process)
        assert instruction is not None
        landing = process >= machine.copies_from
        half = not landing and machine.half[process]
        before = set(machine.findings)
        machine.step(process)
        note = "lands" if landing else _note(instruction, half)
        news = [finding for key, finding in machine.findings.items() if key not in before]
        if execution.finding.key in {finding.key for finding in news}:
            note = f"{note}: {_shown(execution.code, machine.findings[execution.finding.key])}"
        thread = execution.code.threads[instruction.thread]
        iteration = ", ".join(map(str, instruction.iteration))
        result.append(Row(step, thread.name, iteration, operation(instruction), note))
    if execution.finding.kind == "deadlock":
        for stuck, at in enumerate(machine.at):
            if at < machine.lengths[stuck]:
                waiting = execution.code.threads[stuck].code[at]
                iteration = ", ".join(map(str, waiting.iteration))
                name = execution.code.threads[stuck].name
                result.append(Row(len(result) + 1, name, iteration, operation(waiting), "never returns"))
    return result


def _note(instruction: Instruction, half: bool) -> str:
    if instruction.kind == BEGIN_END:
        return "ends" if half else "begins"
    if instruction.kind == MEET:
        return "goes on" if half else "arrives"
    if instruction.kind == DRAIN:
        return f"{len(instruction.ends)} accesses are over" if instruction.ends else ""
    if isinstance(instruction.op, Access):
        return "issued"
    return "arrives" if instruction.kind == TRIGGER else "returns"


def operation(instruction: Instruction) -> str:
    """The label of an operation, or words for it."""
    op = instruction.op
    label: str = getattr(op, "label", "")
    if label:
        return label
    if isinstance(op, Access):
        verb = "read" if op.mode == "r" else "write"
        region = "" if not op.region else f" ({', '.join(f'{low}:{high}' for low, high in op.region)})"
        return f"{verb} {op.buffer}[{instruction.slot}]{region}"
    if isinstance(op, Trigger):
        return f"trigger {op.event}[{instruction.slot}]"
    if isinstance(op, Wait):
        return f"wait {op.event}[{instruction.slot}]"
    if isinstance(op, Barrier):
        return f"barrier {op.name}"
    if isinstance(op, Drain):
        return f"wait for matrix groups, {op.pending} pending"
    return type(op).__name__.lower()


def describe(finding: Finding) -> str:
    """A finding in one line."""
    what = " and ".join(finding.subject) if finding.kind in ("conflict", "clobber") else ", ".join(finding.subject)
    line = f"{finding.kind} of {what}" if finding.kind != "deadlock" else f"deadlock: {what} never end"
    return f"{line} ({finding.why})" if finding.why else line


def _shown(code: Code, finding: Finding) -> str:
    """A finding beside the transition that shows it: what is that in the way of?"""
    other = finding.first
    if other is None or finding.kind == "overrun":
        return describe(finding)
    return f"{describe(finding)}: {operation(other)} of {code.threads[other.thread].name} is under way"


def execution_text(execution: Execution) -> str:
    """The execution as a table under one line that says what it shows."""
    values = ", ".join(f"{name} = {value}" for name, value in execution.values.items())
    head = describe(execution.finding) + (f" at {values}" if values else "")
    body = [(str(row.step), row.role, row.iteration, row.operation, row.note) for row in rows(execution)]
    return f"{head}\n{table(('step', 'role', 'iteration', 'operation', ''), body, right=(0,))}\n"
