"""Walks the PTX of one kernel as the threads of one warpgroup do, over all paths, and says what they do.

Threads that take the same branches walk together; where a branch divides them, :class:`Divided` asks for a walk of each
part. A branch that depends on a launch-time trip count is walked both ways, with what each way tells about the count. A
loop is followed until its state recurs (``recurrence.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic

from croqtile.validation.events import Event, Refusal
from croqtile.validation.execute import Executor
from croqtile.validation.program import Program
from croqtile.validation.ptx import Instruction
from croqtile.validation.recurrence import Recurrence
from croqtile.validation.state import Follower, Listener, State
from croqtile.validation.values import (
    UNKNOWN,
    Bounds,
    Lanes,
    Question,
    Undetermined,
    Unknown,
    Value,
    Waited,
    decide,
    refine,
)

_LIMIT = 500_000  # instructions of one walk


class Divided(Exception):
    """A branch divides the threads: those that jump, and the others."""

    def __init__(self, jump: frozenset[int], stay: frozenset[int]) -> None:
        super().__init__()
        self.parts = (jump, stay)


class Walk(Generic[Follower]):
    """One walk of ``threads`` (of 128) of warpgroup ``warpgroup``."""

    def __init__(
        self,
        program: Program,
        warpgroup: int,
        threads: frozenset[int],
        bounds: Mapping[str, Bounds],
        listener: Listener[Follower],
    ) -> None:
        self.program, self.entry, self.threads = program, program.entry, threads
        self.listener = listener
        self.bounds = dict(bounds)
        self.executor = Executor(program, warpgroup, threads)
        self.recurrence = Recurrence(program.heads, program.evaluator.modulus, listener)
        self.steps = 0
        self.events: dict[int, str] = {}  # line → kind, of those that were reached

    def run(self) -> None:
        """Walks all paths. Raises Refusal, Divided."""
        work = [State(0, {}, dict(self.bounds), self.listener.start())]
        while work:
            self._path(work.pop(), work)

    def _path(self, state: State[Follower], work: list[State[Follower]]) -> None:
        instructions, effects = self.entry.instructions, self.program.effects
        idle, heads = self.program.idle, self.program.heads
        self.recurrence.fresh.clear()
        while True:
            position = state.position
            if position in heads:
                known = self.recurrence.visit(state, instructions[position].line)
                if known is None:
                    return
                state = known
            if idle[position]:
                self.steps += idle[position]
                state.position += idle[position]
                continue
            if position >= len(instructions):
                raise Refusal("the code runs past its end", instructions[-1].line)
            self.steps += 1
            if self.steps > _LIMIT:
                raise Refusal(f"no recurring state within {_LIMIT} instructions")
            instruction, effect = instructions[position], effects[position]
            if effect.branches:
                if not self._branch(state, instruction, work):
                    return
                continue
            if instruction.guard and not self._guarded(state, instruction, instruction.guard):
                state.position += 1
                continue
            if instruction.opcode in ("ret", "exit"):
                self.listener.finish(state.follower, state.bounds)
                return
            if instruction.opcode == "trap":
                return
            try:
                if effect.pure:
                    self.executor.compute(state, instruction)
                elif event := self.executor.execute(state, instruction):
                    self._tell(state, event)
            except Undetermined as open_:
                for bounds in state.bounds[open_.parameter].split(open_.modulus):
                    work.append(state.copy())
                    work[-1].bounds[open_.parameter] = bounds
                return
            state.position += 1

    def _branch(self, state: State[Follower], instruction: Instruction, work: list[State[Follower]]) -> bool:
        """Moves ``state`` on, and puts the other way into ``work`` where both are possible."""
        target = self.entry.labels[instruction.operands[0]]
        if instruction.guard is None:
            state.position = target
            return True
        register, wanted = instruction.guard
        value = self._of_class(state, state.registers.get(register, UNKNOWN))
        if isinstance(value, Lanes):
            if all(isinstance(value.values[t], int) for t in self.threads):
                raise self._division(value, wanted)
            raise Refusal("a branch on values that are not known for each thread", instruction.line)
        if isinstance(value, Question):
            decided = decide(value.test, self._usable(state, value), value.number)
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
                bounds = refine(value.test, state.bounds[value.parameter], value.number, holds)
                if bounds.high is not None and bounds.high < bounds.low:
                    continue
                other.bounds[value.parameter] = bounds
            work.append(other)
        return False

    def _comparable(self, state: State[Follower], question: Question) -> bool:
        return question.comparable or not state.bounds[question.parameter].shifted

    def _usable(self, state: State[Follower], question: Question) -> Bounds:
        bounds = state.bounds[question.parameter]
        return bounds if self._comparable(state, question) else Bounds(bounds.low)

    def _guarded(self, state: State[Follower], instruction: Instruction, guard: tuple[str, bool]) -> bool:
        """Does the instruction run? Raises Divided where only some threads run it."""
        register, wanted = guard
        value = self._of_class(state, state.registers.get(register, UNKNOWN))
        if isinstance(value, Lanes) and all(isinstance(value.values[t], int) for t in self.threads):
            raise self._division(value, wanted)
        if isinstance(value, int):
            return bool(value) == wanted
        if self.program.effects[state.position].pure and not self.program.written[state.position]:
            return False  # whether it does makes no difference
        raise Refusal(f"`{instruction}` runs under an unknown condition", instruction.line)

    def _division(self, predicate: Lanes, wanted: bool) -> Divided:
        run = frozenset(t for t in self.threads if bool(predicate.values[t]) == wanted)
        return Divided(run, self.threads - run)

    def _of_class(self, state: State[Follower], value: Value) -> Value:
        """``value`` as these threads see it: one value if it is the same for all of them."""
        if isinstance(value, Lanes):
            own = {value.values[t] for t in self.threads}
            if len(own) == 1:
                state.diverged = True
                return own.pop()
        return value

    def _tell(self, state: State[Follower], event: Event) -> None:
        self.events[event.line] = event.kind
        try:
            state.follower = self.listener.event(state.follower, event, state.bounds)
        except Refusal as error:
            raise Refusal(str(error), error.line or event.line) from None
