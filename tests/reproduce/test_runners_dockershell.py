from __future__ import annotations

from reproduce.runners.dockershell import _Frames


def frame(stream: int, text: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(text).to_bytes(4, "big") + text


def test_frames_that_come_in_pieces() -> None:
    frames = _Frames()
    data = frame(1, b"out") + frame(2, b"") + frame(2, b"problem") + frame(1, b"more")
    for size in (1, 5, 100):
        parts = [part for start in range(0, len(data), size) for part in frames.of(data[start : start + size])]
        assert parts == [(1, b"out"), (2, b""), (2, b"problem"), (1, b"more")]
