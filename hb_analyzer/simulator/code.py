"""A program at given trip counts, as one straight line of instructions per thread.

A role is one thread here, or with ``warps`` > 1 each warpgroup is that many threads that run the same code and meet
only where the generated code makes them meet (see :meth:`_Reader._must_meet`). As nothing branches on data, all that
counts (the number of each wait, trigger and meeting, the groups that a drain covers) is known before the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hb_analyzer.model import (
    Access,
    Barrier,
    Commit,
    Drain,
    If,
    Loop,
    Operation,
    Program,
    Role,
    Statement,
    Step,
    Trigger,
    Wait,
    evaluate,
)

BEGIN_END, ISSUE, TRIGGER, WAIT, DRAIN, MEET = range(6)
LIMIT = 20_000  # instructions of a program

Key = tuple[str, int]  # (event, slot)


class TooLongError(Exception):
    """The program has more than LIMIT instructions at these trip counts."""


class IllFormedError(ValueError):
    """The program cannot run: a slot out of range, a name without a value; the message says which."""


@dataclass(eq=False)
class Instruction:
    """One operation of one thread, with everything about it that does not depend on the schedule.

    ``kind``: BEGIN_END an ordinary access (two transitions); ISSUE an access that ends elsewhere; the others are
    synchronisation. ``number`` counts the waits or triggers of this event slot, or meetings of this barrier, by this
    thread from 0; for a copy it is the number of the trigger that closes its setting.
    """

    kind: int
    op: Operation
    thread: int
    position: int
    iteration: tuple[int, ...]
    slot: int = 0
    key: Key = ("", 0)
    number: int = 0
    ends: tuple[Instruction, ...] = ()  # of a drain: the accesses of the groups that it covers
    elected: bool = False  # executed by one warp for all
    closed: bool = True  # of a copy: its role triggers the event, so that its bytes are meant for a certain setting
    identity: int = 0  # unique in the code
    copy: bool = False  # a bulk copy that goes on after its issue
    # Filled in for a layout: bit sets over places.
    buffer: int = 0
    write: bool = False
    own: int = 0
    must: int = 0
    foreign: int = 0


@dataclass
class Thread:
    """``role`` indexes Program.roles; ``warp`` counts from 0."""

    role: int
    warp: int
    name: str
    code: list[Instruction] = field(default_factory=list)


@dataclass
class Code:
    """All threads, and the tables that the machine needs."""

    program: Program
    values: Mapping[str, int]
    warps: int
    threads: list[Thread]
    keys: list[Key]
    expected: dict[Key, int]  # arrivals that complete a phase
    instructions: list[Instruction]  # by identity
    waits: dict[tuple[Key, int], list[Instruction]]  # (slot, number) -> the waits with that number
    meetings: dict[tuple[str, int], dict[int, Instruction]]  # (barrier, number) -> thread -> its arrival


def compile_program(program: Program, values: Mapping[str, int], warps: int = 1) -> Code:
    """Raises TooLongError and IllFormedError."""
    threads: list[Thread] = []
    for index, role in enumerate(program.roles):
        count = warps if role.kind == "warpgroup" and not _single_thread(role.body) else 1
        for warp in range(count):
            threads.append(Thread(index, warp, f"{role.name}.{warp}" if count > 1 else role.name))
    budget = LIMIT
    for number, thread in enumerate(threads):
        reader = _Reader(program, number, program.roles[thread.role], values, thread.warp, budget)
        together = sum(other.role == thread.role for other in threads) > 1
        thread.code = reader.run(together)
        budget -= len(thread.code)
    code = Code(program, dict(values), warps, threads, [], {}, [], defaultdict(list), defaultdict(dict))
    _tabulate(code)
    return code


def _single_thread(body: tuple[Statement, ...]) -> bool:
    """A warpgroup that only waits, copies in and triggers is run by one thread."""
    for statement in walk(body):
        if isinstance(statement, Access):
            if statement.ends != "event":
                return False
        elif isinstance(statement, (Commit, Drain, Barrier)):
            return False
    return True


def walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    for statement in body:
        yield statement
        if isinstance(statement, Loop):
            yield from walk(statement.body)
        elif isinstance(statement, If):
            yield from walk((*statement.then, *statement.orelse))


def _counters(body: tuple[Statement, ...]) -> dict[str, int]:
    return {statement.counter: 0 for statement in walk(body) if isinstance(statement, Step)}


class _Reader:
    """Runs the control flow of one thread."""

    def __init__(
        self, program: Program, thread: int, role: Role, values: Mapping[str, int], warp: int, budget: int
    ) -> None:
        self.thread, self.role, self.warp = thread, role, warp
        self.env = {**values, **_counters(role.body)}
        self.slots = {buffer.name: buffer.slots for buffer in program.buffers}
        self.slots |= {f"event {event.name}": event.slots for event in program.events}
        self.code: list[Instruction] = []
        self.counts: dict[object, int] = defaultdict(int)
        self.open: list[Instruction] = []
        self.groups: list[list[Instruction]] = []
        self.drained = 0
        self.budget = budget
        self.together = False  # several warps run this code
        self.met = False  # they have met since one of them last read shared memory
        self.just_met = False  # and have done nothing at all since
        self.stored: set[str] = set()  # what they have stored to since they met

    def run(self, together: bool) -> list[Instruction]:
        self.together = together
        try:
            self._body(self.role.body, ())
        except KeyError as error:
            raise IllFormedError(f"{self.role.name}: {error.args[0]!r} has no value") from None
        except ZeroDivisionError:
            raise IllFormedError(f"{self.role.name}: division by zero") from None
        return self.code

    def _body(self, body: tuple[Statement, ...], iteration: tuple[int, ...]) -> None:
        for statement in body:
            if isinstance(statement, Loop):
                outer = self.env.get(statement.counter)
                for i in range(evaluate(statement.trip, self.env)):
                    self.env[statement.counter] = i
                    self._body(statement.body, (*iteration, i))
                self.env.pop(statement.counter, None)
                if outer is not None:
                    self.env[statement.counter] = outer
            elif isinstance(statement, If):
                taken = statement.then if evaluate(statement.condition, self.env) else statement.orelse
                self._body(taken, iteration)
            elif isinstance(statement, Step):
                self.env[statement.counter] += statement.by
            else:
                self._operation(statement, iteration)

    def _operation(self, op: Operation, iteration: tuple[int, ...]) -> None:
        just_met, self.just_met = self.just_met, False
        if isinstance(op, Access):
            self._access(op, iteration)
        elif isinstance(op, (Trigger, Wait)):
            slot = self._slot(f"event {op.event}", evaluate(op.slot, self.env))
            key = (op.event, slot)
            kind = TRIGGER if isinstance(op, Trigger) else WAIT
            if self.together and kind == TRIGGER and not just_met:
                self._meet(iteration)
            self.just_met = False
            number = self._count((kind, key))
            if kind == WAIT or self.warp == 0:  # a warpgroup arrives once, after its warps have met
                self._add(Instruction(kind, op, self.thread, 0, iteration, slot, key, number))
        elif isinstance(op, Commit):
            self.groups.append(self.open)
            self.open = []
        elif isinstance(op, Drain):
            covered = self.groups[self.drained : max(self.drained, len(self.groups) - op.pending)]
            self.drained += len(covered)
            ends = tuple(access for group in covered for access in group)
            self.met = False  # each warp has waited for its own part only
            self._add(Instruction(DRAIN, op, self.thread, 0, iteration, ends=ends))
        elif isinstance(op, Barrier):
            self.met = self.just_met = True
            self.stored.clear()
            self._add(Instruction(MEET, op, self.thread, 0, iteration, number=self._count(("meet", op.name))))

    def _access(self, op: Access, iteration: tuple[int, ...]) -> None:
        slot = self._slot(op.buffer, evaluate(op.slot, self.env))
        one_for_all = self.together and _elected(op)
        if self.together and self._must_meet(op):
            self._meet(iteration)
        self.just_met = False
        if not one_for_all or self.warp == 0:
            kind = BEGIN_END if op.ends == "here" else ISSUE
            instruction = Instruction(kind, op, self.thread, 0, iteration, slot, elected=one_for_all)
            instruction.copy = op.ends == "event" or (op.ends == "never" and op.proxy == "async")
            if op.ends == "event":
                event_slot = self._slot(f"event {op.event}", evaluate(op.event_slot, self.env))
                instruction.key = (str(op.event), event_slot)
                instruction.number = self.counts[TRIGGER, instruction.key]
            elif op.ends == "group":
                self.open.append(instruction)
            self._add(instruction)
        if self.together and _copy_out(op):
            self._meet(iteration)
        elif op.mode == "r":
            self.met = False
        elif not one_for_all:
            self.stored.add(op.buffer)

    def _must_meet(self, op: Access) -> bool:
        """Do the warps meet before this access? The generated code makes them meet before it overwrites what others
        may still read, before it reads a buffer that others have stored to, and between stores to different buffers."""
        if op.mode == "w" or _elected(op):
            return not self.met or bool(self.stored - {op.buffer}) or (_elected(op) and bool(self.stored))
        return op.buffer in self.stored

    def _meet(self, iteration: tuple[int, ...]) -> None:
        """The warps of this warpgroup meet (a barrier of their own)."""
        name = f"warps of {self.role.name}"
        op = Barrier(name, (self.role.name,), label="the warps meet")
        self.met = self.just_met = True
        self.stored.clear()
        self._add(Instruction(MEET, op, self.thread, 0, iteration, number=self._count(("meet", name))))

    def _slot(self, name: str, slot: int) -> int:
        if not 0 <= slot < self.slots[name]:
            raise IllFormedError(f"{self.role.name}: slot {slot} of {name} is out of range")
        return slot

    def _count(self, what: object) -> int:
        self.counts[what] += 1
        return self.counts[what] - 1

    def _add(self, instruction: Instruction) -> None:
        if len(self.code) >= self.budget:
            raise TooLongError
        instruction.position = len(self.code)
        self.code.append(instruction)


def _copy_out(op: Access) -> bool:
    return op.mode == "r" and op.proxy == "async" and op.ends in ("here", "never")


def _elected(op: Access) -> bool:
    """Does one thread execute it for the whole warpgroup? Copies; the rest is every warp's own part."""
    return _copy_out(op) or op.ends == "event" or (op.mode == "w" and op.proxy == "async")


def _tabulate(code: Code) -> None:
    events = {event.name: event for event in code.program.events}
    keys: dict[Key, None] = {}
    for number, thread in enumerate(code.threads):
        for instruction in thread.code:
            instruction.identity = len(code.instructions)
            code.instructions.append(instruction)
            if instruction.key[0]:
                keys.setdefault(instruction.key)
            if instruction.kind == WAIT:
                code.waits[instruction.key, instruction.number].append(instruction)
            elif instruction.kind == MEET:
                assert isinstance(instruction.op, Barrier)
                code.meetings[instruction.op.name, instruction.number][number] = instruction
    giving = {(i.key, code.threads[i.thread].role) for i in code.instructions if i.kind == TRIGGER}
    for instruction in code.instructions:
        instruction.closed = (instruction.key, code.threads[instruction.thread].role) in giving
    code.keys = list(keys)
    code.expected = {key: events[key[0]].arrivals for key in code.keys}
