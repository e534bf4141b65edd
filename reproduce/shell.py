"""A shell with the environment that a step has on this machine."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from reproduce import ROOT
from reproduce.machine import Machine


def environment(machine: Machine, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """This project's Python and compiler first on PATH, nvcc and ncu if the machine has them, and the chosen GPU."""
    from croqtile import toolchain

    places = [Path(sys.executable).parent]
    with contextlib.suppress(toolchain.ToolchainError):
        places.append(Path(toolchain.find().nvcc).parent)
    if machine.ncu:
        places.append(machine.ncu.parent)
    path = dict.fromkeys([*map(str, places), *inherited.get("PATH", os.defpath).split(os.pathsep)])
    packages = os.pathsep.join(filter(None, (str(ROOT), inherited.get("PYTHONPATH"))))
    return {
        **inherited,
        **machine.gpu_environment(),
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": packages,
        "PS1": "(sala) \\w $ ",
    }


def run(machine: Machine) -> int:
    """Runs bash in the project's root until it is left; returns its status."""
    print(
        f"{ROOT}: python -m reproduce STEP, choreo, hb-analyzer, nvcc as the steps have them; exit leaves", flush=True
    )
    return subprocess.call(["bash", "--norc"], cwd=ROOT, env=environment(machine))
