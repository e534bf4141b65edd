"""What one instruction does: to the registers of the threads that run it, and to memory, as an event."""

from __future__ import annotations

from croqtile.validation.decode import event_of
from croqtile.validation.events import Event, Refusal
from croqtile.validation.operands import WARP, Constants, Operands
from croqtile.validation.program import Program
from croqtile.validation.ptx import Instruction
from croqtile.validation.state import Follower, State
from croqtile.validation.values import UNKNOWN, WARPGROUP, Lanes, Value, Waited, joined

_IGNORED = ("prefetch.tensormap", "setmaxnreg.", "ld.param", "ld.global", "ld.const", "st.global", "nanosleep.")


class Executor:
    """Executes instructions for ``threads`` (of 128) of warpgroup ``warpgroup``."""

    def __init__(self, program: Program, warpgroup: int, threads: frozenset[int]) -> None:
        self.program, self.threads = program, threads
        self._constants = Constants(program, warpgroup)

    def compute(self, state: State[Follower], instruction: Instruction) -> None:
        """An instruction that does nothing but write registers. Raises Undetermined."""
        written, registers, constants = self.program.written[state.position], state.registers, self._constants
        if len(written) == 1 and instruction.operands[0] == written[0]:
            args = tuple([registers[x] if x in registers else constants[x] for x in instruction.operands[1:]])
            registers[written[0]] = self.program.evaluator.apply(instruction.opcode, args, state.bounds)
        else:
            for name in written:
                registers[name] = UNKNOWN

    def execute(self, state: State[Follower], instruction: Instruction) -> Event | None:
        """Any other: sets the registers that it writes, and returns its event, if it has one. Raises Refusal,
        Undetermined."""
        opcode, operands = instruction.opcode, instruction.operands
        written = self.program.written[state.position]
        for name in written:
            state.registers[name] = UNKNOWN
        if opcode.startswith("shfl.sync"):
            if opcode.startswith("shfl.sync.idx") and written:
                self._broadcast(state, instruction)
            return None
        at = self._at(state)
        if opcode.startswith(("mbarrier.try_wait.parity", "mbarrier.test_wait.parity")) and ".relaxed" not in opcode:
            barrier = at.place(operands[1], instruction.line)
            parity = at.number(operands[2], instruction.line)
            if parity not in (0, 1):
                raise Refusal(f"the parity {parity} is neither 0 nor 1", instruction.line)
            state.registers[operands[0]] = Waited(barrier, parity)
            return None
        if opcode.startswith("ld.param") and written == (operands[0],):  # one register, no vector
            state.registers[operands[0]] = self._parameter(opcode, operands[1])
        return None if opcode.startswith(_IGNORED) else event_of(at, instruction)

    def _broadcast(self, state: State[Follower], instruction: Instruction) -> None:
        """The value of one lane for its whole warp: known while no branch has divided the threads."""
        at = self._at(state)
        target, source, lane, clamp, members = (
            instruction.operands[0].split("|")[0],
            *(at.operand(operand) for operand in instruction.operands[1:5]),
        )
        if not isinstance(lane, int) or clamp != 31 or state.diverged or members not in (-1, 0xFFFFFFFF):
            return
        if isinstance(source, Lanes):
            warps = [source.values[warp * WARP + lane % WARP] for warp in range(WARPGROUP // WARP)]
            source = joined(tuple(warps[t // WARP] for t in range(WARPGROUP)))
        state.registers[target] = source

    def _parameter(self, opcode: str, operand: str) -> Value:
        entry, host = self.program.entry, self.program.host
        name = operand.strip("[]")
        if name not in entry.parameters or opcode.split(".")[-1] not in ("u32", "s32", "b32"):
            return UNKNOWN
        known = self.program.launches.values.get(host.parameters[entry.parameters.index(name)])
        return UNKNOWN if known is None else self.program.evaluator.launch(known, "u32")

    def _at(self, state: State[Follower]) -> Operands:
        return Operands(self._constants, self.threads, state.registers, state.bounds)
