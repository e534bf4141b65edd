"""Locks against two runs at once: one per step (its results file), one per GPU (timed programs must run alone)."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from reproduce.machine import Gpu


class LockedError(Exception):
    """Another run holds the lock; the message says which process."""


@contextmanager
def lock(path: Path, what: str, *, wait: bool = False, instead: str = "") -> Iterator[int]:
    """Holds ``path`` as a lock file; raises LockedError at once if another run has it, unless told to wait for it.

    The kernel gives the lock back when its holder ends, however it ends, so a stale file never blocks a run. Children
    that inherit the file descriptor, which the block gets, hold it too if the holder is killed. ``instead``: what else
    a person can do than wait.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            file.seek(0)
            pid = file.read().strip()
            holder = f"process {pid or 'unknown'}"
            if pid and not Path("/proc", pid).exists():
                holder += f", which is in a container, or killed and has left a program; `fuser {path}` names it"
            advice = "Wait for it to end" + (f", or {instead}." if instead else ".")
            raise LockedError(f"{what} is in use by another run ({holder}). {advice}") from None
        try:
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
        try:
            yield file.fileno()
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # for children that still have it, too


def lock_gpu(build: Path, gpu: Gpu) -> AbstractContextManager[int]:
    """As ``lock``, for what must run alone on its GPU. ``build``: a runner's folder in the project's build folder."""
    # By the GPU itself: in a container, it has another number. The folder is the same for every runner.
    place = build.parent / "locks" / f"gpu-{gpu.uuid_hash or gpu.index}.lock"
    return lock(place, f"GPU {gpu.index}", instead="choose another one with --gpu N")


def is_held(path: Path) -> bool:
    """Whether a run holds the lock file now; neither makes nor changes it."""
    try:
        with path.open(encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
