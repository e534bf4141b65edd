"""Walks the PTX of one kernel as the threads of one warpgroup do, over all paths, and says what they do.

Threads that take the same branches walk together; where a branch divides them, :class:`Divided` asks for a walk of each
part. A branch that depends on a launch-time trip count is walked both ways, with what each way tells about the count. A
loop is followed until its state recurs, up to the modulus of its counters: then all further iterations are covered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from croqtile.validation import footprint, values
from croqtile.validation.events import Event
from croqtile.validation.host import HostSide
from croqtile.validation.launches import Launches
from croqtile.validation.ptx import Entry, Instruction
from croqtile.validation.values import (
    UNKNOWN,
    WARPGROUP,
    Bounds,
    Count,
    Evaluator,
    Lanes,
    Map,
    Question,
    Rest,
    Shared,
    Trip,
    Undetermined,
    Unknown,
    Value,
    Waited,
)

WARP = 32
_LIMIT = 500_000  # instructions of one walk


class Refusal(Exception):
    """Something that is wrong, or that cannot be followed; ``line`` of the PTX module (0: none)."""

    def __init__(self, why: str, line: int = 0) -> None:
        super().__init__(why)
        self.line = line


class Divided(Exception):
    """A branch divides the threads: those that jump, and the others."""

    def __init__(self, jump: frozenset[int], stay: frozenset[int]) -> None:
        super().__init__()
        self.parts = (jump, stay)


# Instructions without an effect on memory or other threads, by first word.
_PURE = frozenset(
    (
        "add",
        "sub",
        "mul",
        "mad",
        "fma",
        "and",
        "or",
        "xor",
        "not",
        "neg",
        "abs",
        "min",
        "max",
        "shl",
        "shr",
        "shf",
        "div",
        "rem",
        "mov",
        "cvt",
        "cvta",
        "selp",
        "setp",
        "set",
        "slct",
        "ex2",
        "lg2",
        "rcp",
        "rsqrt",
        "sqrt",
        "sin",
        "cos",
        "tanh",
        "copysign",
        "prmt",
        "bfe",
        "bfi",
        "lop3",
        "popc",
        "clz",
        "brev",
        "sad",
        "testp",
    )
)
_IGNORED = ("prefetch.tensormap", "setmaxnreg.", "ld.param", "ld.global", "ld.const", "st.global", "nanosleep.")
_REGISTER = re.compile(r"%[A-Za-z_]\w*(?:\.[xyz])?|[A-Za-z_]\w*@\d+")
_STEP = re.compile(r"m64n(\d+)k(\d+)\.")

State_ = TypeVar("State_")


@dataclass
class Program:
    """A kernel prepared for walks: what each instruction writes, and which registers matter for the events."""

    entry: Entry
    host: HostSide
    launches: Launches
    evaluator: Evaluator
    relevant: frozenset[str] = field(init=False)
    heads: Mapping[int, frozenset[str]] = field(init=False)  # where backward branches lead; what matters from there on

    def __post_init__(self) -> None:
        instructions, labels = self.entry.instructions, self.entry.labels
        heads = set()
        for position, instruction in enumerate(instructions):
            if instruction.opcode.startswith("bra"):
                if instruction.operands[0] not in labels:
                    raise Refusal(f"no label {instruction.operands[0]}", instruction.line)
                if labels[instruction.operands[0]] <= position:
                    heads.add(labels[instruction.operands[0]])
        live = self._live()
        self.relevant = frozenset().union(*live)
        self.heads = {position: live[position] for position in heads}

    def _live(self) -> list[frozenset[str]]:
        """Before each instruction, the registers on which some event or branch after it depends."""
        instructions, labels = self.entry.instructions, self.entry.labels
        live: list[frozenset[str]] = [frozenset()] * (len(instructions) + 1)
        changed = True
        while changed:
            changed = False
            for position in range(len(instructions) - 1, -1, -1):
                instruction = instructions[position]
                after = live[position + 1]
                if instruction.opcode.startswith("bra"):
                    jump = live[labels[instruction.operands[0]]]
                    after = jump | after if instruction.guard else jump
                elif instruction.opcode in ("ret", "exit", "trap") and instruction.guard is None:
                    after = frozenset()
                written = after.intersection(targets(instruction))
                before = after if instruction.guard else after - written
                used = set(_REGISTER.findall(" ".join(_sinks(instruction))))
                if written:
                    used.update(_REGISTER.findall(" ".join(instruction.operands[1:])))
                if instruction.guard:
                    used.add(instruction.guard[0])
                before = before | used
                if before != live[position]:
                    live[position], changed = before, True
        return live


def targets(instruction: Instruction) -> list[str]:
    """The registers that an instruction writes, of those that are followed (matrix results are not)."""
    word = instruction.opcode.split(".")[0]
    writes = word in _PURE or word in ("ld", "ldmatrix", "shfl", "elect", "vote", "activemask", "atom", "mapa")
    writes = writes or instruction.opcode.startswith(("mbarrier.try_wait", "mbarrier.test_wait"))
    return _REGISTER.findall(instruction.operands[0]) if writes and instruction.operands else []


def _sinks(instruction: Instruction) -> tuple[str, ...]:
    """The operands that decide an event."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode.startswith("wgmma.mma_async"):
        return operands[1:3]
    if opcode.startswith("cp.async.bulk.tensor"):
        return tuple(re.sub(r"\{[^}]*\}", "", operand) for operand in operands)
    if opcode.startswith(("mbarrier.", "barrier.", "bar.", "cp.")):
        return operands
    if opcode.startswith(("stmatrix", "st.")):
        return operands[:1]
    if opcode.startswith(("ld.", "ldmatrix")):
        return operands[1:2]
    return ()


@dataclass
class _State(Generic[State_]):
    position: int
    registers: dict[str, Value]
    bounds: dict[str, Bounds]
    follower: State_  # what the listener knows
    diverged: bool = False

    def copy(self) -> _State[State_]:
        return _State(self.position, dict(self.registers), dict(self.bounds), self.follower, self.diverged)


class Listener(Generic[State_]):
    """Told of every event on every path. Its states must be comparable."""

    def start(self) -> State_:
        raise NotImplementedError

    def event(self, state: State_, event: Event, bounds: Mapping[str, Bounds]) -> State_:
        """The state after ``event``. Raises Refusal."""
        raise NotImplementedError

    def finish(self, state: State_, bounds: Mapping[str, Bounds]) -> None:
        """The threads are done. Raises Refusal."""
        raise NotImplementedError

    def shifted(self, earlier: State_, later: State_, by: int) -> bool:
        """Is ``later`` what ``earlier`` is, with counters of loops that are under way greater by ``by`` (0: equal)?"""
        raise NotImplementedError


class Walk(Generic[State_]):
    """One walk of ``threads`` (of 128) of warpgroup ``warpgroup``."""

    def __init__(
        self,
        program: Program,
        warpgroup: int,
        threads: frozenset[int],
        bounds: Mapping[str, Bounds],
        listener: Listener[State_],
    ) -> None:
        self.program, self.warpgroup, self.threads = program, warpgroup, threads
        self.entry, self.evaluator = program.entry, program.evaluator
        self.listener = listener
        self.bounds = dict(bounds)
        self.sample = sorted(threads)
        self.seen: dict[int, list[_State[State_]]] = {}
        self.steps = 0
        self.events: dict[int, str] = {}  # line → kind, of those that were reached

    def run(self) -> None:
        """Walks all paths. Raises Refusal, Divided."""
        work = [_State(0, {}, dict(self.bounds), self.listener.start())]
        while work:
            self._path(work.pop(), work)

    def _path(self, state: _State[State_], work: list[_State[State_]]) -> None:
        instructions = self.entry.instructions
        while True:
            if state.position in self.program.heads:
                known = self._recurs(state)
                if known is None:
                    return
                state = known
            if state.position >= len(instructions):
                raise Refusal("the code runs past its end", instructions[-1].line)
            self.steps += 1
            if self.steps > _LIMIT:
                raise Refusal(f"no recurring state within {_LIMIT} instructions")
            instruction = instructions[state.position]
            if instruction.opcode.startswith("bra"):
                if not self._branch(state, instruction, work):
                    return
                continue
            if instruction.guard and not self._guarded(state, instruction):
                state.position += 1
                continue
            if instruction.opcode in ("ret", "exit"):
                self.listener.finish(state.follower, state.bounds)
                return
            if instruction.opcode == "trap":
                return
            try:
                self._execute(state, instruction)
            except Undetermined as open_:
                for bounds in state.bounds[open_.parameter].split(open_.modulus):
                    work.append(state.copy())
                    work[-1].bounds[open_.parameter] = bounds
                return
            state.position += 1

    # -- loops

    def _recurs(self, state: _State[State_]) -> _State[State_] | None:
        """None if what follows is covered by an earlier visit; else the state to go on with."""
        live = self.program.heads[state.position]
        registers: dict[str, Value] = {
            name: UNKNOWN if isinstance(value, Question) else value
            for name, value in state.registers.items()
            if name in live
        }
        state = replace(state, registers=registers)
        earlier = self.seen.setdefault(state.position, [])
        for known in earlier:
            if self._equal(known, state):
                return None
        for known in earlier:
            counters = self._advanced(known, state)
            if counters is None:
                continue
            if all(isinstance(registers[name], (Count, Rest)) for name in counters):
                return None
            widened = known.copy()
            for name in counters:
                value = known.registers[name]
                if isinstance(value, int):
                    widened.registers[name] = Count(values.signed(value))
                elif isinstance(value, Trip):
                    widened.registers[name] = Rest(value.parameter, value.offset)
            widened.bounds = {n: replace(b, shifted=True) for n, b in known.bounds.items()}
            if any(self._equal(other, widened) for other in earlier):
                return None
            earlier.append(widened.copy())
            return widened
        earlier.append(state.copy())
        return state

    def _equal(self, known: _State[State_], state: _State[State_]) -> bool:
        return (
            known.registers == state.registers
            and known.bounds == state.bounds
            and known.diverged == state.diverged
            and self.listener.shifted(known.follower, state.follower, 0)
        )

    def _advanced(self, known: _State[State_], state: _State[State_]) -> list[str] | None:
        """The registers that have moved by the modulus, if that is all that differs and the bounds have moved along."""
        modulus = self.evaluator.modulus
        if known.registers.keys() != state.registers.keys() or known.diverged != state.diverged:
            return None
        counters = []
        for name, before in known.registers.items():
            after = state.registers[name]
            if before == after:
                continue
            if isinstance(before, (Trip, Rest)) and isinstance(after, type(before)):
                if after != replace(before, offset=before.offset - modulus):
                    return None
                counters.append(name)
                continue
            if isinstance(before, int) and isinstance(after, int):
                difference = values.signed(after) - values.signed(before)
            elif isinstance(before, Count) and isinstance(after, Count):
                difference = after.value - before.value
            else:
                return None
            if difference != modulus:
                return None
            counters.append(name)
        moved = {
            n: replace(b, low=b.low + modulus, high=None if b.high is None else b.high + modulus)
            for n, b in known.bounds.items()
        }
        plain = {n: replace(b, shifted=False) for n, b in moved.items()}
        if not counters or {n: replace(b, shifted=False) for n, b in state.bounds.items()} != plain:
            return None
        return counters if self.listener.shifted(known.follower, state.follower, modulus) else None

    # -- control flow

    def _branch(self, state: _State[State_], instruction: Instruction, work: list[_State[State_]]) -> bool:
        """Moves ``state`` on, and puts the other way into ``work`` where both are possible."""
        target = self.entry.labels[instruction.operands[0]]
        if instruction.guard is None:
            state.position = target
            return True
        register, wanted = instruction.guard
        value = self._of_class(state, state.registers.get(register, UNKNOWN))
        if isinstance(value, Lanes):
            jump = frozenset(t for t in self.threads if bool(value.values[t]) == wanted)
            if all(isinstance(value.values[t], int) for t in self.threads):
                raise Divided(jump, self.threads - jump)
            raise Refusal("a branch on values that are not known for each thread", instruction.line)
        if isinstance(value, Question):
            decided = values.decide(value.test, self._usable(state, value), value.number)
            if isinstance(decided, int):
                value = decided
        if isinstance(value, int):
            state.position = target if bool(value) == wanted else state.position + 1
            return True
        if not isinstance(value, (Waited, Question, Unknown)):
            raise Refusal(f"a branch on {value}", instruction.line)
        for holds in (True, False):
            other = state.copy()
            other.position = target if holds == wanted else state.position + 1
            if isinstance(value, Waited) and holds:
                self._tell(other, Event("wait", instruction.line, value.barrier, value.parity))
            elif isinstance(value, Question) and self._comparable(state, value):
                bounds = values.refine(value.test, state.bounds[value.parameter], value.number, holds)
                if bounds.high is not None and bounds.high < bounds.low:
                    continue
                other.bounds[value.parameter] = bounds
            work.append(other)
        return False

    def _comparable(self, state: _State[State_], question: Question) -> bool:
        return question.comparable or not state.bounds[question.parameter].shifted

    def _usable(self, state: _State[State_], question: Question) -> Bounds:
        bounds = state.bounds[question.parameter]
        return bounds if self._comparable(state, question) else Bounds(bounds.low)

    def _guarded(self, state: _State[State_], instruction: Instruction) -> bool:
        assert instruction.guard is not None
        value = self._of_class(state, state.registers.get(instruction.guard[0], UNKNOWN))
        if isinstance(value, Lanes) and all(isinstance(value.values[t], int) for t in self.threads):
            run = frozenset(t for t in self.threads if bool(value.values[t]) == instruction.guard[1])
            raise Divided(run, self.threads - run)
        if not isinstance(value, int):
            if not self._matters(instruction):
                return False
            raise Refusal(f"`{instruction}` runs under an unknown condition", instruction.line)
        return bool(value) == instruction.guard[1]

    def _matters(self, instruction: Instruction) -> bool:
        word = instruction.opcode.split(".")[0]
        return word not in _PURE or bool(self.program.relevant.intersection(targets(instruction)))

    def _of_class(self, state: _State[State_], value: Value) -> Value:
        """``value`` as these threads see it: one value if it is the same for all of them."""
        if isinstance(value, Lanes):
            own = {value.values[t] for t in self.threads}
            if len(own) == 1:
                state.diverged = True
                return own.pop()
        return value

    # -- operands

    def _operand(self, state: _State[State_], text: str) -> Value:
        if text.startswith("%") or "@" in text:
            if text in ("%tid.x", "%laneid"):
                first = WARPGROUP * self.warpgroup if text == "%tid.x" else 0
                return Lanes(tuple(first + t if first or text == "%tid.x" else t % WARP for t in range(WARPGROUP)))
            if text in ("%tid.y", "%tid.z"):
                return 0
            if text == "%ntid.x":
                return self.entry.threads
            if text.startswith("%ctaid."):
                names = [name for name, axis in self.program.host.block.items() if axis == text[-1]]
                samples = self.program.launches.values.get(names[0]) if names else None
                return UNKNOWN if samples is None else self.evaluator.launch(samples, "u32")
            return state.registers.get(text, UNKNOWN)
        if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", text):
            return int(text.rstrip("U"), 0)
        if text in self.entry.shared:
            return Shared(text, self.entry.shared[text].align)
        if text in self.entry.parameters:
            return Map(self.entry.parameters.index(text))
        return UNKNOWN

    def _address(self, state: _State[State_], operand: str) -> Value:
        """``[register + constant]``."""
        found = re.fullmatch(r"\[\s*([^\s+\]]+)\s*(?:\+\s*(-?\w+))?\s*\]", operand)
        if found is None:
            return UNKNOWN
        base = self._operand(state, found[1])
        return self.evaluator.apply("add.s32", (base, int(found[2], 0)), state.bounds) if found[2] else base

    def _place(self, state: _State[State_], operand: str, line: int) -> Shared:
        value = self._of_class(state.copy(), self._address(state, operand))
        if not isinstance(value, Shared) or value.shift:
            raise Refusal(f"the address {operand} is not recovered ({value})", line)
        return value

    def _number(self, state: _State[State_], operand: str, line: int) -> int:
        value = self._of_class(state.copy(), self._operand(state, operand))
        if not isinstance(value, int):
            raise Refusal(f"the operand {operand} is not recovered ({value})", line)
        return value

    # -- instructions

    def _execute(self, state: _State[State_], instruction: Instruction) -> None:
        opcode, operands = instruction.opcode, instruction.operands
        word = opcode.split(".")[0]
        written = [name for name in targets(instruction) if name in self.program.relevant]
        if word in _PURE:
            if written:
                self._compute(state, instruction, written)
            return
        if opcode.startswith("shfl.sync"):
            for name in written:
                state.registers[name] = UNKNOWN
            if opcode.startswith("shfl.sync.idx") and written:
                self._broadcast(state, instruction)
            return
        if opcode.startswith(("mbarrier.try_wait.parity", "mbarrier.test_wait.parity")):
            barrier = self._place(state, operands[1], instruction.line)
            parity = self._number(state, operands[2], instruction.line)
            state.registers[operands[0]] = Waited(barrier, parity & 1)
            return
        for name in written:
            state.registers[name] = UNKNOWN
        if opcode.startswith("ld.param") and written:
            state.registers[written[0]] = self._parameter(opcode, operands[1])
        if opcode.startswith(_IGNORED):
            return
        self._tell(state, self._event(state, instruction))

    def _compute(self, state: _State[State_], instruction: Instruction, written: list[str]) -> None:
        if len(written) != 1 or instruction.operands[0] != written[0]:
            for name in written:
                state.registers[name] = UNKNOWN
            return
        args = tuple(self._operand(state, operand) for operand in instruction.operands[1:])
        state.registers[written[0]] = self.evaluator.apply(instruction.opcode, args, state.bounds)

    def _broadcast(self, state: _State[State_], instruction: Instruction) -> None:
        """The value of one lane for its whole warp: known while no branch has divided the threads."""
        target, source, lane, clamp, members = (
            instruction.operands[0].split("|")[0],
            self._operand(state, instruction.operands[1]),
            *(self._operand(state, operand) for operand in instruction.operands[2:5]),
        )
        if not isinstance(lane, int) or clamp != 31 or state.diverged or members not in (-1, 0xFFFFFFFF):
            return
        if isinstance(source, Lanes):
            warps = [source.values[warp * WARP + lane % WARP] for warp in range(WARPGROUP // WARP)]
            source = values.joined(tuple(warps[t // WARP] for t in range(WARPGROUP)))
        state.registers[target] = source

    def _parameter(self, opcode: str, operand: str) -> Value:
        name = operand.strip("[]")
        if name not in self.entry.parameters or opcode.split(".")[-1] not in ("u32", "s32", "b32"):
            return UNKNOWN
        position = self.entry.parameters.index(name)
        known = self.program.launches.values.get(self.program.host.parameters[position])
        return UNKNOWN if known is None else self.evaluator.launch(known, "u32")

    def _tell(self, state: _State[State_], event: Event) -> None:
        self.events[event.line] = event.kind
        try:
            state.follower = self.listener.event(state.follower, event, state.bounds)
        except Refusal as error:
            raise Refusal(str(error), error.line or event.line) from None

    def _event(self, state: _State[State_], instruction: Instruction) -> Event:
        opcode = instruction.opcode
        for prefix, decode in _DECODERS:
            if opcode.startswith(prefix):
                return decode(self, state, instruction)
        raise Refusal(f"an instruction that is not followed: `{opcode}`", instruction.line)

    def map_of(self, state: _State[State_], operand: str, line: int) -> int:
        register = re.match(r"\[\s*([^\s,\]]+)", operand)
        value = self._operand(state, register[1]) if register else UNKNOWN
        if not isinstance(value, Map):
            raise Refusal(f"the tensor map {operand} is not recovered", line)
        return value.parameter

    def footprint(self, state: _State[State_], operand: str, size: int, lanes: int, line: int) -> tuple[str, list[int]]:
        """Base, and bytes by warp, of an access of ``size`` bytes by the first ``lanes`` lanes of each warp."""
        address = self._address(state, operand)
        masks = [0] * (WARPGROUP // WARP)
        bases = set()
        for thread in self.sample:
            place = address.values[thread] if isinstance(address, Lanes) else address
            if thread % WARP >= lanes:
                continue
            if not isinstance(place, Shared) or place.shift or place.offset < 0:
                raise Refusal(f"the address {operand} is not recovered ({place})", line)
            bases.add(place.base)
            masks[thread // WARP] |= footprint.span(place.offset, size)
        if len(bases) > 1:
            raise Refusal(f"{operand} is in {' and in '.join(sorted(bases))}", line)
        return bases.pop() if bases else "", masks


_Decoder = Callable[[Walk[State_], _State[State_], Instruction], Event]


def _init(walk: Walk[State_], state: _State[State_], i: Instruction) -> Event:
    return Event("init", i.line, walk._place(state, i.operands[0], i.line), walk._number(state, i.operands[1], i.line))


def _arrive(walk: Walk[State_], state: _State[State_], i: Instruction) -> Event:
    if "shared::cluster" in i.opcode or i.operands[0] != "_" or "noComplete" in i.opcode:
        raise Refusal(f"an arrival that is not followed: `{i}`", i.line)
    place = walk._place(state, i.operands[1], i.line)
    number = walk._number(state, i.operands[2], i.line) if len(i.operands) > 2 else None
    if "expect_tx" in i.opcode:
        return Event("arrive", i.line, place, number or 0, 1)
    return Event("arrive", i.line, place, 0, 1 if number is None else number)


def _expect(walk: Walk[State_], state: _State[State_], i: Instruction) -> Event:
    return Event(
        "expect", i.line, walk._place(state, i.operands[0], i.line), walk._number(state, i.operands[1], i.line)
    )


def _copy(walk: Walk[State_], state: _State[State_], i: Instruction) -> Event:
    form = re.fullmatch(
        r"cp\.async\.bulk\.tensor\.\dd\.(shared::cluster\.global\.mbarrier::complete_tx::bytes"
        r"|global\.shared::cta\.bulk_group)",
        i.opcode,
    )
    if form is None:
        raise Refusal(f"a copy that is not followed: `{i.opcode}`", i.line)
    if form[1].startswith("global"):
        number = walk.map_of(state, i.operands[0], i.line)
        return Event("copy out", i.line, walk._place(state, i.operands[1], i.line), map=number)
    target, barrier = (walk._place(state, i.operands[k], i.line) for k in (0, 2))
    return Event("copy in", i.line, target, barrier=barrier, map=walk.map_of(state, i.operands[1], i.line))


def _numbered(kind: str) -> _Decoder[State_]:
    def decode(walk: Walk[State_], state: _State[State_], i: Instruction) -> Event:
        return Event(kind, i.line, number=walk._number(state, i.operands[0], i.line) if i.operands else 0)

    return decode


def _sync(walk: Walk[State_], state: _State[State_], i: Instruction) -> Event:
    number = walk._number(state, i.operands[0], i.line)
    threads = walk._number(state, i.operands[1], i.line) if len(i.operands) > 1 else walk.entry.threads
    return Event("sync", i.line, number=number, arrivals=threads)


def _matrix(walk: Walk[State_], state: _State[State_], i: Instruction) -> Event:
    shape = _STEP.search(i.opcode)
    types = i.opcode.split(".")[-2:]
    if shape is None or len(types) != 2 or ".sp." in i.opcode:
        raise Refusal(f"a matrix instruction that is not followed: `{i.opcode}`", i.line)
    n, k = int(shape[1]), int(shape[2])
    in_registers = i.operands[1].startswith("{")
    layouts = [operand == "1" for operand in i.operands[6:]]  # transposed: A (in shared memory only) and B
    transposed_a = bool(layouts and not in_registers and layouts[0])
    transposed_b = bool(layouts and layouts[-1])
    mask, bases = 0, set()
    for operand, rows, transposed in ((i.operands[1], 64, transposed_a), (i.operands[2], n, transposed_b)):
        if operand.startswith("{"):
            continue
        value = walk._operand(state, operand)
        if not isinstance(value, Shared) or value.shift != 4 or value.offset < 0:
            raise Refusal(f"the matrix descriptor {operand} is not recovered ({value})", i.line)
        address, rest = (value.offset & 0x3FFF) << 4, value.offset >> 14 << 14
        read = footprint.operand_bytes(address, rest, rows, 32, transposed)
        if read is None or (transposed and k != 16):
            raise Refusal(f"a matrix descriptor that is not followed: {rest:#x}", i.line)
        mask |= read
        bases.add(value.base)
    if len(bases) > 1:
        raise Refusal(f"operands in {' and in '.join(sorted(bases))}", i.line)
    return Event("mma", i.line, base=bases.pop() if bases else "", masks=(mask,))


def _bytes(opcode: str) -> int:
    vector = re.search(r"\.v(\d)\.", opcode)
    return values.width(opcode.split(".")[-1]) // 8 * (int(vector[1]) if vector else 1)


def _store(walk: Walk[State_], state: _State[State_], i: Instruction) -> Event:
    if i.opcode.startswith("stmatrix"):
        lanes = {"x1": 8, "x2": 16, "x4": 32}[next(part for part in i.opcode.split(".") if part[:1] == "x")]
        base, masks = walk.footprint(state, i.operands[0], 16, lanes, i.line)
    else:
        base, masks = walk.footprint(state, i.operands[0], _bytes(i.opcode), WARP, i.line)
    return Event("store", i.line, base=base, masks=tuple(masks))


def _load(walk: Walk[State_], state: _State[State_], i: Instruction) -> Event:
    if i.opcode.startswith("ldmatrix"):
        lanes = {"x1": 8, "x2": 16, "x4": 32}[next(part for part in i.opcode.split(".") if part[:1] == "x")]
        base, masks = walk.footprint(state, i.operands[1], 16, lanes, i.line)
    else:
        base, masks = walk.footprint(state, i.operands[1], _bytes(i.opcode), WARP, i.line)
    return Event("load", i.line, base=base, masks=tuple(masks))


_DECODERS: tuple[tuple[str, _Decoder], ...] = (  # type: ignore[type-arg]
    ("mbarrier.init", _init),
    ("mbarrier.arrive", _arrive),
    ("mbarrier.expect_tx", _expect),
    ("fence.mbarrier_init", _numbered("init fence")),
    ("fence.proxy.async", _numbered("proxy fence")),
    ("cp.async.bulk.tensor", _copy),
    ("cp.async.bulk.commit_group", _numbered("copy commit")),
    ("cp.async.bulk.wait_group", _numbered("copy wait")),
    ("barrier.cta.sync.aligned", _sync),
    ("barrier.sync.aligned", _sync),
    ("bar.sync", _sync),
    ("wgmma.mma_async", _matrix),
    ("wgmma.fence", _numbered("mma fence")),
    ("wgmma.commit_group", _numbered("mma commit")),
    ("wgmma.wait_group", _numbered("mma wait")),
    ("stmatrix", _store),
    ("st.shared", _store),
    ("st.volatile.shared", _store),
    ("ldmatrix", _load),
    ("ld.shared", _load),
    ("ld.volatile.shared", _load),
)
