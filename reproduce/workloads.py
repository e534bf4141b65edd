"""Arguments of the kernels' programs: which problem a step runs on."""

from __future__ import annotations


def gemm(size: int) -> list[str]:
    """M = N = K = ``size``."""
    return ["--m", str(size), "--n", str(size), "--k", str(size)]


def gemm_shape(m: int, n: int, k: int) -> list[str]:
    return ["--m", str(m), "--n", str(n), "--k", str(k)]


def attention(batch: int, heads: int, seq: int) -> list[str]:
    return ["--batch", str(batch), "--heads", str(heads), "--seq", str(seq)]
