"""The docker runner with a stand-in engine: what it refuses, that no container stays. A real engine: tests/engine."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reproduce.engine import Engine
from reproduce.image import Image
from reproduce.lock import lock
from reproduce.runners import container, docker
from reproduce.runners.docker import DockerRunner

pytest.importorskip("docker")


class FakeContainer:
    """Prints a line and ends with ``status``; ``error`` is raised instead at the call that it names."""

    def __init__(self, name: str = "", status: int = 0, error: tuple[str, Exception] | None = None) -> None:
        self.name, self.status, self.error = name, status, error
        self.calls: list[str] = []
        self.attrs = {"State": {"OOMKilled": status == 137}}

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if self.error and self.error[0] == name:
            raise self.error[1]

    def attach(self, **options: Any) -> Any:
        self._call("attach")
        return iter([(b"a line\n", None)])

    def start(self) -> None:
        self._call("start")

    def wait(self, timeout: float) -> dict[str, int]:
        self._call("wait")
        return {"StatusCode": self.status}

    def reload(self) -> None:
        self._call("reload")

    def remove(self, force: bool) -> None:
        self._call("remove")


class Containers:
    def __init__(self, made: FakeContainer, there: list[FakeContainer]) -> None:
        self.made, self.there = made, there
        self.settings: dict[str, Any] = {}

    def create(self, **settings: Any) -> FakeContainer:
        self.settings = settings
        return self.made

    def list(self, **options: Any) -> list[FakeContainer]:
        return self.there


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Locks and build folders of the runner go here."""
    monkeypatch.setattr(docker, "LOCKS", tmp_path / "locks")
    monkeypatch.setattr(container, "LOCKS", tmp_path / "locks")
    monkeypatch.setattr(container, "build_folder", lambda image: tmp_path / "build")
    return tmp_path


def runner(made: FakeContainer, there: list[FakeContainer] | None = None, podman: bool = False) -> DockerRunner:
    client = SimpleNamespace(containers=Containers(made, there or []))
    engine = Engine(client, "unix://x", "1", podman, rootless=False)
    return DockerRunner(engine, Image("sha256:0123", "sala-reproduction:abc", 1, True))


@pytest.mark.parametrize("status", [0, 1, 3])
def test_the_steps_status_and_output_are_passed_on(root: Path, capfd: pytest.CaptureFixture[str], status: int) -> None:
    made = FakeContainer(status=status)
    assert runner(made).run("figure2", ["--results", str(root / "out")], limit_s=5) == status
    assert capfd.readouterr().out == "a line\n" and made.calls[-1] == "remove"
    assert (root / "out" / "logs" / "figure2" / "container.log").read_text() == "a line\n"
    assert not list((root / "locks").iterdir())


@pytest.mark.parametrize("at", ["attach", "start", "wait"])
def test_an_engine_that_fails_leaves_no_container(root: Path, capfd: pytest.CaptureFixture[str], at: str) -> None:
    made = FakeContainer(error=(at, ConnectionError("Connection aborted")))
    assert runner(made).run("figure2", ["--results", str(root / "out")], limit_s=5) == 125
    assert "figure2: the engine no longer answers" in capfd.readouterr().err and made.calls[-1] == "remove"


def test_out_of_memory_is_said(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert runner(FakeContainer(status=137)).run("figure2", ["--results", str(root)], limit_s=5) == 137
    assert "killed (out of memory)" in capfd.readouterr().err


def test_podman_gets_no_gpu_step(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It would ignore the request, and the step would find no GPU."""
    made = FakeContainer()
    assert runner(made, podman=True).run("fa", ["--gpu", "0", "--results", str(root)], limit_s=5) == 2
    assert "Podman" in capfd.readouterr().err and not made.calls
    assert runner(made, podman=True).run("figure2", ["--results", str(root)], limit_s=5) == 0


def test_a_folder_that_cannot_be_made(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (root / "file").write_text("")
    assert runner(FakeContainer()).run("figure2", ["--results", str(root / "file" / "x")], limit_s=5) == 2
    said = capfd.readouterr().err
    assert "cannot write" in said and "Traceback" not in said


def test_leftovers_are_those_whose_lock_is_free(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    dead, living = (FakeContainer(f"sala-reproduction-fa-{name}") for name in ("dead", "living"))
    strange = FakeContainer("../../etc/passwd")  # a label is no proof: its name is not one of ours
    with lock(root / "locks" / f"{living.name}.lock", "x"):
        runner(FakeContainer(), [dead, living, strange]).run("figure2", ["--results", str(root)], limit_s=5)
    assert (dead.calls, living.calls, strange.calls) == (["remove"], [], [])
    assert f"removed the container {dead.name}" in capfd.readouterr().err


def test_ctrl_c_while_the_container_is_made(root: Path) -> None:
    made = FakeContainer(error=("start", KeyboardInterrupt()))  # type: ignore[arg-type]
    assert runner(made).run("figure2", ["--results", str(root)], limit_s=5) == 128 + signal.SIGINT
    assert made.calls[-1] == "remove"


def test_no_module_of_the_runner_starts_a_shell() -> None:
    places = [Path(docker.__file__), Path(container.__file__)]
    found = subprocess.run(["grep", "-nE", r"shell=True|os\.system|/bin/sh", *places], capture_output=True, text=True)
    assert found.stdout == ""
