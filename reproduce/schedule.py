"""Runs steps side by side: one worker per GPU, and one for the steps that use none.

A step that uses a GPU has it to itself from its start to its end, so that nothing of ours disturbs what is timed. Every
step is a process of its own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reproduce.process import STEP_GRACE_S, end_group


@dataclass(frozen=True)
class Job:
    """One step: the command that runs it. One that uses a GPU is told which by ``--gpu N`` and the environment."""

    name: str
    command: tuple[str, ...]
    uses_gpu: bool


@dataclass(frozen=True)
class Ended:
    job: Job
    gpu: str | None
    status: int
    seconds: float


class Schedule:
    """``line(name, text)`` gets what the steps print, line by line; ``ended`` is called as each of them ends. Both are
    called by one thread at a time.
    """

    def __init__(
        self, jobs: Sequence[Job], gpus: Sequence[str], line: Callable[[str, str], None], ended: Callable[[Ended], None]
    ) -> None:
        self._gpus, self._line, self._ended = list(gpus), line, ended
        self._waiting = {True: deque(job for job in jobs if job.uses_gpu)}
        self._waiting[False] = deque(job for job in jobs if not job.uses_gpu)
        self._running: set[subprocess.Popen[str]] = set()
        self._mutex = threading.RLock()
        self._stopping = False
        self._error: Exception | None = None

    def run(self) -> None:
        """Runs every job, in their order as far as GPUs are free. KeyboardInterrupt (Ctrl-C) ends all of them."""
        workers = [threading.Thread(target=self._work, args=(gpu,), daemon=True) for gpu in [*self._gpus, None]]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                worker.join()
        except BaseException:
            self._stop()
            raise
        if self._error is not None:
            raise self._error

    def _work(self, gpu: str | None) -> None:
        try:
            while True:
                with self._mutex:
                    queue = self._waiting[gpu is not None]
                    if self._stopping or not queue:
                        return
                    job = queue.popleft()
                    child = self._start(job, gpu)
                started = time.monotonic()
                assert child.stdout is not None
                for text in child.stdout:
                    with self._mutex:
                        self._line(job.name, text.rstrip("\n"))
                status = child.wait()
                with self._mutex:
                    self._running.discard(child)
                    if not self._stopping:
                        self._ended(Ended(job, gpu, status, time.monotonic() - started))
        except Exception as error:  # it must reach the caller of `run`, and not leave the other workers going
            self._error = self._error or error
            self._stop()

    def _start(self, job: Job, gpu: str | None) -> subprocess.Popen[str]:
        environment, words = dict(os.environ), list(job.command)
        if gpu is not None:
            environment |= {"GPU": gpu, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": gpu}
            words += ["--gpu", gpu]
        child = subprocess.Popen(
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        self._running.add(child)
        return child

    def _stop(self) -> None:
        """Tells every child to end, then waits for each: one after another they would need a grace time each."""
        with self._mutex:
            self._stopping = True
            children = list(self._running)
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)
        for child in children:
            end_group(child, STEP_GRACE_S)
