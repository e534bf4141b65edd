"""Runners: where a step runs. Every runner executes the same command, ``python -m reproduce STEP``, and the step never
knows which one started it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

# Exit statuses beside a step's own: wrong arguments, out of time (as `timeout` says it), Ctrl-C.
EXIT_USAGE, EXIT_TIME, EXIT_INTERRUPTED = 2, 124, 130


class Runner(Protocol):
    """``why`` says in one line where steps run and why this runner was chosen."""

    name: str
    why: str

    def shell(self, gpu: str) -> int:
        """An interactive shell with what a step has, on this terminal; returns its status. ``gpu``: number, or ""."""
        ...

    def run(self, step: str, arguments: Sequence[str], *, limit_s: float) -> int:
        """Runs the step to its end with its output on this terminal; returns its exit status, 124 for out of time."""
        ...
