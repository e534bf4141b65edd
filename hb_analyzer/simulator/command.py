"""``python -m hb_analyzer simulate``: runs a pattern with every buffer at its address, and shows what is observed."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hb_analyzer.model import Program
from hb_analyzer.report import Placement
from hb_analyzer.simulator.code import TooLongError, compile_program
from hb_analyzer.simulator.explore import explore
from hb_analyzer.simulator.layout import Coincide, Layout, overlay, placed
from hb_analyzer.simulator.witness import (
    Execution,
    Key,
    Sampler,
    describe,
    execution_text,
    minimise,
    replay,
    rows,
)

_TRANSITIONS = 500_000  # of an exhaustive exploration


def positive(text: str) -> int:
    """A number of executions, programs or processes: none of them would be evidence of nothing."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least 1 is needed, got {number}")
    return number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="execution number i has the seed N + i")
    parser.add_argument("--schedules", type=positive, default=200, metavar="K", help="executions (default: 200)")
    parser.add_argument("--exhaustive", action="store_true", help="all executions, at one choice of trip counts")
    parser.add_argument("--set", metavar="NAME=COUNT", action="append", default=[], help="fix a trip count")
    parser.add_argument("--over", nargs=2, metavar=("A", "B"), help="lay two buffers over each other, proved or not")


@dataclass
class Simulation:
    """What was run and seen. ``complete``: all executions at these trip counts were covered."""

    name: str
    exhaustive: bool = False
    complete: bool = False
    executions: int = 0
    transitions: int = 0
    states: int = 0
    values: Mapping[str, int] = field(default_factory=dict)
    found: dict[Key, tuple[Execution, int]] = field(default_factory=dict)  # smallest execution, seed

    def text(self) -> str:
        if self.exhaustive:
            at = ", ".join(f"{name} = {value}" for name, value in self.values.items())
            extent = "all executions" if self.complete else "not all executions (too many)"
            extent += f" at {at}" if at else ""
            head = f"{self.name}: {extent}: {self.states} states, {self.transitions} transitions"
        else:
            head = f"{self.name}: {self.executions} executions, {self.transitions} transitions"
        lines = [head]
        if not self.found:
            lines.append("nothing observed: no conflict, clobber, race, overrun, deadlock or unawaited copy")
        for execution, seed in self.found.values():
            again = "" if self.exhaustive else f"again: --seed {seed} --schedules 1\n"
            lines.append(f"\n{execution_text(execution)}{again}".rstrip())
        return "\n".join(lines) + "\n"

    def to_json(self) -> dict[str, Any]:
        return {
            "kernel": self.name,
            "exhaustive": self.exhaustive,
            "complete": self.complete,
            "executions": self.executions,
            "transitions": self.transitions,
            "findings": [
                {
                    "kind": kind,
                    "subject": list(subject),
                    "what": describe(execution.finding),
                    "seed": None if self.exhaustive else seed,
                    "parameters": dict(execution.values),
                    "steps": [vars(row) for row in rows(execution)],
                }
                for (kind, subject), (execution, seed) in self.found.items()
            ],
        }


def simulate(
    program: Program,
    placement: Placement,
    *,
    seed: int = 0,
    schedules: int = 200,
    exhaustive: bool = False,
    fixed: Mapping[str, int] | None = None,
    over: tuple[str, str] | None = None,
) -> Simulation:
    """Runs ``program`` with its buffers at ``placement``, or the two of ``over`` on each other and the rest apart."""
    coincide = overlay(*over) if over else placed(placement)
    result = Simulation(program.name, exhaustive)
    if exhaustive:
        _exhaust(program, coincide, dict(fixed or {}), result)
        return result
    sampler = Sampler(program, coincide, fixed=fixed)
    for number in range(schedules):
        code, layout, machine, schedule = sampler.one(seed + number)
        result.executions += 1
        result.transitions += machine.steps
        for key, finding in machine.findings.items():
            if key not in result.found:
                execution = Execution(code, layout, schedule, finding)
                result.found[key] = minimise(execution, coincide), seed + number
    return result


def _exhaust(program: Program, coincide: Coincide, fixed: dict[str, int], result: Simulation) -> None:
    values = {
        p.name: min(p.minimum + 2, p.maximum if p.maximum is not None else p.minimum + 2) for p in program.parameters
    }
    result.values = {**values, **fixed}
    try:
        code = compile_program(program, result.values)
    except TooLongError:
        return
    layout = Layout(code, coincide)
    found = explore(code, layout, _TRANSITIONS)
    result.complete, result.states, result.transitions = found.complete, found.states, found.transitions
    for key, schedule in found.schedules.items():
        finding, done = replay(code, layout, schedule, key)
        assert finding is not None
        result.found[key] = minimise(Execution(code, layout, done, finding), coincide), 0
