"""Compiles ``kernels/cutlass``: the sizes alone (seconds, nothing is run), or a program per kernel (a minute each).

nvcc runs in the build folder and gets relative paths: it hands paths to a shell of its own, where a space would part
them.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import BoundedSemaphore

from croqtile.toolchain import Toolchain, parse_resources
from reproduce import ROOT, process
from reproduce.cutlass.configurations import Configuration, Schedule, Storage
from reproduce.cutlass.errors import CutlassError
from reproduce.cutlass.headers import Headers
from reproduce.cutlass.union import overlay

SOURCES = ROOT / "kernels" / "cutlass"
SIZES_LIMIT_S = 300.0
PROGRAM_LIMIT_S = 1200.0
PROGRAM_MEMORY = 3 << 30  # bytes that one nvcc takes at its peak

# 20012: CUTLASS marks defaulted functions __host__ __device__, and nvcc says that it ignores that.
_FLAGS = ("-std=c++17", "--expt-relaxed-constexpr", "-diag-suppress", "20012", "-gencode")
_PTX_FLAGS = ("arch=compute_90a,code=compute_90a", "-ptx")
# Without NDEBUG an assert in the main loop is a call, and the matrix instructions around a call are serialised.
_PROGRAM_FLAGS = ("arch=compute_90a,code=sm_90a", "-O3", "-DNDEBUG", "-Xptxas", "-v", "-Xlinker", "-s")
_CONSTANT = re.compile(r"^\.global \.align 4 \.u32 (\w+)(?: = (\d+))?;$", re.MULTILINE)


@dataclass(frozen=True)
class Sizes:
    """Shared storage of one kernel in bytes: all, the main loop's tiles, the epilogue's, both as they are stored."""

    total: int
    mainloop: int
    epilogue: int
    tensors: int
    union: bool


@dataclass(frozen=True)
class Program:
    """A compiled kernel; ``registers`` per thread and spills in bytes, as ptxas reports them."""

    path: Path
    registers: int
    spill_bytes: int


@dataclass(frozen=True)
class Compiler:
    """nvcc with CUTLASS; everything that it writes is under ``build``."""

    tools: Toolchain
    headers: Headers
    build: Path

    def sizes(self, storage: Storage, log: Path | None = None) -> dict[str, Sizes]:
        """Sizes of every kernel by configuration name, with CUTLASS as it is or with the union edit. Exact, no GPU.

        Raises CutlassError if nvcc fails.
        """
        self.build.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.build) as folder:
            ptx = Path(folder) / "sizes.ptx"
            arguments = [*_FLAGS, *_PTX_FLAGS, *self._includes(edited=storage is Storage.UNION)]
            self._nvcc(
                [*arguments, "-o", self._relative(ptx), self._relative(SOURCES / "sizes.cu")], SIZES_LIMIT_S, log
            )
            return read_sizes(ptx.read_text(encoding="utf-8", errors="replace"))

    def program(self, configuration: Configuration, storage: Storage, log: Path | None = None) -> Program:
        """Compiles one kernel to a program, or takes the one compiled from the same sources before.

        Raises CutlassError if nvcc fails.
        """
        # The non-persistent kernel is a union in CUTLASS itself: measured as it is.
        edited = storage is Storage.UNION and configuration.schedule is not Schedule.NON_PERSISTENT
        arguments = [*_FLAGS, *_PROGRAM_FLAGS, *macros(configuration, storage), *self._includes(edited=edited)]
        name = f"{storage.value}_{configuration.name}"
        path = self.build / "programs" / f"{name}-{self._digest(arguments)}"
        printed = path.with_suffix(".log")
        if not (path.is_file() and printed.is_file()):
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                made = Path(folder) / "program"
                command = [*arguments, *self.tools.link_flags, "-o", self._relative(made)]
                with _memory():
                    finished = self._nvcc([*command, self._relative(SOURCES / "gemm.cu")], PROGRAM_LIMIT_S, log)
                printed.write_text(finished.output, encoding="utf-8")
                made.replace(path)
        return _describe(path, printed.read_text(encoding="utf-8"))

    def _nvcc(self, arguments: Sequence[str], limit_s: float, log: Path | None) -> process.Finished:
        finished = process.run([self.tools.nvcc, *arguments], timeout_s=limit_s, cwd=self.build, log=log)
        if not finished.ok:
            why = f"no result within {limit_s:.0f} s" if finished.timed_out else _first_error(finished.output)
            raise CutlassError(f"nvcc failed on {Path(arguments[-1]).name} with {self.headers}: {why}")
        return finished

    def _includes(self, *, edited: bool) -> list[str]:
        """``-isystem``: CUTLASS' own warnings are not ours. The edited copies come first."""
        folders = [overlay(self.headers, self.build)] if edited else []
        folders.append(self.headers.include)
        return [word for folder in folders for word in ("-isystem", self._relative(folder))]

    def _relative(self, path: Path) -> str:
        return os.path.relpath(path, self.build)

    def _digest(self, arguments: Sequence[str]) -> str:
        """Changes with our sources, the flags, the versions of nvcc and CUTLASS."""
        digest = hashlib.sha256(repr((list(arguments), self.tools.version, str(self.headers))).encode())
        for name in ("gemm.cu", "kernel.hpp"):
            digest.update((SOURCES / name).read_bytes())
        return digest.hexdigest()[:12]


def macros(configuration: Configuration, storage: Storage) -> list[str]:
    """What selects one kernel in ``gemm.cu``; EXPECT_UNION is checked there against the type."""
    values = {
        "SCHEDULE": configuration.schedule.value,
        "TILE_M": configuration.tile_m,
        "TILE_N": configuration.tile_n,
        "STAGES": configuration.stages,
        "OUTPUT": configuration.epilogue.value,
        "EXPECT_UNION": int(storage is Storage.UNION),
        "KERNEL": configuration.name,
    }
    return [f"-D{name}={value}" for name, value in values.items()]


def read_sizes(ptx: str) -> dict[str, Sizes]:
    """The constants of ``sizes.cu`` by configuration. PTX leaves out an initial value of zero."""
    constants = {name: int(value or 0) for name, value in _CONSTANT.findall(ptx)}
    found: dict[str, Sizes] = {}
    for name in (key.removesuffix("_total") for key in constants if key.endswith("_total")):
        parts = {
            part: constants.get(f"{name}_{part}") for part in ("total", "mainloop", "epilogue", "tensors", "union")
        }
        missing = [part for part, value in parts.items() if value is None]
        if missing:
            raise CutlassError(f"sizes.cu: nvcc printed no constant for {name}: {', '.join(missing)}")
        total, mainloop, epilogue, tensors, union = (int(value or 0) for value in parts.values())
        found[name] = Sizes(total, mainloop, epilogue, tensors, bool(union))
    if not found:
        raise CutlassError("sizes.cu: nvcc printed no constants")
    return found


@cache
def _memory() -> BoundedSemaphore:
    """As many compilations at once as fit into half of the machine's memory, at least one."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):  # not known on this system
        memory = 0
    return BoundedSemaphore(max(1, memory // 2 // PROGRAM_MEMORY))


def _describe(path: Path, log: str) -> Program:
    kernels = [kernel for kernel in parse_resources(log) if "device_kernel" in kernel.name]
    if len(kernels) != 1:
        raise CutlassError(f"{path.name}: ptxas reports {len(kernels)} CUTLASS kernels, expected one")
    return Program(path, kernels[0].registers, kernels[0].spill_stores + kernels[0].spill_loads)


def _first_error(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["nothing printed"])[0]
