"""A kernel prepared for walks: what each instruction writes, and which registers matter for the events after it."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field

from croqtile.validation.effects import Effect, effect_of, names
from croqtile.validation.evaluate import Evaluator
from croqtile.validation.events import Refusal
from croqtile.validation.host import HostSide
from croqtile.validation.launches import Launches
from croqtile.validation.ptx import Entry


@dataclass
class Program:
    """``effects``: of each instruction. ``written``: the registers that it writes and that matter for some event.
    ``idle``: how many instructions from here on, up to the next head of a loop, do nothing that matters. ``heads``:
    where backward branches lead; the registers that matter from there on."""

    entry: Entry
    host: HostSide
    launches: Launches
    evaluator: Evaluator
    effects: list[Effect] = field(init=False)
    written: list[tuple[str, ...]] = field(init=False)
    idle: list[int] = field(init=False)
    heads: Mapping[int, frozenset[str]] = field(init=False)

    def __post_init__(self) -> None:
        instructions = self.entry.instructions
        self.effects = [effect_of(i.opcode, i.operands, i.guard[0] if i.guard else None) for i in instructions]
        jumps = self._jumps()
        live = self._live(jumps)
        self.heads = {target: names(live[target]) for position, target in jumps.items() if target <= position}
        relevant = functools.reduce(operator.or_, live)
        known = names(relevant)
        self.written = [
            tuple(name for name in effect.targets if name in known) if effect.written & relevant else ()
            for effect in self.effects
        ]
        self.idle = [0] * (len(instructions) + 1)
        for position in range(len(instructions) - 1, -1, -1):
            if self.effects[position].pure and not self.written[position] and not instructions[position].guard:
                self.idle[position] = 1 if position + 1 in self.heads else self.idle[position + 1] + 1

    def _jumps(self) -> dict[int, int]:
        """Where branches lead."""
        jumps = {}
        for position, effect in enumerate(self.effects):
            if effect.branches:
                instruction = self.entry.instructions[position]
                if instruction.operands[0] not in self.entry.labels:
                    raise Refusal(f"no label {instruction.operands[0]}", instruction.line)
                jumps[position] = self.entry.labels[instruction.operands[0]]
        return jumps

    def _live(self, jumps: Mapping[int, int]) -> list[int]:
        """Before each instruction, the set of registers on which some event or branch after it depends."""
        live = [0] * (len(self.effects) + 1)
        branches: dict[int, list[int]] = {}  # to a position
        for position, target in jumps.items():
            branches.setdefault(target, []).append(position)
        stale = [True] * len(self.effects)
        while any(stale):
            for position in range(len(self.effects) - 1, -1, -1):
                if not stale[position]:
                    continue
                stale[position] = False
                effect, found = self.effects[position], live[position + 1]
                if effect.branches:
                    jump = live[jumps[position]]
                    found = found | jump if self.entry.instructions[position].guard else jump
                elif effect.ends:
                    found = 0
                if found & effect.written:
                    found = found & ~effect.killed | effect.sources
                found |= effect.sinks
                if found != live[position]:
                    live[position] = found
                    stale[max(position - 1, 0)] = True
                    for branch in branches.get(position, ()):
                        stale[branch] = True
        return live
