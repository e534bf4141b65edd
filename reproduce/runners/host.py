"""The host runner: steps run on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reproduce import ROOT
from reproduce.machine import Machine, gpu_numbers
from reproduce.process import STEP_GRACE_S, end_group, module_command
from reproduce.runners import EXIT_INTERRUPTED, EXIT_TIME


class HostRunner:
    """Runs the step on this machine, in this Python environment."""

    name = "host"

    def __init__(self, why: str = "steps run on this machine") -> None:
        self.why = why

    def run(self, step: str, arguments: Sequence[str], *, limit_s: float) -> int:
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        command = [*module_command("reproduce"), step, *arguments]
        return run_command(command, step, limit_s=limit_s, env={"PYTHONPATH": path})

    def shell(self, gpu: str) -> int:
        from reproduce import shell

        return shell.run(Machine(",".join(gpu_numbers(gpu, f"--gpu {gpu}")) if gpu else None))


def run_command(command: Sequence[str], step: str, *, limit_s: float, env: Mapping[str, str]) -> int:
    """Runs the command of a step on this terminal to its end, or ends it at its limit (124) or with this process."""
    child = subprocess.Popen(
        command,
        cwd=Path.cwd(),
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    # The child has a session of its own, so that what ends this process alone (a closed terminal, `timeout`) must
    # be passed on.
    with interrupted_once():
        try:
            return _status(step, child.wait(limit_s))
        except subprocess.TimeoutExpired:
            end_group(child, STEP_GRACE_S)
            print(f"{step}: not finished after {limit_s / 60:.0f} minutes; run it again to resume", file=sys.stderr)
            return EXIT_TIME
        except KeyboardInterrupt:
            end_group(child, STEP_GRACE_S)
            return EXIT_INTERRUPTED


def _status(step: str, returncode: int) -> int:
    """The exit status as a shell gives it; a step that something killed could not say so itself."""
    if returncode >= 0:
        return returncode
    number = -returncode
    why = f"signal {number}, {signal.strsignal(number)}" + (": too little memory?" if number == signal.SIGKILL else "")
    print(f"{step}: ended from outside ({why}); what was measured is kept: run it again to resume", file=sys.stderr)
    return 128 + number


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interrupted_once() -> Iterator[None]:
    """What would end this process raises KeyboardInterrupt in the block; more of it must not cut short how it ends."""
    handlers = {number: signal.signal(number, _interrupt) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: Any) -> None:
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt
