"""A job that was submitted, followed until it has ended: its log as it grows, what Slurm says, how it ended."""

from __future__ import annotations

import codecs
import math
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reproduce import ROOT
from reproduce.runners import EXIT_INTERRUPTED, EXIT_TIME, slurm_queue
from reproduce.runners.slurm_queue import SlurmError, State

POLL_S = 0.25
ASK_S = (0.5, 10.0)  # how often the controller is asked: at first, and at most
HOPELESS_S = 10.0  # a controller that has just started may say so of any job

EXIT_FAILED, EXIT_MEMORY = 1, 137


@dataclass
class Log:
    """A job's log, printed as it grows. Opened anew each time: over a network file system, that shows what is new."""

    path: Path
    _read: int = 0
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    def drain(self) -> None:
        try:
            with self.path.open("rb") as file:
                file.seek(self._read)
                new = file.read()
        except OSError:  # not there yet
            return
        if new:
            self._read += len(new)
            sys.stdout.write(self._decoder.decode(new))
            sys.stdout.flush()


@dataclass
class Followed:
    """A submitted job, and what of it has been shown. ``limit_s``: Slurm's limit of its running time; ``seconds``: what
    it ran for; ``problem``: why it did not end by itself.
    """

    step: str
    job: Any  # submitit.Job[int], where submitit is installed
    log: Log
    place: Path
    limit_s: float
    seconds: float = 0.0
    problem: str = ""
    _running_since: float | None = None
    _shown: State = field(default_factory=lambda: State(""))
    _silent_since: float | None = None
    _hopeless_since: float | None = None

    def follow(self, limit_s: float = math.inf) -> int:
        """Shows the job's log and states until it has ended; returns the exit status of the step."""
        deadline, asked, pause = time.monotonic() + limit_s, -math.inf, ASK_S[0]
        while True:
            self.log.drain()
            finished = self._status() is not None
            if finished or time.monotonic() - asked >= pause:
                state = slurm_queue.ask(self.job.job_id)
                asked, pause = time.monotonic(), min(1.5 * pause, ASK_S[1])
                self._show(state)
                if (state.ended if state else finished) or asked >= deadline:
                    self.seconds = asked - (self._running_since or asked)
                    return self._conclude(state)
                if self._given_up():
                    return EXIT_FAILED
            time.sleep(POLL_S)

    def _status(self) -> int | None:
        """The step's exit status, once the job has written it."""
        if not self.job.paths.result_pickle.exists():
            return None
        try:
            return int(self.job.result())
        except Exception:  # the job's own exception; its traceback is in the log
            return EXIT_FAILED

    def _show(self, state: State | None) -> None:
        """Says on stderr what has changed; SlurmError for a job that will never start."""
        number = f"{self.step}: job {self.job.job_id}"
        if state is None:
            if self._silent_since is None:
                self._silent_since = time.monotonic()
                say(f"{number}: Slurm's controller does not answer; the job goes on without it, and so does its log")
            return
        if self._silent_since is not None:
            self._silent_since = None
            say(f"{number}: Slurm's controller answers again")
        if state.restarts > self._shown.restarts:
            say(f"{number} was requeued (a node failed, or the job was preempted): it resumes from what was measured")
        if state.name == "PENDING" and (state.name, state.reason) != (self._shown.name, self._shown.reason):
            say(f"{number} is queued: {slurm_queue.reason_in_words(state.reason)}")
        elif state.name != self._shown.name and state.name == "RUNNING":
            self._running_since = time.monotonic()
            say(f"{number} runs on {state.node}; log: {self.log.path}")
        elif state.ended and state.node and self._running_since is None:
            say(f"{number} ran on {state.node}; log: {self.log.path}")  # shorter than the pause between two questions
        elif state.name != self._shown.name and state.name == "SUSPENDED":
            say(f"{number} is suspended; it goes on when Slurm resumes it")
        self._shown = state
        if state.name != "PENDING" or state.reason not in slurm_queue.HOPELESS:
            self._hopeless_since = None
        elif self._hopeless_since is None:
            self._hopeless_since = time.monotonic()
        elif time.monotonic() - self._hopeless_since >= HOPELESS_S:
            raise SlurmError(f"{number} would wait for ever: {slurm_queue.reason_in_words(state.reason)}")

    def _given_up(self) -> bool:
        """Whether the job must have ended long ago, while nobody could say so."""
        if self._silent_since is None or time.monotonic() - self._silent_since < self.limit_s + 60:
            return False
        say(f"{self.step}: no word of job {self.job.job_id} since its time is over: ask `squeue` when Slurm is back")
        return True

    def _conclude(self, state: State | None) -> int:
        """The status that the job ended with, and what to do if it did not end by itself."""
        self.log.drain()
        status = self._status()
        name = state.name if state else "COMPLETED"
        # Without an answer the job may still be about to end, and need its folder; after a failure, someone may.
        if state and state.ended and name != "FAILED":
            shutil.rmtree(self.place, ignore_errors=True)
        if status is not None and name in ("COMPLETED", "COMPLETING", "UNKNOWN"):
            return status
        ending, status_then = _ENDINGS.get(name, (f"ended as {name}", EXIT_FAILED))
        node = f" on {state.node}" if state and state.node else ""
        code = f", exit code {state.exit_code}" if state and name == "FAILED" else ""
        self.problem = f"job {self.job.job_id}{node} {ending}{code}"
        say(f"{self.step}: {self.problem} (log: {self.log.path})")
        return status_then


_KEPT = "what was measured is kept: the same command goes on from there"
_ENDINGS = {
    "CANCELLED": (f"was cancelled; {_KEPT}", EXIT_INTERRUPTED),
    "TIMEOUT": (f"reached its time limit; {_KEPT} (--slurm time=MINUTES gives it more)", EXIT_TIME),
    "DEADLINE": (f"reached its deadline; {_KEPT}", EXIT_TIME),
    "OUT_OF_MEMORY": ("was ended for want of memory: give it more with --slurm mem=SIZE, e.g. mem=32G", EXIT_MEMORY),
    "NODE_FAIL": (f"ended because its node failed; {_KEPT}", EXIT_FAILED),
    "PREEMPTED": (f"was preempted by another job; {_KEPT}", EXIT_FAILED),
    "BOOT_FAIL": ("could not start: its node did not boot", EXIT_FAILED),
    "UNKNOWN": (f"is not known to Slurm any more, and wrote no exit status; {_KEPT}", EXIT_FAILED),
    "FAILED": (
        f"failed before the step ended. Do {ROOT} and {sys.executable} exist on the node, too? They must lie on a file "
        "system that it shares",
        EXIT_FAILED,
    ),
}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
