"""What a translation validation finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """``role``: whose code; "" for the kernel as a whole. ``line`` of the PTX, 0 for none."""

    role: str
    why: str
    line: int = 0

    def __str__(self) -> str:
        where = f"{self.role}: " if self.role else ""
        return f"{where}{self.why}" + (f" (PTX line {self.line})" if self.line else "")


@dataclass(frozen=True)
class RoleRow:
    """``instructions``: PTX instructions with an effect on shared memory or synchronisation that its threads reach, by
    kind, and their ``lines``; ``operations`` of the analysed program."""

    role: str
    warpgroup: int
    operations: int
    instructions: Mapping[str, int]
    lines: tuple[int, ...] = ()


@dataclass(frozen=True)
class ProofStep:
    """One operation on a path of happens-before, and the PTX lines that carry it out (none for the setting of an event,
    which the hardware makes of arrivals and bytes)."""

    text: str
    lines: tuple[int, ...] = ()


@dataclass(frozen=True)
class ProofPath:
    """An ordering by which buffers ``pair`` may overlap, from the first access to the second."""

    pair: tuple[str, str]
    steps: tuple[ProofStep, ...]


@dataclass(frozen=True)
class Validation:
    """``overlaps``: pairs of buffers that share bytes. ``walked``: instructions on all paths. ``problems``: none if the
    code is the program that was analysed."""

    kernel: str
    roles: tuple[RoleRow, ...] = ()
    overlaps: tuple[tuple[str, str], ...] = ()
    walked: int = 0
    problems: tuple[Problem, ...] = ()
    samples: int = 0
    proofs: tuple[ProofPath, ...] = ()

    @property
    def instructions(self) -> int:
        return sum(sum(row.instructions.values()) for row in self.roles)
