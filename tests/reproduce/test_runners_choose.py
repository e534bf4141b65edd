"""Which runner is chosen, why, and what is said if the one asked for cannot be had."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from reproduce import ROOT, engine, image
from reproduce.runners import choose as choosing
from reproduce.runners.choose import RUNNERS, ChoiceError, choose

IMAGE = image.Image("sha256:0123456789abcdef", "sala-reproduction:abc", 1, True)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``machine(podman=…, made=Image or an EngineError)``: an engine that answers."""
    monkeypatch.delenv("RUNNER", raising=False)

    def make(*, podman: bool = False, made: Any = IMAGE) -> None:
        found = engine.Engine(SimpleNamespace(), "unix://x", "20.10", podman, rootless=False)

        def find(_: engine.Engine) -> image.Image:
            if isinstance(made, Exception):
                raise made
            return IMAGE

        monkeypatch.setattr(engine, "address", lambda: "unix://x")
        monkeypatch.setattr(engine, "connect", lambda: found)
        monkeypatch.setattr(image, "find", find)

    return make


def test_containers_if_the_engine_answers_and_the_image_is_there(machine: Any) -> None:
    machine()
    assert choose().name == "docker"
    assert choose().why == "steps run in containers of sala-reproduction:abc: Docker 20.10 answers"


def test_this_machine_otherwise_and_why(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(made=engine.EngineError("the image is older than docker/: run `./ae build`"))
    assert (choose().name, choose().why) == (
        "host",
        "steps run on this machine: the image is older than docker/: run `./ae build`",
    )
    machine(podman=True)
    assert choose().name == "host" and "Podman" in choose().why
    monkeypatch.setattr(engine, "address", lambda: None)
    assert choose().why == "steps run on this machine: no Docker engine here"


def test_the_one_asked_for_or_none(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    machine()
    assert choose("host").name == "host" and "--runner host" in choose("host").why
    monkeypatch.setenv("RUNNER", "host")
    assert choose().why == "steps run on this machine: RUNNER=host" and choose("docker").name == "docker"
    machine(made=engine.EngineError("the image is not there: run `./ae build`"))
    with pytest.raises(ChoiceError, match=r"no containers: the image is not there: run `./ae build`"):
        choose("docker")
    monkeypatch.setattr(choosing.engine, "connect", _no_engine)
    with pytest.raises(ChoiceError, match="no containers: no engine"):
        choose("docker")
    with pytest.raises(
        ChoiceError, match=f"there is no runner `dokcer`: --runner and RUNNER take {', '.join(RUNNERS)}"
    ):
        choose("dokcer")


def _no_engine() -> engine.Engine:
    raise engine.EngineError("no engine")


def test_a_task_says_where_its_steps_run() -> None:
    command = [sys.executable, "-m", "invoke", "figure2", "--dry-run", "--runner"]
    said = subprocess.run([*command, "host"], cwd=ROOT, capture_output=True, text=True)
    assert said.stderr.count("steps run on this machine: --runner host") == 1
    wrong = subprocess.run([*command, "dokcer"], cwd=ROOT, capture_output=True, text=True)
    assert wrong.returncode == 2 and "there is no runner `dokcer`" in wrong.stderr and "Traceback" not in wrong.stderr
