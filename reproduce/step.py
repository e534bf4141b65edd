"""What a step is: measurements with their needs, and the tables made from their records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reproduce import ROOT, process
from reproduce.choreo import Choreo
from reproduce.machine import Machine, Need
from reproduce.results import Record
from reproduce.tables import Scalar, Table


class NoRunError(Exception):
    """A program did not end in its time or crashed: the row's verdict is [NO-RUN], and the next row runs."""


class FailedError(Exception):
    """A program ran and its result is wrong, or a tool refused its input."""


class NotMeasuredError(Exception):
    """This machine cannot measure that (e.g. Nsight Compute without permission); the message says what to do."""


@dataclass(frozen=True)
class Options:
    """What the command line says beyond the name of the step."""

    only: tuple[str, ...] = ()
    fresh: bool = False
    cuda: tuple[str, ...] = ()
    show_race: bool = False
    seeds: int = 0  # of stress; 0: as many as it has by itself


@dataclass
class Context:
    """Where a measurement runs: the machine, the compiler, the claims, and folders for what it writes.

    ``build`` keeps compiled programs between runs; ``log(name)`` is a file in results/logs/<step>. ``gpu_lock`` is the
    file descriptor of the lock on the GPU: programs inherit it, so that one that outlives a killed run keeps it locked.
    """

    step: str
    results: Path
    build: Path
    machine: Machine
    choreo: Choreo
    claims: Mapping[str, Any]
    options: Options = field(default_factory=Options)
    gpu_lock: int | None = None

    def log(self, name: str) -> Path:
        safe = "".join(char if char.isalnum() or char in "._-" else "_" for char in name)
        return self.results / "logs" / self.step / f"{safe}.log"

    def run(self, argv: list[str | Path], *, timeout_s: float, log: str, **env: str) -> process.Finished:
        """Runs a program of the step from the project's root, on the chosen GPU, with its log kept."""
        settings = {**self.machine.gpu_environment(), **env}
        inherited = () if self.gpu_lock is None else (self.gpu_lock,)
        return process.run(argv, timeout_s=timeout_s, cwd=ROOT, env=settings, log=self.log(log), inherited=inherited)


@dataclass(frozen=True)
class Measurement:
    """One unit of work, kept or repeated as a whole: ``run`` returns values by name or raises one of the errors above.

    ``seconds`` is an estimate, for the progress display and the order of those that are ``parallel``: that others may
    run beside (never timing).
    ``timed``: its values are times, or made from times; the GPU's state is sampled beside it.
    """

    key: str
    run: Callable[[Context], dict[str, Scalar]]
    needs: frozenset[Need] = frozenset()
    seconds: float = 1.0
    parallel: bool = False
    timed: bool = False


@dataclass(frozen=True)
class Step:
    """A figure, a table or a check of the paper.

    ``minutes`` is what it takes on a machine that has everything and 16 cores; ``claims`` names entries of claims.yaml.
    """

    name: str
    title: str
    minutes: float
    claims: tuple[str, ...]
    measurements: Callable[[Context], list[Measurement]]
    tables: Callable[[Mapping[str, Record], Context], tuple[Table, ...]]
    needs: frozenset[Need] = frozenset()
    optional: frozenset[Need] = frozenset()

    @property
    def limit_s(self) -> float:
        return time_limit_s(self.minutes)

    def uses(self, need: Need) -> bool:
        return need in self.needs or need in self.optional


def time_limit_s(minutes: float) -> float:
    """When work that takes ``minutes`` where it was measured is ended: slower machines get four times that, and ten
    minutes to compile."""
    return 60 * (4 * minutes + 10)
