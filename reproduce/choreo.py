"""The ``choreo`` command as the steps use it: this project's compiler, or another one with the same command line.

Everything goes through the published contract, so that CHOREO=/path/to/another/choreo is measured the same way:
``choreo [--no-sala] -gs FILE.co -o SCRIPT``, the allocation line on stderr, ``bash SCRIPT --compile-link`` and
``bash SCRIPT --execute``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproduce import ROOT, process

_ALLOCATION = re.compile(r"cudaFuncAttributeMaxDynamicSharedMemorySize\s+is\s+set\s+to\s+`(\d+)`")
OUT_OF_BOUND = "shared memory OUT OF BOUND"
COMPILE_LIMIT_S = 60.0


@dataclass(frozen=True)
class Allocation:
    """What the compiler says about one kernel. ``bytes`` is the placement without runtime slack.

    ``bytes`` is None if the compiler failed; for a kernel that does not fit a block it is the size that would be
    needed, when the message states it, and ``out_of_bound`` is true.
    """

    bytes: int | None
    out_of_bound: bool
    message: str
    finished: process.Finished


@dataclass(frozen=True)
class Choreo:
    """A compiler command; ``own`` is true for this project's compiler, which alone has the options beyond the paper."""

    command: tuple[str, ...]
    own: bool

    @staticmethod
    def from_environment() -> Choreo:
        """The compiler that CHOREO names, or this project's; raises ValueError if CHOREO is no program."""
        other = os.environ.get("CHOREO")
        if not other:
            return Choreo.project()
        found = shutil.which(other)
        if found is None:
            raise ValueError(f"CHOREO={other}: there is no such program")
        # Steps run it in the project's root, so a path relative to this folder would not be found there.
        return Choreo((str(Path.cwd() / found),), own=False)

    @staticmethod
    def project() -> Choreo:
        """This project's compiler, whatever CHOREO says."""
        return Choreo((sys.executable, "-m", "croqtile"), own=True)

    def __str__(self) -> str:
        return "choreo (this project)" if self.own else self.command[0]

    def run(self, arguments: Sequence[str | Path], log: Path | None = None, **env: str) -> process.Finished:
        """Runs the compiler in the project's root, where kernels have short names (its messages repeat them)."""
        words = [_short(word) if isinstance(word, Path) else word for word in arguments]
        return process.run([*self.command, *words], timeout_s=COMPILE_LIMIT_S, cwd=ROOT, env=env, log=log)

    def allocate(
        self,
        source: Path,
        *,
        sala: bool,
        out: Path | str = os.devnull,
        defines: Sequence[str] = (),
        options: Sequence[str] = (),
        log: Path | None,
    ) -> Allocation:
        """``choreo -gs``: the work script goes to ``out``, the allocation is read from stderr.

        ``options`` are of this project's compiler only (``--stress``, and what makes a build wrong on purpose)."""
        mode = [*options] if sala else ["--no-sala", *options]
        env = {"CHOREO_TESTING": "1"} if any(option.startswith("--unsound") for option in options) else {}
        finished = self.run([*mode, "-gs", *(f"-D{define}" for define in defines), source, "-o", out], log=log, **env)
        return read_allocation(finished)

    def explain(self, source: Path, log: Path | None) -> list[dict[str, Any]]:
        """Refusals of ``choreo --explain --json``; only this project's compiler has the option."""
        finished = self.run(["--explain", "--json", source], log=log)
        try:
            refusals: list[dict[str, Any]] = json.loads(finished.stdout)["refusals"]
        except (ValueError, KeyError):
            return []
        return refusals


def _short(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def read_allocation(finished: process.Finished) -> Allocation:
    """The allocation from a finished compiler run: exactly one kernel per file is expected."""
    sizes = _ALLOCATION.findall(finished.stderr)
    if finished.ok and len(sizes) == 1:
        return Allocation(int(sizes[0]), False, "", finished)
    at = finished.stderr.find(OUT_OF_BOUND)
    if finished.returncode and at >= 0:
        message = finished.stderr[finished.stderr.rfind("\n", 0, at) + 1 :].strip()
        return Allocation(_needed(message), True, message, finished)
    if finished.ok:
        return Allocation(None, False, f"{len(sizes)} allocation lines on stderr, expected one", finished)
    return Allocation(None, False, finished.last_line() or "the compiler failed without a message", finished)


def _needed(message: str) -> int | None:
    """Bytes that an OUT OF BOUND message says are needed: the largest number in it, which no buffer can exceed."""
    numbers = [int(number.replace(",", "")) for number in re.findall(r"\b\d[\d,]{4,}\b", message)]
    return max(numbers, default=None)
