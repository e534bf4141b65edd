"""The kernels that the steps compile: name in claims.yaml → source file."""

from __future__ import annotations

from pathlib import Path

from reproduce import ROOT

_FAMILIES = (("matmul_", "matmul"), ("fa_", "flash_atten"), ("conv2d_", "conv"))


def source(kernel: str) -> Path:
    """The ``.co`` file of a kernel. Raises KeyError for a name of no known family."""
    for prefix, folder in _FAMILIES:
        if kernel.startswith(prefix):
            return ROOT / "kernels" / folder / f"{kernel}.co"
    raise KeyError(kernel)


def pattern(name: str) -> Path:
    """An example pattern of the analyzer."""
    return ROOT / "hb_analyzer" / "examples" / name
