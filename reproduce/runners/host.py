"""The host runner: steps run on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reproduce import ROOT
from reproduce.process import end_group

# A step that is told to stop must first end its own children and write its results file.
STOP_GRACE_S = 15.0


class HostRunner:
    """Runs the step on this machine, in this Python environment."""

    name = "host"

    def __init__(self, why: str = "steps run on this machine") -> None:
        self.why = why

    def run(self, step: str, arguments: Sequence[str], *, limit_s: float) -> int:
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        child = subprocess.Popen(
            [sys.executable, "-m", "reproduce", step, *arguments],
            cwd=Path.cwd(),
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        # The child has a session of its own, so that what ends this process alone (a closed terminal, `timeout`) must
        # be passed on.
        handlers = {number: signal.signal(number, _interrupt) for number in _ENDING}
        try:
            return child.wait(limit_s)
        except subprocess.TimeoutExpired:
            end_group(child, STOP_GRACE_S)
            print(f"{step}: not finished after {limit_s / 60:.0f} minutes; run it again to resume", file=sys.stderr)
            return 124
        except KeyboardInterrupt:
            end_group(child, STOP_GRACE_S)
            return 128 + signal.SIGINT
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _interrupt(number: int, frame: Any) -> None:
    """The first of them ends the step; more of them must not cut short how it ends."""
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt
