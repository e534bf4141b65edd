"""The output of a container: shown on this terminal as it comes, and kept as plain text."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

# Colours, cursor movements, titles: what a terminal obeys and a file should not have.
_CONTROL = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")


class ContainerLog:
    """Passes on every chunk at once. What it cannot write (disk full, closed terminal) never ends the step."""

    def __init__(self, path: Path, *, terminal: bool) -> None:
        self.path = path
        self.terminal = terminal
        self._file: IO[bytes] | None = None
        self._rest = b""

    def __enter__(self) -> ContainerLog:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("wb", buffering=0)
        except OSError as error:
            self._give_up(error)
        return self

    def __exit__(self, *exception: object) -> None:
        self._keep(b"\n" if self._rest else b"")
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()

    def follow(self, stream: Iterable[Any]) -> None:
        """Takes chunks, or (stdout, stderr) of them, until the container has ended or the engine is gone."""
        with contextlib.suppress(Exception):  # the waiting side finds out, and says, why the stream ended
            for chunk in stream:
                out, err = (chunk, None) if isinstance(chunk, bytes) else chunk
                for part, target in ((out, sys.stdout), (err, sys.stderr)):
                    if part:
                        _show(part, target)
                        self._keep(part)

    def _keep(self, chunk: bytes) -> None:
        """Whole lines only, so that no control sequence is cut in two; of a line drawn over, the last state."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if not lines or self._file is None:
            return
        kept = []
        for line in lines:
            plain = _CONTROL.sub(b"", line).rstrip(b"\r").rsplit(b"\r", 1)[-1].rstrip()
            if plain or not self.terminal:
                kept.append(plain + b"\n")
        try:
            self._file.write(b"".join(kept))
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        with contextlib.suppress(OSError):
            print(f"{self.path}: {error.strerror}: the output is not kept", file=sys.stderr)
        self._file = None


def _show(chunk: bytes, target: Any) -> None:
    with contextlib.suppress(OSError, ValueError):
        binary = getattr(target, "buffer", None)
        if binary is None:
            target.write(chunk.decode(errors="replace"))
        else:
            target.flush()
            binary.write(chunk)
            binary.flush()
