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
    """``effects``: of each instruction. ``written``: the registers that it writes and that matter for some event."""

    entry: Entry
    host: HostSide
    launches: Launches
    evaluator: Evaluator
    effects: list[Effect] = field(init=False)
    written: list[tuple[str, ...]] = field(init=False)
    heads: Mapping[int, frozenset[str]] = field(init=False)  # where backward branches lead; what matters from there on

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

    def _live(self) -> list[frozenset[str]]:
        """Before each instruction, the registers on which some event or branch after it depends."""
        labels = self.entry.labels
        live: list[frozenset[str]] = [frozenset()] * (len(self.effects) + 1)
        backwards = list(zip(range(len(self.effects)), self.entry.instructions, self.effects, strict=True))[::-1]
        changed = True
        while changed:
            changed = False
            for position, instruction, effect in backwards:
                before, guard = live[position + 1], instruction.guard
                if instruction.opcode.startswith("bra"):
                    jump = live[labels[instruction.operands[0]]]
                    before = jump | before if guard else jump
                elif instruction.opcode in ("ret", "exit", "trap") and guard is None:
                    before = frozenset()
                if not before.isdisjoint(effect.targets):
                    before = (before if guard else before.difference(effect.targets)) | effect.sources
                if not effect.sinks <= before:
                    before |= effect.sinks
                if guard and guard[0] not in before:
                    before |= {guard[0]}
                if before is not live[position] and before != live[position]:
                    live[position], changed = before, True
        return live
