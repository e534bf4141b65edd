"""The output of a container: passed on as it is, kept as plain text, and never the end of a step."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reproduce.runners.containerlog import ContainerLog


def test_shown_as_it_is_and_kept_as_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "logs" / "container.log"
    with ContainerLog(path, terminal=True) as log:
        # Cut in the middle of a control sequence and of a character.
        log.follow([b"\x1b[1", b"mbold\x1b[0m \xe2\x94", b"\x80\r\n", b"10 %\r20 %\r100 %\r\n\x1b[2K\r\n", b"end"])
    assert path.read_text() == "bold ─\n100 %\nend\n"
    assert capfd.readouterr().out.startswith("\x1b[1mbold\x1b[0m ─")


def test_both_streams(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with ContainerLog(tmp_path / "log", terminal=False) as log:
        log.follow([(b"out\n", None), (None, b"err\n"), (b"\n", None)])
    assert capfd.readouterr() == ("out\n\n", "err\n") and (tmp_path / "log").read_text() == "out\nerr\n\n"


def test_a_log_that_cannot_be_written_is_said_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "logs").write_text("no folder")
    with ContainerLog(tmp_path / "logs" / "log", terminal=False) as log:
        log.follow([b"one\n", b"two\n"])
    said = capfd.readouterr()
    assert said.out == "one\ntwo\n" and said.err.count("the output is not kept") == 1
    with ContainerLog(Path("/dev/full"), terminal=False) as log:
        log.follow([b"one\n", b"two\n"])
    said = capfd.readouterr()
    assert said.out == "one\ntwo\n" and said.err.count("No space left on device: the output is not kept") == 1


def test_a_terminal_that_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = (tmp_path / "terminal").open("w")
    closed.close()
    monkeypatch.setattr(sys, "stdout", closed)
    with ContainerLog(tmp_path / "log", terminal=False) as log:
        log.follow([b"one\n", b"two\n"])
    assert (tmp_path / "log").read_text() == "one\ntwo\n"


def test_an_engine_that_goes_away_ends_the_stream(tmp_path: Path) -> None:
    def stream() -> object:
        yield b"one\n"
        raise ConnectionError("gone")

    with ContainerLog(tmp_path / "log", terminal=False) as log:
        log.follow(stream())  # type: ignore[arg-type]
    assert (tmp_path / "log").read_text() == "one\n"
