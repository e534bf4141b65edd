"""Runs a compiled kernel and reads what it prints: shared memory, registers, and the elements that are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reproduce.cutlass.errors import CutlassError

RIGHT, WRONG = 0, 1  # exit status of gemm.cu when it has measured


@dataclass(frozen=True)
class Outcome:
    """One program at one size. Counts of wrong elements are the worst launch's; errors are |D − reference|.

    ``sampled_*`` is the check of the paper (4096 elements, f32 reference, tolerance 0.1 + 1 % of it); ``full_*`` the
    same for every element. ``dynamic_smem_bytes`` is what the launch requests.
    """

    kernel: str
    cutlass: str
    gpu: str
    storage: str
    size: int
    sms: int
    tiles: int
    ctas: int
    dynamic_smem_bytes: int
    static_smem_bytes: int
    registers: int
    ctas_per_sm: int
    launches: int
    wrong_launches: int
    sampled_wrong: int
    sampled: int
    sampled_max_error: float
    full_wrong: int
    full: int
    full_max_error: float
    beta: float

    @property
    def right(self) -> bool:
        return not (self.sampled_wrong or self.full_wrong)

    @property
    def tiles_per_cta(self) -> int:
        """The most tiles of one CTA, from the grid that was launched."""
        return -(-self.tiles // self.ctas)


def read_outcome(printed: str) -> Outcome:
    """Reads the ``name: value`` lines of ``gemm.cu``; CutlassError if one is missing or no number."""
    lines = dict(line.split(": ", 1) for line in printed.splitlines() if ": " in line)
    return _outcome(lines)


def _outcome(lines: Mapping[str, str]) -> Outcome:
    readers = {"str": str, "int": int, "float": float}
    values: dict[str, str | int | float] = {}
    for name, kind in Outcome.__annotations__.items():
        try:
            values[name] = readers[kind](lines[name])
        except KeyError:
            raise CutlassError(f"the program printed no line '{name}: …'") from None
        except ValueError:
            raise CutlassError(f"the program printed '{name}: {lines[name]}', which is no {kind}") from None
    return Outcome(**values)  # type: ignore[arg-type]  # each value was read with its field's type
