"""Which registers an instruction writes and reads, from its text alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
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
    """``targets``: registers that it may write. Sets of registers (:func:`names`): ``written``, the same; ``killed``,
    those that it writes in any case; ``sinks``, those that decide its event, or whether it runs; ``sources``, those of
    which it makes its targets. ``pure``: it does nothing but write registers. ``branches``, ``ends``: it goes
    elsewhere; its threads end in any case."""

    targets: tuple[str, ...]
    written: int
    killed: int
    sinks: int
    sources: int
    pure: bool
    branches: bool
    ends: bool


@lru_cache(maxsize=1 << 16)  # of a module seen before, little has changed
def effect_of(opcode: str, operands: tuple[str, ...], guard: str | None) -> Effect:
    """``guard``: the register that decides whether it runs."""
    targets = _targets(opcode, operands)
    return Effect(
        tuple(targets),
        _bits(targets),
        0 if guard else _bits(targets),
        _bits(_REGISTER.findall(" ".join((*_sinks(opcode, operands), guard or "")))),
        _bits(_REGISTER.findall(" ".join(operands[1:]))),
        opcode.split(".")[0] in PURE,
        opcode.startswith("bra"),
        opcode in ("ret", "exit", "trap") and not guard,
    )


_numbers: dict[str, int] = {}  # register → its bit


def _bits(registers: Iterable[str]) -> int:
    mask = 0
    for name in registers:
        mask |= 1 << _numbers.setdefault(name, len(_numbers))
    return mask


def names(mask: int) -> frozenset[str]:
    """The registers of a set."""
    known = list(_numbers)
    found = []
    while mask:
        found.append(known[mask.bit_length() - 1])
        mask ^= 1 << mask.bit_length() - 1
    return frozenset(found)


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
