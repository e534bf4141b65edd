"""The kernels of the Tawa rows and how they are compiled. Needs no Triton; ``sources.py`` does."""

from __future__ import annotations

from dataclasses import dataclass

BLOCK_K = 64
HEAD_DIM = 128
# What is done to a kernel. The first two are the paper's columns; "control" is the Gluon GEMM with its epilogue outside
# of the specialized region, where stock Triton itself reuses memory.
STOCK, OVERLAP, CONTROL = "stock", "overlap", "control"
INVALIDATE, REPAIR, NO_GUARD, UNCHECKED = "invalidate", "repair", "no guard", "unchecked"
WRONG_ON_PURPOSE = (NO_GUARD, UNCHECKED)
SHARED_LIMIT = 232448  # bytes that a block of sm_90 may have


@dataclass(frozen=True)
class Kernel:
    """One kernel at one tile. ``kind``: "gemm" (Gluon), "auto", "persistent" (specialized by Triton), "attention".

    ``block`` is (M, N) of the output tile, or (queries, keys) of attention. ``row``: its row in the paper, if any.
    """

    kind: str
    block: tuple[int, int]
    stages: int
    row: str | None = None

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.block[0]}x{self.block[1]}_{self.stages}s"

    @property
    def is_attention(self) -> bool:
        return self.kind == "attention"

    @property
    def specialized_by_triton(self) -> bool:
        return self.kind != "gemm"

    @property
    def modes(self) -> tuple[str, ...]:
        """Everything that can be compiled of it."""
        if self.kind == "gemm":
            return (STOCK, OVERLAP, CONTROL)
        more = (INVALIDATE, REPAIR, UNCHECKED)
        return (STOCK, OVERLAP, *more, NO_GUARD) if self.kind == "persistent" else (STOCK, OVERLAP, *more)


PAPER = (
    Kernel("gemm", (128, 128), 3, "128x128 3s"),
    Kernel("gemm", (128, 128), 2, "128x128 2s"),
    Kernel("gemm", (64, 128), 2, "64x128 2s"),
    Kernel("attention", (128, 128), 2, "FA WS 2s"),
    Kernel("attention", (128, 128), 3, "FA WS 3s"),
)
MORE = (
    Kernel("auto", (128, 128), 3),
    Kernel("auto", (128, 128), 5),
    Kernel("persistent", (128, 128), 3),
    Kernel("persistent", (128, 128), 4),
    Kernel("persistent", (128, 128), 6),
    Kernel("attention", (128, 64), 3),
)
ALL = (*PAPER, *MORE)


def find(name: str) -> Kernel:
    """The kernel of that name. Raises KeyError."""
    return {kernel.name: kernel for kernel in ALL}[name]
