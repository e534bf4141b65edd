"""Walks the PTX of one kernel as the threads of one warpgroup do, over all paths, and says what they do.

Threads that take the same branches walk together; where a branch divides them, :class:`Divided` asks for a walk of each
part. A branch that depends on a launch-time trip count is walked both ways, with what each way tells about the count. A
loop is followed until its state recurs, up to the modulus of its counters: then all further iterations are covered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from croqtile.validation import values
from croqtile.validation.decode import event_of
from croqtile.validation.events import Event, Refusal
from croqtile.validation.operands import WARP, Operands
from croqtile.validation.program import Program
from croqtile.validation.ptx import Instruction
from croqtile.validation.values import (
    UNKNOWN,
    WARPGROUP,
    Bounds,
    Count,
    Lanes,
    Question,
    Rest,
    Trip,
    Undetermined,
    Unknown,
    Value,
    Waited,
)

_LIMIT = 500_000  # instructions of one walk
_MOST_STATES = 100  # at the head of one loop; the kernels here need up to 17
_IGNORED = ("prefetch.tensormap", "setmaxnreg.", "ld.param", "ld.global", "ld.const", "st.global", "nanosleep.")


class Divided(Exception):
    """A branch divides the threads: those that jump, and the others."""

    def __init__(self, jump: frozenset[int], stay: frozenset[int]) -> None:
        super().__init__()
        self.parts = (jump, stay)


State_ = TypeVar("State_")


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
        self.seen: dict[int, list[_State[State_]]] = {}
        self.fresh: set[int] = set()  # ids of the states in ``seen`` since the last branch that could go both ways
        self.steps = 0
        self.events: dict[int, str] = {}  # line → kind, of those that were reached

    def run(self) -> None:
        """Walks all paths. Raises Refusal, Divided."""
        work = [_State(0, {}, dict(self.bounds), self.listener.start())]
        while work:
            self._path(work.pop(), work)

    def _path(self, state: _State[State_], work: list[_State[State_]]) -> None:
        instructions = self.entry.instructions
        self.fresh.clear()
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
                if id(known) in self.fresh:
                    line = self.entry.instructions[state.position].line
                    raise Refusal("a loop that nothing ends", line)
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
        if len(earlier) >= _MOST_STATES:
            line = self.entry.instructions[state.position].line
            raise Refusal(f"the state at the head of a loop does not recur within {_MOST_STATES} visits", line)
        earlier.append(state.copy())
        self.fresh.add(id(earlier[-1]))
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
            if isinstance(value, Waited):
                other.registers[register] = int(holds)  # until the mbarrier is tested again
                if holds:
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
            if not self._matters(state.position):
                return False
            raise Refusal(f"`{instruction}` runs under an unknown condition", instruction.line)
        return bool(value) == instruction.guard[1]

    def _matters(self, position: int) -> bool:
        return not self.program.effects[position].pure or bool(self.program.written[position])

    def _of_class(self, state: _State[State_], value: Value) -> Value:
        """``value`` as these threads see it: one value if it is the same for all of them."""
        if isinstance(value, Lanes):
            own = {value.values[t] for t in self.threads}
            if len(own) == 1:
                state.diverged = True
                return own.pop()
        return value

    def _at(self, state: _State[State_]) -> Operands:
        return Operands(self.program, self.warpgroup, self.threads, state.registers, state.bounds)

    # -- instructions

    def _execute(self, state: _State[State_], instruction: Instruction) -> None:
        opcode, operands = instruction.opcode, instruction.operands
        written = self.program.written[state.position]
        if self.program.effects[state.position].pure:
            if written:
                self._compute(state, instruction, written)
            return
        if opcode.startswith("shfl.sync"):
            for name in written:
                state.registers[name] = UNKNOWN
            if opcode.startswith("shfl.sync.idx") and written:
                self._broadcast(state, instruction)
            return
        at = self._at(state)
        if opcode.startswith(("mbarrier.try_wait.parity", "mbarrier.test_wait.parity")) and ".relaxed" not in opcode:
            barrier = at.place(operands[1], instruction.line)
            parity = at.number(operands[2], instruction.line)
            if parity not in (0, 1):
                raise Refusal(f"the parity {parity} is neither 0 nor 1", instruction.line)
            state.registers[operands[0]] = Waited(barrier, parity)
            return
        for name in written:
            state.registers[name] = UNKNOWN
        if opcode.startswith("ld.param") and written:
            state.registers[written[0]] = self._parameter(opcode, operands[1])
        if opcode.startswith(_IGNORED):
            return
        self._tell(state, event_of(at, instruction))

    def _compute(self, state: _State[State_], instruction: Instruction, written: tuple[str, ...]) -> None:
        if len(written) != 1 or instruction.operands[0] != written[0]:
            for name in written:
                state.registers[name] = UNKNOWN
            return
        at = self._at(state)
        args = tuple(at.operand(operand) for operand in instruction.operands[1:])
        state.registers[written[0]] = self.evaluator.apply(instruction.opcode, args, state.bounds)

    def _broadcast(self, state: _State[State_], instruction: Instruction) -> None:
        """The value of one lane for its whole warp: known while no branch has divided the threads."""
        at = self._at(state)
        target, source, lane, clamp, members = (
            instruction.operands[0].split("|")[0],
            at.operand(instruction.operands[1]),
            *(at.operand(operand) for operand in instruction.operands[2:5]),
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
