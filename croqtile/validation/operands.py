"""What the operands of an instruction are, for some threads at some point of a walk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from croqtile.validation import footprint
from croqtile.validation.events import Refusal
from croqtile.validation.program import Program
from croqtile.validation.values import UNKNOWN, WARPGROUP, Bounds, Lanes, Map, Shared, Value

WARP = 32
_NUMBER = re.compile(r"-?(0[xX][0-9a-fA-F]+|\d+)U?")
_ADDRESS = re.compile(r"\[\s*([^\s+\]]+)\s*(?:\+\s*(-?\w+))?\s*\]")


class Constants(dict[str, Value]):
    """What an operand is that no instruction has written, by its text: a literal, a variable, a special register."""

    def __init__(self, program: Program, warpgroup: int) -> None:
        super().__init__()
        self.program, self.warpgroup = program, warpgroup

    def __missing__(self, text: str) -> Value:
        self[text] = self._value(text)
        return self[text]

    def _value(self, text: str) -> Value:
        entry, host, launches = self.program.entry, self.program.host, self.program.launches
        if text in ("%tid.x", "%laneid"):
            first = WARPGROUP * self.warpgroup if text == "%tid.x" else 0
            return Lanes(tuple(first + t if first or text == "%tid.x" else t % WARP for t in range(WARPGROUP)))
        if text in ("%tid.y", "%tid.z"):
            return 0
        if text == "%ntid.x":
            return entry.threads
        if text.startswith("%ctaid."):
            names = [name for name, axis in host.block.items() if axis == text[-1]]
            samples = launches.values.get(names[0]) if names else None
            return UNKNOWN if samples is None else self.program.evaluator.launch(samples, "u32")
        if _NUMBER.fullmatch(text):
            return int(text.rstrip("U"), 0)
        if text in entry.shared:
            return Shared(text, entry.shared[text].align)
        return Map(entry.parameters.index(text)) if text in entry.parameters else UNKNOWN


@dataclass
class Operands:
    """``threads``: those of the warpgroup that walk together. Refuses what is not known exactly."""

    constants: Constants
    threads: frozenset[int]
    registers: Mapping[str, Value]
    bounds: Mapping[str, Bounds]

    @property
    def program(self) -> Program:
        return self.constants.program

    def of_class(self, value: Value) -> Value:
        """One value, if it is the same for all these threads."""
        own = {value.values[t] for t in self.threads} if isinstance(value, Lanes) else {value}
        return own.pop() if len(own) == 1 else value

    def operand(self, text: str) -> Value:
        return self.registers[text] if text in self.registers else self.constants[text]

    def address(self, operand: str) -> Value:
        """``[register + constant]``."""
        found = _ADDRESS.fullmatch(operand)
        if found is None:
            return UNKNOWN
        base = self.operand(found[1])
        return self.program.evaluator.apply("add.s32", (base, int(found[2], 0)), self.bounds) if found[2] else base

    def place(self, operand: str, line: int) -> Shared:
        value = self.of_class(self.address(operand))
        if not isinstance(value, Shared) or value.shift:
            raise Refusal(f"the address {operand} is not recovered ({value})", line)
        return value

    def number(self, operand: str, line: int) -> int:
        value = self.of_class(self.operand(operand))
        if not isinstance(value, int):
            raise Refusal(f"the operand {operand} is not recovered ({value})", line)
        return value

    def map_of(self, operand: str, line: int) -> int:
        register = re.match(r"\[\s*([^\s,\]]+)", operand)
        value = self.operand(register[1]) if register else UNKNOWN
        if not isinstance(value, Map):
            raise Refusal(f"the tensor map {operand} is not recovered", line)
        return value.parameter

    def footprint(self, operand: str, size: int, lanes: int, line: int) -> tuple[str, tuple[int, ...]]:
        """Base, and bytes by warp, of an access of ``size`` bytes by the first ``lanes`` lanes of each warp."""
        address = self.address(operand)
        try:
            bases, masks = _footprint(address, self.threads, size, lanes)
        except Refusal as error:
            raise Refusal(f"the address {operand} is not recovered ({error})", line) from None
        if len(bases) > 1:
            raise Refusal(f"{operand} is in {' and in '.join(sorted(bases))}", line)
        return "".join(bases), masks


@lru_cache(maxsize=1 << 12)  # on every path, and for every module of a kernel, the same
def _footprint(
    address: Value, threads: frozenset[int], size: int, lanes: int
) -> tuple[frozenset[str], tuple[int, ...]]:
    """Bases, and bytes by warp."""
    masks = [0] * (WARPGROUP // WARP)
    bases = set()
    for thread in sorted(threads):
        place = address.values[thread] if isinstance(address, Lanes) else address
        if thread % WARP >= lanes:
            continue
        if not isinstance(place, Shared) or place.shift or place.offset < 0:
            raise Refusal(str(place))
        bases.add(place.base)
        masks[thread // WARP] |= footprint.span(place.offset, size)
    return frozenset(bases), tuple(masks)
