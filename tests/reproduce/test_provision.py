"""What is installed on a bare machine: when, and what is said if it cannot be."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from reproduce import provision, running
from reproduce.provision import ProvisionError
from reproduce.step import Options
from reproduce.steps import STEPS
from tests.reproduce.conftest import FakeMachine


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """A pip that fails, in an environment without Triton; its calls."""
    calls: list[Sequence[str]] = []

    def run(command: Sequence[str], check: bool) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(provision.subprocess, "run", run)
    monkeypatch.setattr(provision.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(running, "Machine", lambda gpu: FakeMachine(nvcc="13.0.88"))
    return calls


def test_triton_is_installed_for_the_rows_that_need_it(
    pip: list[Sequence[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    for name, only, calls in (
        ("figure2", (), 0),
        ("table2", ("xcomp",), 0),
        ("table2", ("tawa",), 1),
        ("table2", (), 2),
    ):
        running.provide(STEPS[name], Options(only=only), None)
        assert len(pip) == calls
    assert pip[-1][-1] == "triton==3.6.0"
    assert "Triton could not be installed" in capsys.readouterr().err  # and the step goes on


def test_triton_that_cannot_be_installed_is_told(pip: list[Sequence[str]]) -> None:
    with pytest.raises(ProvisionError, match="are not measured"):
        provision.ensure_triton()


def test_triton_that_is_there_is_left_alone(pip: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provision.importlib.util, "find_spec", lambda name: object())
    provision.ensure_triton()
    assert not pip


def test_cuda_minors_are_installed_before_the_builds(
    pip: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Once: not by every build, which run beside each other."""
    monkeypatch.setattr(provision.toolchain, "find", lambda: SimpleNamespace(release="13.0", nvcc="/nvcc"))
    monkeypatch.setattr(running, "ROOT", tmp_path)
    running.provide(STEPS["registers"], Options(cuda=("13.0",)), None)
    assert not pip
    with pytest.raises(ProvisionError, match=r"CUDA 13\.7 could not be installed"):
        running.provide(STEPS["registers"], Options(cuda=("13.0", "13.7")), None)
    assert len(pip) == 1
    with pytest.raises(ValueError, match="minors of CUDA 13"):
        running.provide(STEPS["registers"], Options(cuda=("12.9",)), None)


def test_in_a_container_nothing_is_fetched(
    pip: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It has no network: pip would try for a while, and then say what is no help here."""
    monkeypatch.setenv("SALA_RUNNER", "docker")
    monkeypatch.setattr(provision.toolchain, "find", lambda: SimpleNamespace(release="13.0", nvcc="/nvcc"))
    with pytest.raises(ProvisionError, match="This image has no Triton"):
        provision.ensure_triton()
    with pytest.raises(ProvisionError, match=r"CUDA 13\.7 is not in this image.*--runner host"):
        provision.nvcc_of_minor("13.7", tmp_path)
    assert not pip
