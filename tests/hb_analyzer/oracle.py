"""Runs a program under random schedules and watches for what the engine must have refused.

Written from the model alone, without the happens-before graph: roles take turns, asynchronous accesses are under way
from their issue until the scheduler completes them, events count arrivals and bytes. Every access takes time, so two
accesses that nothing orders do meet under some schedule.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from random import Random

from hb_analyzer.conditions import atoms_by_buffer
from hb_analyzer.model import (
    Access,
    Barrier,
    Commit,
    Drain,
    If,
    Loop,
    Program,
    Statement,
    Step,
    Trigger,
    Wait,
    evaluate,
)

Key = tuple[str, int]


@dataclass
class Observed:
    """Pairs seen to conflict or to clobber, buffers seen to race, and whether the run got stuck."""

    pairs: set[tuple[str, str]] = field(default_factory=set)
    races: set[str] = field(default_factory=set)
    stuck: bool = False


@dataclass(eq=False)
class _Flight:
    op: Access
    slot: int
    may: int
    must: int
    role: int
    phase: tuple[Key, int] | None = None


def flatten(body: tuple[Statement, ...], env: dict[str, int]) -> list[tuple[Statement, int, int]]:
    """The operations of a role in order, each with its slot and its event slot."""
    result: list[tuple[Statement, int, int]] = []
    for statement in body:
        if isinstance(statement, Loop):
            for i in range(evaluate(statement.trip, env)):
                env[statement.counter] = i
                result += flatten(statement.body, env)
        elif isinstance(statement, If):
            result += flatten(statement.then if evaluate(statement.condition, env) else statement.orelse, env)
        elif isinstance(statement, Step):
            env[statement.counter] = env.get(statement.counter, 0) + statement.by
        elif isinstance(statement, Access):
            result.append((statement, evaluate(statement.slot, env), evaluate(statement.event_slot, env)))
        elif isinstance(statement, (Trigger, Wait)):
            result.append((statement, evaluate(statement.slot, env), 0))
        else:
            result.append((statement, 0, 0))
    return result


class Machine:
    """One execution."""

    def __init__(self, program: Program, values: dict[str, int], random: Random, laziness: float) -> None:
        """``laziness``: how reluctant the scheduler is to complete asynchronous accesses (0 … 1)."""
        self.program = program
        self.random = random
        # Some roles race ahead, some lag far behind.
        self.pace = [10 ** random.uniform(-1.5, 1.5) for _ in program.roles]
        self.laziness = laziness
        self.names = [role.name for role in program.roles]
        self.code = [flatten(role.body, defaultdict(int, values)) for role in program.roles]
        self.next = [0] * len(self.code)
        self.open: list[_Flight | None] = [None] * len(self.code)  # an ordinary access under way
        self.flights: list[_Flight] = []
        self.groups: list[list[list[_Flight]]] = [[[]] for _ in self.code]  # per role: groups, the last one open
        self.arrivals: dict[Key, int] = defaultdict(int)
        self.settings: dict[Key, int] = defaultdict(int)
        for event in program.events:
            for slot in range(event.slots):
                self.settings[event.name, slot] = event.initial
        self.needed = {event.name: event.arrivals for event in program.events}
        self.triggered: dict[tuple[int, Key], int] = defaultdict(int)
        self.waited: dict[tuple[int, Key], int] = defaultdict(int)
        self.met: dict[tuple[str, int], set[int]] = defaultdict(set)
        self.meetings: dict[tuple[int, str], int] = defaultdict(int)
        self.atoms = atoms_by_buffer(program)
        self.time = 0
        self.first_write: dict[tuple[str, int, int], int] = {}
        self.covered: dict[tuple[str, int, int], int] = {}
        self.last_write: dict[str, int] = {}
        self.seen = Observed()

    def run(self) -> Observed:
        while True:
            ready = [r for r in range(len(self.code)) if self._ready(r)]
            landing = [f for f in self.flights if f.op.ends in ("event", "group")]
            if landing and (not ready or self.random.random() > self.laziness):
                self._finish(self.random.choice(landing))
            elif ready:
                self._step(self.random.choices(ready, [self.pace[r] for r in ready])[0])
            else:
                self.seen.stuck = any(n < len(code) for n, code in zip(self.next, self.code, strict=True))
                return self.seen
            self.time += 1

    def _ready(self, role: int) -> bool:
        if self.open[role] is not None:
            return True
        if self.next[role] == len(self.code[role]):
            return False
        op, slot, _ = self.code[role][self.next[role]]
        if isinstance(op, Wait):
            return self.settings[op.event, slot] > self.waited[role, (op.event, slot)]
        if isinstance(op, Drain):
            closed = self.groups[role][:-1]
            covered = closed[: max(0, len(closed) - op.pending)]
            return not any(flight in self.flights for group in covered for flight in group)
        if isinstance(op, Barrier):
            meeting = (op.name, self.meetings[role, op.name])
            return role not in self.met[meeting] or {self.names[r] for r in self.met[meeting]} >= set(op.members)
        return True

    def _step(self, role: int) -> None:
        flight = self.open[role]
        if flight is not None:
            self._finish(flight)
            self.open[role] = None
            return
        op, slot, event_slot = self.code[role][self.next[role]]
        if isinstance(op, Barrier):
            meeting = (op.name, self.meetings[role, op.name])
            if role not in self.met[meeting]:
                self.met[meeting].add(role)
                return
            self.meetings[role, op.name] += 1
        self.next[role] += 1
        if isinstance(op, Access):
            self._begin(role, op, slot, event_slot)
        elif isinstance(op, Trigger):
            self.triggered[role, (op.event, slot)] += 1
            self.arrivals[op.event, slot] += 1
            self._settle((op.event, slot))
        elif isinstance(op, Wait):
            self.waited[role, (op.event, slot)] += 1
        elif isinstance(op, Commit):
            self.groups[role].append([])

    def _begin(self, role: int, op: Access, slot: int, event_slot: int) -> None:
        may, must = self.atoms[op.buffer].footprints[op.region].may, self.atoms[op.buffer].footprints[op.region].must
        flight = _Flight(op, slot, may, must, role)
        for other in self.flights:
            if "w" in (op.mode, other.op.mode):
                if other.op.buffer != op.buffer:
                    self._pair(op.buffer, other.op.buffer)
                elif other.slot == slot and other.may & may:
                    self.seen.races.add(op.buffer)
        self.flights.append(flight)
        if op.mode == "w":
            self.last_write[op.buffer] = self.time
        else:
            self._check_value(flight)
        if op.ends == "here":
            self.open[role] = flight
        elif op.ends == "group":
            self.groups[role][-1].append(flight)
        elif op.ends == "event":
            assert op.event is not None
            key = (op.event, event_slot)
            # Bytes count for the phase that this role's next arrival belongs to.
            flight.phase = (key, self.triggered[role, key])

    def _check_value(self, flight: _Flight) -> None:
        name = flight.op.buffer
        for atom in range(self.atoms[name].count):
            key = (name, flight.slot, atom)
            if flight.may >> atom & 1 and key in self.first_write:
                for other, time in self.last_write.items():
                    if other != name and self.first_write[key] < time and self.covered.get(key, -1) < time:
                        self._pair(name, other)

    def _finish(self, flight: _Flight) -> None:
        self.flights.remove(flight)
        if flight.op.mode == "w":
            for atom in range(self.atoms[flight.op.buffer].count):
                key = (flight.op.buffer, flight.slot, atom)
                if flight.may >> atom & 1:
                    self.first_write.setdefault(key, self.time)
                if flight.must >> atom & 1:
                    self.covered[key] = self.time
        if flight.phase is not None:
            self._settle(flight.phase[0])

    def _settle(self, key: Key) -> None:
        """Completes phases that have their arrivals and bytes."""
        initial = next(event.initial for event in self.program.events if event.name == key[0])
        while self.arrivals[key] >= self.needed[key[0]]:
            phase = (key, self.settings[key] - initial)
            if any(flight.phase == phase for flight in self.flights):
                return
            self.arrivals[key] -= self.needed[key[0]]
            self.settings[key] += 1

    def _pair(self, a: str, b: str) -> None:
        self.seen.pairs.add((min(a, b), max(a, b)))


def observe(program: Program, values: dict[str, int], random: Random, schedules: int) -> Observed:
    """Everything seen over some random schedules."""
    total = Observed()
    for _ in range(schedules):
        seen = Machine(program, values, random, random.choice((0.3, 0.7, 0.95))).run()
        total.pairs |= seen.pairs
        total.races |= seen.races
        total.stuck = total.stuck or seen.stuck
    return total
