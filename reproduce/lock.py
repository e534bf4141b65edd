"""Locks against two runs at once: one per step (its results file), one per GPU (timed programs must run alone)."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class LockedError(Exception):
    """Another run holds the lock; the message says which process."""


@contextmanager
def lock(path: Path, what: str, *, wait: bool = False) -> Iterator[None]:
    """Holds ``path`` as a lock file; raises LockedError at once if another run has it, unless told to wait for it.

    The kernel gives the lock back when its holder ends, however it ends, so a stale file never blocks a run.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise LockedError(
                f"{what} is in use by another run (process {holder}). "
                "Wait for it to end, or give this run its own folder with --results DIR."
            ) from None
        try:
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
        yield


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
