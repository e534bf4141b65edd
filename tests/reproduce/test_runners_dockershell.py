from __future__ import annotations

import socket
import sys
import threading
from pathlib import Path

import pytest

from reproduce.runners.dockershell import _Frames, _pump


def frame(stream: int, text: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(text).to_bytes(4, "big") + text


def test_frames_that_come_in_pieces() -> None:
    frames = _Frames()
    data = frame(1, b"out") + frame(2, b"") + frame(2, b"problem") + frame(1, b"more")
    for size in (1, 5, 100):
        parts = [part for start in range(0, len(data), size) for part in frames.of(data[start : start + size])]
        assert parts == [(1, b"out"), (2, b""), (2, b"problem"), (1, b"more")]


@pytest.mark.parametrize("text", ["echo one\necho two\n", ""])
def test_commands_from_a_file(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also /dev/null: neither can be waited for with epoll, and a shell without input must end."""
    place = Path("/dev/null") if not text else tmp_path / "commands"
    if text:
        place.write_text(text)
    ours, theirs = socket.socketpair()
    got = bytearray()

    def container() -> None:
        while data := theirs.recv(100):
            got.extend(data)
        theirs.close()

    reader = threading.Thread(target=container)
    reader.start()
    with place.open() as commands:
        monkeypatch.setattr(sys, "stdin", commands)
        _pump(ours, terminal=True)
    reader.join(5)
    ours.close()
    assert not reader.is_alive() and got.decode() == text
