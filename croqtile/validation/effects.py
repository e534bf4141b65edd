"""Which registers an instruction writes and reads, from its text alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

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
_REGISTER = re.compile(r"%[A-Za-z_]\w*(?:\.[xyz])?|[A-Za-z_]\w*@\d+")


@dataclass(frozen=True)
class Effect:
    """``targets``: registers that it writes; ``sinks``: those that decide its event; ``sources``: those of which it
    makes its targets. ``pure``: it does nothing but write registers."""

    targets: tuple[str, ...]
    sinks: frozenset[str]
    sources: frozenset[str]
    pure: bool


@lru_cache(maxsize=1 << 16)  # of a module seen before, little has changed
def effect_of(opcode: str, operands: tuple[str, ...]) -> Effect:
    return Effect(
        tuple(_targets(opcode, operands)),
        frozenset(_REGISTER.findall(" ".join(_sinks(opcode, operands)))),
        frozenset(_REGISTER.findall(" ".join(operands[1:]))),
        opcode.split(".")[0] in PURE,
    )


def _targets(opcode: str, operands: tuple[str, ...]) -> list[str]:
    word = opcode.split(".")[0]
    writes = word in PURE or word in ("ld", "ldmatrix", "shfl", "elect", "vote", "activemask", "atom", "mapa", "wgmma")
    writes = writes or opcode.startswith(("mbarrier.try_wait", "mbarrier.test_wait"))
    return _REGISTER.findall(operands[0]) if writes and operands else []


def _sinks(opcode: str, operands: tuple[str, ...]) -> tuple[str, ...]:
    """The operands that decide an event."""
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
