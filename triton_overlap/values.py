"""Integers of a kernel as far as they matter here: which slot of a ring, which phase, how many iterations.

A value is a *key*: nested tuples that are equal only if the values are equal in every execution (in one iteration, for
keys that mention a counter). Keys are built by :func:`apply`, which recognises the arithmetic of rings:

    ("const", n)                 an integer constant (true is 1)
    ("arg", name)                an argument of the kernel
    ("counter", name)            a counter of the model, 0, 1, 2, …
    ("rem", key, S)              counter mod S
    ("div", key, S)              counter div S
    ("parity", key, S, invert)   (counter div S + invert) mod 2
    ("induction", loop, lower, step)  the variable of a loop that does not count 0, 1, 2, …
    ("op", name, …)              any other pure operation of keys
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

Key = tuple[Any, ...]

_CASTS = {"arith.trunci", "arith.extui", "arith.extsi"}
_PURE = {
    "arith.addi",
    "arith.subi",
    "arith.muli",
    "arith.divsi",
    "arith.divui",
    "arith.remsi",
    "arith.remui",
    "arith.andi",
    "arith.xori",
    "arith.minsi",
    "arith.maxsi",
    "arith.ceildivsi",
    "arith.trunci",
    "arith.extsi",
    "arith.extui",
}
COMMUTATIVE = {"arith.addi", "arith.muli", "arith.andi", "arith.xori"}


def const(value: int) -> Key:
    return ("const", value)


def counter(name: str) -> Key:
    return ("counter", name)


def unknown(identity: Hashable) -> Key:
    """A value of which nothing is known but that it is itself."""
    return ("unknown", identity)


def is_pure(name: str) -> bool:
    """Whether :func:`apply` may be asked about operation ``name``."""
    return name in _PURE


def apply(name: str, operands: list[Key], result_type: str) -> Key:
    """The key of a pure integer operation."""
    if name in COMMUTATIVE and len(operands) == 2 and operands[0][0] == "const":
        operands = [operands[1], operands[0]]
    first = operands[0]
    if name in _CASTS:
        if first[0] == "parity" or (first[0] == "rem" and result_type != "i1"):
            return first  # small enough for every type; a phase of -1 (sign-extended i1) has the parity of 1
        if first[0] == "rem" and first[2] == 2 and name == "arith.trunci":
            return ("parity", first[1], 1, 0)
        return ("op", name, result_type, first)
    if len(operands) == 2:
        found = _binary(name, first, operands[1])
        if found is not None:
            return found
    return ("op", name, *operands)


def _binary(name: str, left: Key, right: Key) -> Key | None:
    """The arithmetic of rings; None for everything else. Counters are never negative, so both divisions agree."""
    if left[0] == right[0] == "const":
        return _constants(name, left[1], right[1])
    if name == "arith.subi" and left[0] == "counter" and right[:2] == ("op", "arith.muli"):
        quotient, factor = right[2], right[3]
        if factor[0] == "const" and quotient == ("div", left, factor[1]):
            return ("rem", left, factor[1])
    if name in ("arith.divui", "arith.divsi") and left[:2] == ("op", "arith.subi") and left[2][0] == "induction":
        _, loop, lower, step = left[2]
        if left[3] == lower and right == step:
            return counter(loop)
    if right[0] != "const":
        return None
    value = right[1]
    if left[0] == "counter" and value > 0:
        if name in ("arith.remsi", "arith.remui"):
            return ("rem", left, value)
        if name in ("arith.divsi", "arith.divui"):
            return ("div", left, value)
    if name == "arith.andi" and value == 1:
        if left[0] == "div":
            return ("parity", left[1], left[2], 0)
        if left[0] == "counter":
            return ("parity", left, 1, 0)
        if left[:2] == ("op", "arith.addi") and left[2][0] == "counter" and left[3] == ("const", 1):
            return ("parity", left[2], 1, 1)
    if name == "arith.xori" and value == 1 and left[0] == "parity":
        return ("parity", left[1], left[2], 1 - left[3])
    return None


def _constants(name: str, left: int, right: int) -> Key | None:
    if min(left, right) < 0 or max(left, right) >= 1 << 30:
        return None
    if name == "arith.addi":
        return const(left + right)
    if name == "arith.subi":
        return const(left - right)
    if name == "arith.muli" and left * right < 1 << 30:
        return const(left * right)
    if name in ("arith.divsi", "arith.divui") and right:
        return const(left // right)
    if name in ("arith.remsi", "arith.remui") and right:
        return const(left % right)
    return None


def mentions(key: Key, kinds: frozenset[str]) -> bool:
    """Whether ``key`` depends on a value of one of ``kinds``."""
    return key[0] in kinds or any(isinstance(part, tuple) and part and mentions(part, kinds) for part in key[1:])
