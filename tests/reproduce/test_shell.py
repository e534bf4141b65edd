from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from reproduce import ROOT, shell
from tests.reproduce.conftest import FakeMachine


def test_the_environment_of_a_step(tmp_path: Path) -> None:
    machine = FakeMachine("NVIDIA H200", ncu=tmp_path / "ncu" / "ncu")
    machine.gpu_index = "1"
    found = shell.environment(machine, {"PATH": "/usr/bin", "PYTHONPATH": "/other"})
    places = found["PATH"].split(os.pathsep)
    assert (
        places[0] == str(Path(sys.executable).parent) and places[-1] == "/usr/bin" and str(tmp_path / "ncu") in places
    )
    assert found["CUDA_VISIBLE_DEVICES"] == "1" and found["PYTHONPATH"] == f"{ROOT}{os.pathsep}/other"


def test_the_command() -> None:
    """What is typed runs in the project, with its tools; the status of the shell is the command's."""
    command = [sys.executable, "-m", "invoke", "--search-root", str(ROOT), "shell"]
    typed = "pwd; command -v choreo; exit 5\n"
    done = subprocess.run(command, cwd="/", input=typed, capture_output=True, text=True, timeout=60)
    assert done.returncode == 5, done.stderr
    assert str(ROOT) in done.stdout.splitlines() and str(Path(sys.executable).parent / "choreo") in done.stdout
