"""Census of CUTLASS' warp-specialized GEMM kernels, from their source text.

The claim behind the CUTLASS rows: main loop and epilogue storage share memory in a kernel exactly when it computes one
tile per CTA. A kernel is persistent if it loops over the work tiles that its scheduler hands out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from reproduce.cutlass.configurations import Storage
from reproduce.cutlass.errors import CutlassError
from reproduce.cutlass.headers import Headers

_PATTERN = "*warpspecialized*.hpp"
_SCHEDULER_LOOP = re.compile(r"\bwhile\s*\(\s*work_tile_info\.is_valid\(\)\s*\)")
_TENSOR_STORAGE = re.compile(r"\b(struct|union)\s+TensorStorage\b[^;{]*\{")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Kernel:
    """One kernel header: its architecture (``sm90``), how many scheduler loops it has, how its tensors are stored."""

    file: str
    architecture: str
    scheduler_loops: int
    storage: Storage

    @property
    def persistent(self) -> bool:
        return self.scheduler_loops > 0


@dataclass(frozen=True)
class Census:
    """Every kernel, by architecture and file name."""

    version: str
    kernels: tuple[Kernel, ...]

    def count(self, storage: Storage, *, persistent: bool) -> int:
        return sum(kernel.storage is storage and kernel.persistent is persistent for kernel in self.kernels)

    def summary(self) -> str:
        """One line; with CUTLASS 4.5.0: ``21 = 2 union, non-persistent + 19 struct, persistent``."""
        kinds = [(storage, persistent) for persistent in (False, True) for storage in (Storage.UNION, Storage.STRUCT)]
        counted = [(self.count(storage, persistent=loop), storage, loop) for storage, loop in kinds]
        parts = [f"{n} {storage.value}, {'' if loop else 'non-'}persistent" for n, storage, loop in counted if n]
        return f"{len(self.kernels)} = " + " + ".join(parts)


def read_kernel(name: str, text: str) -> Kernel:
    """Classifies one header; CutlassError if it does not have exactly one TensorStorage."""
    code = _COMMENT.sub(" ", text)
    storages = _TENSOR_STORAGE.findall(code)
    if len(storages) != 1:
        raise CutlassError(f"{name}: {len(storages)} definitions of TensorStorage, expected one; cannot classify it")
    return Kernel(name, name.split("_", 1)[0], len(_SCHEDULER_LOOP.findall(code)), Storage(storages[0]))


def take(headers: Headers) -> Census:
    """Reads every warp-specialized kernel header of ``headers``."""
    folder = headers.include / "cutlass" / "gemm" / "kernel"
    paths = sorted(folder.glob(_PATTERN), key=_by_architecture)
    if not paths:
        raise CutlassError(f"{folder} has no {_PATTERN}: {headers} is no complete CUTLASS 3 or 4")
    return Census(headers.version, tuple(read_kernel(path.name, path.read_text(encoding="utf-8")) for path in paths))


def _by_architecture(path: Path) -> tuple[int, str]:
    digits = re.match(r"sm(\d+)", path.name)
    return (int(digits[1]) if digits else 0, path.name)
