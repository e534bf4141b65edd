"""The union edit: main loop and epilogue storage of CUTLASS' persistent kernels in one union, as the paper measures it.

CUTLASS itself is never changed. Edited copies of the kernel headers go to a folder that the compiler searches first.
"""

from __future__ import annotations

from pathlib import Path

from reproduce.cutlass.errors import CutlassError
from reproduce.cutlass.headers import Headers
from reproduce.results import write_atomically

STRUCT = "struct TensorStorage : cute::aligned_struct<128, _1> {"
UNION = "union TensorStorage {"

# The persistent kernels that the rows use, relative to the include folder.
EDITED = (
    "cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_cooperative.hpp",
    "cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_pingpong.hpp",
)


def edit(text: str, where: str) -> str:
    """``text`` with its one ``struct TensorStorage`` made a union; CutlassError unless there is exactly one."""
    hits = text.count(STRUCT)
    if hits != 1:
        raise CutlassError(
            f"{where}: the line '{STRUCT}' occurs {hits} times, expected once; "
            "this CUTLASS differs from 4.2–4.5, for which the union edit is written"
        )
    return text.replace(STRUCT, UNION)


def overlay(headers: Headers, build: Path) -> Path:
    """Writes the edited copies and returns the folder to search before ``headers.include``."""
    folder = build / f"union-{headers.version}"
    for name in EDITED:
        source = headers.include / name
        if not source.is_file():
            raise CutlassError(f"{headers} has no {name}: it needs a CUTLASS with Hopper kernels, 4.2–4.5")
        write_atomically(folder / name, edit(source.read_text(encoding="utf-8"), name))
    return folder
