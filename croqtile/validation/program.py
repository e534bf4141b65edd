"""A kernel prepared for walks: what each instruction writes, and which registers matter for the events after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from croqtile.validation.effects import Effect, effect_of
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
        instructions, labels = self.entry.instructions, self.entry.labels
        self.effects = [effect_of(instruction.opcode, instruction.operands) for instruction in instructions]
        heads = set()
        for position, instruction in enumerate(instructions):
            if instruction.opcode.startswith("bra"):
                if instruction.operands[0] not in labels:
                    raise Refusal(f"no label {instruction.operands[0]}", instruction.line)
                if labels[instruction.operands[0]] <= position:
                    heads.add(labels[instruction.operands[0]])
        live = self._live()
        relevant = frozenset().union(*set(live))
        self.written = [tuple(name for name in effect.targets if name in relevant) for effect in self.effects]
        self.heads = {position: live[position] for position in heads}
        self.idle = [0] * (len(instructions) + 1)
        for position in range(len(instructions) - 1, -1, -1):
            if self.effects[position].pure and not self.written[position] and not instructions[position].guard:
                self.idle[position] = 1 if position + 1 in heads else self.idle[position + 1] + 1

    def _live(self) -> list[frozenset[str]]:
        """Before each instruction, the registers on which some event or branch after it depends."""
        instructions, labels = self.entry.instructions, self.entry.labels
        before: list[list[int]] = [[position - 1] if position else [] for position in range(len(instructions) + 1)]
        for position, instruction in enumerate(instructions):
            if instruction.opcode.startswith("bra"):
                before[labels[instruction.operands[0]]].append(position)
        live: list[frozenset[str]] = [frozenset()] * (len(instructions) + 1)
        stale = [True] * len(instructions)
        while any(stale):
            for position in range(len(instructions) - 1, -1, -1):
                if not stale[position]:
                    continue
                stale[position] = False
                found = self._live_before(position, live)
                if found is not live[position] and found != live[position]:
                    live[position] = found
                    for other in before[position]:
                        stale[other] = True
        return live

    def _live_before(self, position: int, live: list[frozenset[str]]) -> frozenset[str]:
        instruction, effect = self.entry.instructions[position], self.effects[position]
        found, guard = live[position + 1], instruction.guard
        if instruction.opcode.startswith("bra"):
            jump = live[self.entry.labels[instruction.operands[0]]]
            found = jump | found if guard else jump
        elif instruction.opcode in ("ret", "exit", "trap") and guard is None:
            found = frozenset()
        if not found.isdisjoint(effect.targets):
            found = (found if guard else found.difference(effect.targets)) | effect.sources
        if not effect.sinks <= found:
            found |= effect.sinks
        return found | {guard[0]} if guard and guard[0] not in found else found
