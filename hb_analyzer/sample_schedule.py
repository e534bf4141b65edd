"""One plausible run of a program, with times, for drawing.

Every stretch of accesses takes one unit of time, and every role runs as early as its synchronisation lets it. Nothing
is decided from this: it is a picture of one schedule, while verdicts hold for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from .model import (
    Access,
    Barrier,
    Commit,
    Drain,
    If,
    IntExpr,
    Loop,
    Name,
    Opaque,
    Operation,
    Program,
    Role,
    Statement,
    Step,
    Trigger,
    Wait,
    evaluate,
)

ISSUE = 0.12  # time that issuing an asynchronous operation takes
_MAX_OPERATIONS = 20_000


@dataclass
class Use:
    """One access in the run: ``slot`` of ``buffer`` from ``begin`` to ``end``."""

    buffer: str
    slot: int
    mode: str
    begin: float
    end: float


@dataclass
class Block:
    """A stretch of accesses of one role that run at the same time."""

    role: str
    label: str
    iteration: tuple[int, ...]
    begin: float
    end: float
    asynchronous: bool
    uses: list[Use] = field(default_factory=list)


@dataclass(frozen=True)
class Arrow:
    """A setting that let a wait return: from the last trigger to the waiting role; ``held``: the role had to wait."""

    event: str
    source: str
    sent: float
    target: str
    received: float
    held: bool


@dataclass
class SampleRun:
    """``stuck`` names the operations at which roles stand when nobody can go on."""

    blocks: list[Block] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    barriers: list[tuple[str, float, tuple[str, ...]]] = field(default_factory=list)  # name, time, members
    end: float = 0.0
    stuck: list[str] = field(default_factory=list)


def trip_counts(program: Program, given: Mapping[str, int]) -> dict[str, int]:
    """A small value for every parameter (3, or 2 where loops are nested), within its bounds; ``given`` wins."""
    usual = 2 if any(_depth(role.body) > 1 for role in program.roles) else 3
    values = {}
    for parameter in program.parameters:
        value = max(parameter.minimum, usual)
        values[parameter.name] = value if parameter.maximum is None else min(value, parameter.maximum)
    return {**values, **{name: value for name, value in given.items() if name in values}}


def _depth(body: tuple[Statement, ...]) -> int:
    inner = [0]
    for statement in body:
        if isinstance(statement, Loop):
            inner.append(1 + _depth(statement.body))
        elif isinstance(statement, If):
            inner += [_depth(statement.then), _depth(statement.orelse)]
    return max(inner)


def sample_run(program: Program, parameters: Mapping[str, int]) -> SampleRun:
    """Run ``program`` once, as early as possible, with the given trip counts."""
    return _Runner(program, parameters).run()


@dataclass(frozen=True)
class _Instance:
    """An operation of the unrolled program with its slots as numbers."""

    operation: Operation
    slot: int
    event_slot: int
    iteration: tuple[int, ...]


def _unroll(body: tuple[Statement, ...], env: dict[str, int], iteration: tuple[int, ...]) -> Iterator[_Instance]:
    for statement in body:
        if isinstance(statement, Loop):
            for i in range(_value(statement.trip, env)):
                env[statement.counter] = i
                yield from _unroll(statement.body, env, (*iteration, i))
        elif isinstance(statement, If):
            branch = statement.then if _value(statement.condition, env) else statement.orelse
            yield from _unroll(branch, env, iteration)
        elif isinstance(statement, Step):
            env[statement.counter] = env.get(statement.counter, 0) + statement.by
        else:
            slot = _value(statement.slot, env) if isinstance(statement, (Access, Trigger, Wait)) else 0
            event_slot = _value(statement.event_slot, env) if isinstance(statement, Access) else 0
            yield _Instance(statement, slot, event_slot, iteration)


def _value(expr: IntExpr, env: Mapping[str, int]) -> int:
    if isinstance(expr, Name):
        return env.get(expr.name, 0)  # counters start at 0
    return evaluate(expr, _Zero(env))


class _Zero(dict[str, int]):
    """Names that were never stepped are 0."""

    def __missing__(self, key: str) -> int:
        return 0


class _Settings:
    """The settings of one event slot: triggers, and the bytes of copies bound to it."""

    def __init__(self, arrivals: int, initial: int) -> None:
        self.arrivals = arrivals
        self.times: list[tuple[float, str]] = [(0.0, "")] * initial  # when each setting happened, and by whom
        self.pending: list[tuple[float, str]] = []
        self.bound: list[Block] = []

    def trigger(self, time: float, role: str) -> None:
        self.pending.append((time, role))
        if len(self.pending) == self.arrivals:
            landed = [(block.end, block.role) for block in self.bound]
            self.times.append(max([*self.pending, *landed]))
            self.pending, self.bound = [], []


class _RoleState:
    def __init__(self, role: Role, parameters: Mapping[str, int]) -> None:
        self.name = role.name
        self.instances = list(_take(_unroll(role.body, dict(parameters), ())))
        self.position = 0
        self.time = 0.0
        self.waited: dict[tuple[str, int], int] = {}
        self.met: dict[str, int] = {}
        self.open_group: list[Block] = []
        self.groups: list[float] = []

    @property
    def next(self) -> _Instance | None:
        return self.instances[self.position] if self.position < len(self.instances) else None


def _take(instances: Iterator[_Instance]) -> Iterator[_Instance]:
    for _, instance in zip(range(_MAX_OPERATIONS), instances, strict=False):
        yield instance


class _Runner:
    def __init__(self, program: Program, parameters: Mapping[str, int]) -> None:
        self.events = {event.name: event for event in program.events}
        self.roles = [_RoleState(role, parameters) for role in program.roles]
        self.settings: dict[tuple[str, int], _Settings] = {}
        self.result = SampleRun()

    def run(self) -> SampleRun:
        progress = True
        while progress:
            # The role that is furthest behind goes first, so that settings are made in the order of time.
            progress = any(self._step(role) for role in sorted(self.roles, key=lambda role: role.time))
        for role in self.roles:
            if role.next is not None:
                self.result.stuck.append(f"{role.name}: {_label(role.next.operation)}")
        self.result.end = max([0.0, *(b.end for b in self.result.blocks), *(r.time for r in self.roles)])
        return self.result

    def _slot(self, event: str, slot: int) -> _Settings:
        spec = self.events[event]
        return self.settings.setdefault((event, slot), _Settings(spec.arrivals, spec.initial))

    def _step(self, role: _RoleState) -> bool:
        """Run the next operation of ``role``; False where it has to wait for another role."""
        instance = role.next
        if instance is None:
            return False
        operation = instance.operation
        if isinstance(operation, Access):
            self._accesses(role)
            return True
        if isinstance(operation, Wait):
            key = (operation.event, instance.slot)
            settings, count = self._slot(*key), role.waited.get(key, 0)
            if count >= len(settings.times):
                return False
            time, source = settings.times[count]
            role.waited[key] = count + 1
            held = time > role.time
            role.time = max(role.time, time)
            if source:
                self.result.arrows.append(Arrow(operation.event, source, time, role.name, role.time, held))
        elif isinstance(operation, Trigger):
            self._slot(operation.event, instance.slot).trigger(role.time, role.name)
        elif isinstance(operation, Commit):
            role.groups.append(max([role.time, *(block.end for block in role.open_group)]))
            role.open_group = []
        elif isinstance(operation, Drain):
            finished = role.groups[: len(role.groups) - operation.pending] if operation.pending else role.groups
            role.time = max([role.time, *finished])
        elif isinstance(operation, Barrier):
            return self._barrier(role, operation)
        role.position += 1
        return True

    def _barrier(self, role: _RoleState, barrier: Barrier) -> bool:
        members = [other for other in self.roles if other.name in barrier.members]
        meeting = role.met.get(barrier.name, 0)
        for other in members:
            at = other.next.operation if other.next else None
            arrived = isinstance(at, Barrier) and at.name == barrier.name and other.met.get(at.name, 0) == meeting
            if not arrived:
                return False
        time = max(other.time for other in members)
        self.result.barriers.append((barrier.name, time, tuple(other.name for other in members)))
        for other in members:
            other.time = time
            other.met[barrier.name] = meeting + 1
            other.position += 1
        return True

    def _accesses(self, role: _RoleState) -> None:
        """A run of accesses that nothing separates: one block per way of ending."""
        first = role.next
        assert first is not None and isinstance(first.operation, Access)
        modes: dict[str, str] = {}  # the last mode by buffer
        members: dict[tuple[str, str, int], list[_Instance]] = {}
        while (instance := role.next) is not None and isinstance(access := instance.operation, Access):
            same = _phase(access) == _phase(first.operation) and instance.iteration == first.iteration
            before = modes.get(access.buffer, access.mode)
            # A phase may read and then write a buffer in one go; what a program does one after the other stays so.
            if not same or before > access.mode or (before != access.mode and not _phase(access)):
                break
            modes[access.buffer] = access.mode
            members.setdefault((access.ends, access.event or "", instance.event_slot), []).append(instance)
            role.position += 1
        begin, ordinary = role.time, [role.time + ISSUE]
        for (ends, event, event_slot), instances in members.items():
            block = Block(role.name, _title(instances), first.iteration, begin, begin + 1, ends != "here")
            for instance in instances:
                access = instance.operation
                assert isinstance(access, Access)
                block.uses.append(Use(access.buffer, instance.slot, access.mode, block.begin, block.end))
            self.result.blocks.append(block)
            if ends == "event":
                self._slot(event, event_slot).bound.append(block)
            elif ends == "group":
                role.open_group.append(block)
            elif ends == "here":
                ordinary.append(block.end)
        role.time = max(ordinary)


def _phase(access: Access) -> str:
    """The phase of a pattern that an access belongs to: its label up to the colon. Nothing in other programs."""
    head, colon, _ = access.label.partition(": ")
    return head if colon else ""


def _title(instances: list[_Instance]) -> str:
    """The phase, or in words what a block does."""
    accesses = [instance.operation for instance in instances if isinstance(instance.operation, Access)]
    if phase := _phase(accesses[0]):
        return phase
    parts = []
    for mode, verb in (("r", "reads"), ("w", "writes")):
        names = dict.fromkeys(access.buffer for access in accesses if access.mode == mode)
        parts += [f"{verb} {', '.join(names)}"] if names else []
    return ", ".join(parts)


def _label(operation: Operation) -> str:
    if isinstance(operation, (Step, Opaque)):
        return type(operation).__name__.lower()
    return operation.label or type(operation).__name__.lower()


@dataclass(frozen=True)
class Lifetime:
    """A slot holds one value from the first write of it to the last use before the next value."""

    buffer: str
    slot: int
    begin: float
    end: float


def lifetimes(run: SampleRun) -> list[Lifetime]:
    """The lifetimes of the run. A write begins a new value, unless its own block also reads the buffer; of a phase
    that reads and may write, only a producer's begins one."""
    uses: dict[tuple[str, int], list[tuple[float, float, bool]]] = {}
    for block in run.blocks:
        for key in dict.fromkeys((use.buffer, use.slot) for use in block.uses):
            modes = {use.mode for use in block.uses if (use.buffer, use.slot) == key}
            begins = "w" in modes and ("r" not in modes or "producer" in block.role.lower())
            uses.setdefault(key, []).append((block.begin, block.end, begins))
    found = []
    for (buffer, slot), spans in uses.items():
        current: Lifetime | None = None
        for begin, end, begins in sorted(spans):
            if current is not None and begins and begin >= current.end:
                found.append(current)
                current = None
            current = current or Lifetime(buffer, slot, begin, end)
            current = replace(current, end=max(current.end, end))
        if current is not None:
            found.append(current)
    return sorted(found, key=lambda life: (life.begin, life.buffer, life.slot))
