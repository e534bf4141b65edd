"""On a GPU: the reproducer of docs/triton-barrier-reuse.md and the rows' own checks."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from reproduce import ROOT
from reproduce.steps.table2_tawa import wrong_modes
from reproduce.tawa.rows import find

pytestmark = pytest.mark.gpu


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("torch")
    return subprocess.run([sys.executable, *argv], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize(("arguments", "status"), [((), 1), (("--remedy",), 0), (("--remedy", "invalidate"), 0)])
def test_the_reproducer(arguments: tuple[str, ...], status: int) -> None:
    """Stock Triton 3.6.0 is wrong here; if it is not any more, the remedy may go."""
    finished = run("docs/triton_barrier_reuse.py", *arguments)
    assert finished.returncode == status, finished.stdout + finished.stderr


@pytest.mark.parametrize("name", ["gemm_128x128_3s", "attention_128x128_3s", "persistent_128x128_3s"])
def test_a_kernel_in_every_mode(name: str) -> None:
    finished = run("-m", "reproduce.tawa.child", "run", name)
    assert finished.returncode == 0, finished.stderr
    values = json.loads(finished.stdout.splitlines()[-1])
    assert values["overlap.launches"] == 100
    assert not wrong_modes(find(name), values)
    if name.startswith("persistent"):
        assert values["no guard.wrong_launches"] > 0  # the guard is needed
