"""Child processes that always end: a time limit each, a process group of their own, ended with all their children."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reproduce import ROOT

# A program that is told to stop gets this long before it is killed; a CUDA program needs it to leave its context.
GRACE_S = 2.0
# A step that is told to stop must first end its own children and write its results file.
STEP_GRACE_S = 15.0

# Children of this process that run now, from whichever thread, so that an interrupted run ends all of them.
_running: set[subprocess.Popen[str]] = set()
_running_lock = threading.Lock()
_stopping = threading.Event()


@dataclass(frozen=True)
class Finished:
    """How a child ended. ``returncode`` is None if its time ran out (or its command does not exist)."""

    argv: tuple[str, ...]
    returncode: int | None
    stdout: str
    stderr: str
    duration_s: float
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        return self.returncode == 0

    @property
    def output(self) -> str:
        return self.stdout + self.stderr

    def last_line(self) -> str:
        """The last line that the child printed, errors first: usually what went wrong."""
        for text in (self.stderr, self.stdout):
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            if lines:
                return lines[-1]
        return ""


def module_command(name: str) -> list[str]:
    """The command that runs a module of this project in this Python, from any folder. ``-m`` would look into that
    folder first, which may hold another copy of the project, or a file that is called like a library."""
    code = f"import runpy, sys; sys.path[0] = {str(ROOT)!r}; runpy.run_module({name!r}, None, '__main__', True)"
    return [sys.executable, "-c", code]


def end_group(process: subprocess.Popen[str], grace_s: float = GRACE_S) -> None:
    """Ends a child that was started with ``start_new_session``, and everything it started."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sig)
        except ProcessLookupError:
            break
        try:
            process.wait(grace_s)
        except subprocess.TimeoutExpired:
            continue
        if sig == signal.SIGTERM:
            # The leader has left; a grandchild that ignores SIGTERM must not stay behind on the GPU.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        break
    process.wait()


def end_all() -> None:
    """Ends every child and lets no new one start: the run is being interrupted."""
    _stopping.set()
    with _running_lock:
        children = list(_running)
    for child in children:
        end_group(child)


def allow() -> None:
    """Lets children start again after :func:`end_all`: one step has failed, and the next one runs."""
    _stopping.clear()


def _start(
    command: Sequence[str], cwd: Path | None, environment: Mapping[str, str], inherited: Collection[int]
) -> subprocess.Popen[str] | OSError:
    """The child, known as running; or why there is none."""
    try:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
            pass_fds=inherited,
        )
    except OSError as error:
        return error
    with _running_lock:
        _running.add(process)
    if _stopping.is_set():  # since this thread looked: `end_all` may have missed the child
        end_group(process)
    return process


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until the block has ended: a child that just started must be known before they end us."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, frame: waiting.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for waited in waiting:
            signal.raise_signal(waited)


def run(
    argv: Sequence[str | Path],
    *,
    timeout_s: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
    inherited: Collection[int] = (),
) -> Finished:
    """Runs ``argv`` to its end or to the time limit; never raises for what the child does.

    ``env`` adds to this process's environment. ``log`` gets the command, its output and how it ended. ``inherited``:
    file descriptors that the child has, too. On Ctrl-C the child's group is ended first, and KeyboardInterrupt goes on.
    """
    command = tuple(str(word) for word in argv)
    if _stopping.is_set():
        raise KeyboardInterrupt
    started = time.monotonic()
    timed_out, process = False, None
    try:
        with _uninterrupted():
            process = _start(command, cwd, {**os.environ, **(env or {})}, inherited)
        if isinstance(process, OSError):
            finished = Finished(command, None, "", f"cannot start {command[0]}: {process.strerror}\n", 0.0)
            _write_log(log, finished, env)
            return finished
        try:
            stdout, stderr = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
            end_group(process)
            stdout, stderr = process.communicate()
    except BaseException:  # Ctrl-C, SIGTERM: nothing of ours may survive us
        if isinstance(process, subprocess.Popen):
            end_group(process)
        raise
    finally:
        if isinstance(process, subprocess.Popen):
            with _running_lock:
                _running.discard(process)
    duration = time.monotonic() - started
    finished = Finished(command, None if timed_out else process.returncode, stdout, stderr, duration, timed_out)
    _write_log(log, finished, env)
    return finished


def _write_log(log: Path | None, finished: Finished, env: Mapping[str, str] | None) -> None:
    if log is None:
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    settings = "".join(f"{name}={shlex.quote(value)} " for name, value in sorted((env or {}).items()))
    ending = f"time limit reached after {finished.duration_s:.1f} s" if finished.timed_out else finished.returncode
    log.write_text(
        f"$ {settings}{shlex.join(finished.argv)}\n{finished.stdout}{finished.stderr}"
        f"# exit status: {ending}; {finished.duration_s:.2f} s\n",
        encoding="utf-8",
        errors="replace",
    )
