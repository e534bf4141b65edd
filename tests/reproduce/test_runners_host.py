"""The host runner: same command as ``python -m reproduce``, ended with all its children on Ctrl-C and at its limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reproduce import ROOT, results
from reproduce.choreo import Choreo
from reproduce.runners.host import HostRunner, run_command
from tests.reproduce.test_process import _gone


def wait_for(path: Path) -> None:
    for _ in range(400):
        if path.exists() and path.read_text().strip():
            return
        time.sleep(0.05)
    raise AssertionError(f"no {path}")


def test_the_steps_status_is_the_runners(make_choreo: Callable[..., Choreo], tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("CHOREO", make_choreo().command[0])
    arguments = ["--results", str(tmp_path / "results"), "--no-table"]
    assert HostRunner().run("figure2", arguments, limit_s=60) == 0
    assert HostRunner().run("figure2", ["--nonsense"], limit_s=60) == 2


def test_the_time_limit(make_choreo: Callable[..., Choreo], tmp_path: Path, monkeypatch, capfd) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("CHOREO", make_choreo(hang=("conv2d_fprop_ws_1p1c",)).command[0])
    status = HostRunner().run("figure2", ["--results", str(tmp_path / "results")], limit_s=4)
    assert status == 124 and "run it again to resume" in capfd.readouterr().err
    assert all(_gone(int(pid)) for pid in (tmp_path / "calls.hanging").read_text().split())


@pytest.mark.parametrize(
    ("module", "sig"),
    [
        ("invoke", signal.SIGINT),
        ("invoke", signal.SIGTERM),  # `timeout 600 ./ae all`
        ("invoke", signal.SIGHUP),  # a closed terminal
        ("reproduce", signal.SIGTERM),  # a scheduler ends the step itself
        ("reproduce", signal.SIGHUP),
    ],
)
def test_what_ends_a_run_ends_everything_and_keeps_what_was_measured(
    make_choreo: Callable[..., Choreo], tmp_path: Path, module: str, sig: signal.Signals
) -> None:
    environment = {**os.environ, "CHOREO": make_choreo(hang=("conv2d_fprop_ws_1p1c",)).command[0]}
    command = [sys.executable, "-m", module, "figure2", "--results", str(tmp_path / "results")]
    task = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    wait_for(tmp_path / "calls.hanging")
    task.send_signal(sig)
    _, stderr = task.communicate(timeout=30)
    assert task.returncode == 130 and "what was measured is kept" in stderr and "Traceback" not in stderr
    assert all(_gone(int(pid)) for pid in (tmp_path / "calls.hanging").read_text().split())
    document = results.load(tmp_path / "results", "figure2")
    assert document is not None and document.records and not document.complete


def test_a_step_that_is_killed_is_said_to_be(capfd: pytest.CaptureFixture[str]) -> None:
    """By the kernel for its memory, say: it cannot say so itself, and an exit status of -9 is nobody's."""
    assert run_command(["bash", "-c", "kill -9 $$"], "figure2", limit_s=20, env={}) == 137
    assert "figure2: ended from outside (signal 9, Killed: too little memory?)" in capfd.readouterr().err


def test_a_shell_sees_every_gpu_that_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, str]] = []
    monkeypatch.setattr("reproduce.shell.run", lambda machine: seen.append(machine.gpu_environment()) or 0)
    assert HostRunner().shell("0, 1") == 0
    assert seen[0]["CUDA_VISIBLE_DEVICES"] == "0,1"
    with pytest.raises(ValueError, match="--gpu 1,1 names a GPU twice"):
        HostRunner().shell("1,1")
