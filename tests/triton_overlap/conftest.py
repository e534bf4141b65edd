"""TTGIR of the project's Triton kernels, compiled once per session. Needs Triton, no GPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

Text = Callable[..., str]


@pytest.fixture(scope="session")
def ttgir_of() -> Text:
    """``ttgir_of("gemm", (128, 128), 3)``: stock Triton's TTGIR, without locations."""
    pytest.importorskip("triton", reason="needs triton==3.6.0")
    from reproduce.tawa import sources
    from reproduce.tawa.rows import STOCK, Kernel
    from triton_overlap.ttgir import normalise

    @cache
    def text(kind: str, block: tuple[int, int] = (128, 128), stages: int = 3, mode: str = STOCK) -> str:
        return normalise(sources.build(Kernel(kind, block, stages), mode).asm["ttgir"])

    return text
