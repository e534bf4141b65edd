"""Where an engine is looked for, and what its errors say to do."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from reproduce import ROOT, engine


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No engine in the usual places of this user."""
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    if Path("/var/run/docker.sock").is_socket():
        pytest.skip("this machine has an engine")
    return tmp_path


def test_no_engine_is_known_without_the_sdk(nowhere: Path) -> None:
    """The SDK takes a third of a second to import, which no command on a machine without Docker should wait for."""
    code = (
        "import sys; from reproduce.runners.choose import choose; runner = choose(); "
        "print(runner.name, runner.why); assert not {'docker', 'requests'} & set(sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("RUNNER", None)
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert said.stdout == "host steps run on this machine: no Docker engine here\n", said.stderr


def test_the_places_of_a_socket(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine.address() is None
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(nowhere / "docker.sock"))
        assert engine.address() == f"unix://{nowhere}/docker.sock"
        monkeypatch.setenv("DOCKER_HOST", "tcp://elsewhere:1")
        assert engine.address() == "tcp://elsewhere:1"


def test_a_socket_that_nobody_listens_to(nowhere: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(nowhere / "docker.sock"))
    with pytest.raises(engine.EngineError, match="start it \\(sudo systemctl start docker\\)"):
        engine.connect()


def test_no_permission(nowhere: Path) -> None:
    text = engine._no_answer(
        "unix:///x", Exception("('Connection aborted.', PermissionError(13, 'Permission denied'))")
    )
    assert "join the group `docker`" in text and "usermod -aG docker" in text


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ('could not select device driver "" with capabilities: [[gpu]]', "NVIDIA Container Toolkit"),
        ("nvidia-container-cli: initialization error: driver not loaded", "driver not loaded"),
        ("No such image: x", "./ae build"),
        ("mkdir x: no space left on device", "docker system prune"),
        ("Mounts denied: the path is not shared", "share it"),
        ("something new", "the engine refuses: something new"),
    ],
)
def test_errors_say_what_to_do(error: str, advice: str) -> None:
    class APIError(Exception):
        explanation = error

    APIError.__module__ = "docker.errors"
    assert advice.lower() in engine.explain(APIError()).lower()


def test_an_engine_that_is_gone() -> None:
    assert "no longer answers" in engine.explain(ConnectionError("Connection aborted"))
    assert len(engine.explain(ConnectionError("x" * 5000))) < 400
