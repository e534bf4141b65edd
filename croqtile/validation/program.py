"""A kernel prepared for walks: what each instruction writes, and which registers matter for the events after it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from croqtile.validation.evaluate import Evaluator
from croqtile.validation.events import Refusal
from croqtile.validation.host import HostSide
from croqtile.validation.launches import Launches
from croqtile.validation.ptx import Entry, Instruction

# Instructions without an effect on memory or other threads, by first word.
PURE = frozenset(
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
REGISTER = re.compile(r"%[A-Za-z_]\w*(?:\.[xyz])?|[A-Za-z_]\w*@\d+")


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
                used = set(REGISTER.findall(" ".join(_sinks(instruction))))
                if written:
                    used.update(REGISTER.findall(" ".join(instruction.operands[1:])))
                if instruction.guard:
                    used.add(instruction.guard[0])
                before = before | used
                if before != live[position]:
                    live[position], changed = before, True
        return live


def targets(instruction: Instruction) -> list[str]:
    """The registers that an instruction writes."""
    word = instruction.opcode.split(".")[0]
    writes = word in PURE or word in ("ld", "ldmatrix", "shfl", "elect", "vote", "activemask", "atom", "mapa", "wgmma")
    writes = writes or instruction.opcode.startswith(("mbarrier.try_wait", "mbarrier.test_wait"))
    return REGISTER.findall(instruction.operands[0]) if writes and instruction.operands else []


def _sinks(instruction: Instruction) -> tuple[str, ...]:
    """The operands that decide an event."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode.startswith("wgmma.mma_async"):
        return operands[1:3]
    if opcode.startswith("cp.async.bulk.tensor"):
        return tuple(re.sub(r"\{[^}]*\}", "", operand) for operand in operands)
    if opcode.startswith(("mbarrier.try_wait", "mbarrier.test_wait")):
        return operands[1:]  # the first one is set
    if opcode.startswith(("mbarrier.", "barrier.", "bar.", "cp.")):
        return operands
    if opcode.startswith(("stmatrix", "st.")):
        return operands[:1]
    if opcode.startswith(("ld.", "ldmatrix")):
        return operands[1:2]
    return ()
