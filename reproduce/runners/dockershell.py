"""An interactive shell in a container like that of a step, on this terminal; the engine is all that it needs."""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import shutil
import socket
import sys
from collections.abc import Iterator
from typing import Any

from reproduce.engine import explain
from reproduce.image import NAME
from reproduce.lock import lock
from reproduce.runners import EXIT_INTERRUPTED, EXIT_USAGE
from reproduce.runners.container import Request, RequestError, read_request, settings
from reproduce.runners.docker import EXIT_ENGINE, DockerRunner, lock_of, make_folders, remove

_COMMAND = ["bash", "--norc", "-i"]
_CHUNK = 65536


def run(runner: DockerRunner, gpu: str) -> int:
    """Runs bash in a container with the mounts, rights and GPUs that steps have; returns its status."""
    name, container, terminal = f"{NAME}-shell-{secrets.token_hex(4)}", None, sys.stdin.isatty()
    try:
        request = _request(gpu)
        make_folders(request, runner.image)
        chosen = settings(request, runner.image, name, rootless=runner.engine.rootless)
        # `settings` made the command of a step; here it is a shell, which reads this terminal.
        chosen |= {
            "command": _COMMAND if terminal else _COMMAND[:2],
            "tty": terminal,
            "stdin_open": True,
            "detach": False,
        }
        with lock(lock_of(name), name):
            container = runner.engine.client.containers.create(**chosen)
            stream = container.attach_socket(params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
            container.start()
            if terminal:
                size = shutil.get_terminal_size()
                container.resize(size.lines, size.columns)
            with _raw(terminal):
                _pump(getattr(stream, "_sock", stream), terminal)
            return int(container.wait(timeout=30)["StatusCode"])
    except RequestError as error:
        print(error, file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # whatever the SDK lets through
        print(explain(error), file=sys.stderr)
        return EXIT_ENGINE
    finally:
        remove(runner.engine, name, container)
        lock_of(name).unlink(missing_ok=True)


def _request(gpu: str) -> Request:
    """As `doctor`'s: every GPU step's devices, and the results of this project."""
    found = read_request("doctor", ["--gpu", gpu] if gpu else [])
    return Request("shell", (), found.results, found.writable, found.gpus, bool(found.gpus))


@contextlib.contextmanager
def _raw(terminal: bool) -> Iterator[None]:
    """Keys go to the container as they are pressed, Ctrl-C too; the terminal is given back as it was."""
    if not terminal:
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin, termios.TCSADRAIN)  # what was typed ahead is kept
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _pump(stream: Any, terminal: bool) -> None:
    """Passes on what is typed, and what the container prints, until it has ended."""
    output = _Frames() if not terminal else None
    # select and not epoll, which refuses regular files and /dev/null: `./ae shell < commands`.
    with selectors.SelectSelector() as selector:
        selector.register(stream, selectors.EVENT_READ, "container")
        selector.register(sys.stdin, selectors.EVENT_READ, "keys")
        while True:
            for key, _ in selector.select():
                if key.data == "container":
                    data = stream.recv(_CHUNK)
                    if not data:
                        return
                    for number, part in output.of(data) if output else [(1, data)]:
                        os.write(2 if number == 2 else 1, part)
                    continue
                typed = os.read(sys.stdin.fileno(), _CHUNK)
                if typed:
                    stream.sendall(typed)
                else:
                    selector.unregister(sys.stdin)
                    _end_of_input(stream)


def _end_of_input(stream: Any) -> None:
    with contextlib.suppress(OSError):
        stream.shutdown(socket.SHUT_WR)


class _Frames:
    """Without a terminal the engine sends both streams in one: frames of 8 bytes of header, then what was printed."""

    def __init__(self) -> None:
        self._rest = b""

    def of(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """(stream, bytes) of every frame that is complete by now; 1 is stdout, 2 is stderr."""
        self._rest += data
        while len(self._rest) >= 8:
            length = int.from_bytes(self._rest[4:8], "big")
            if len(self._rest) < 8 + length:
                return
            yield self._rest[0], self._rest[8 : 8 + length]
            self._rest = self._rest[8 + length :]
