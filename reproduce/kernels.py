"""The kernels that the steps compile: name (in claims.yaml, if the paper has it) → source file."""

from __future__ import annotations

from pathlib import Path

from reproduce import ROOT

_FAMILIES = (
    ("matmul_", "kernels/matmul"),
    ("fa_", "kernels/flash_atten"),
    ("conv2d_", "kernels/conv"),
    ("stress_", "reproduce/stress"),
)


def source(kernel: str) -> Path:
    """The ``.co`` file of a kernel. Raises KeyError for a name of no known family."""
    for prefix, folder in _FAMILIES:
        if kernel.startswith(prefix):
            return ROOT / folder / f"{kernel}.co"
    raise KeyError(kernel)


def pattern(name: str) -> Path:
    """An example pattern of the analyzer."""
    return ROOT / "hb_analyzer" / "examples" / name
