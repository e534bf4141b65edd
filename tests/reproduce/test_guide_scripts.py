"""The script names of the paper's guide: each starts the same step, from any folder, and passes its options on."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from reproduce import ROOT

SCRIPTS = {
    "figure2_compiler_smem.sh": "figure2",
    "figure3_throughput.sh": "figure3",
    "table3_xcomp.sh": "table3",
    "table2_xcomp_fa.sh": "table2 --only xcomp",
    "table_cross_framework_cutlass.sh": "table2 --only cutlass",
    "table_cross_framework_tawa.sh": "table2 --only tawa",
    "setup_cutlass.sh": "cutlass",
    "run_all.sh": "all",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The scripts beside a starter script that tells how it was called."""
    (tmp_path / "reproduce").mkdir()
    for name in SCRIPTS:
        shutil.copy(ROOT / "reproduce" / name, tmp_path / "reproduce" / name)
    (tmp_path / "ae").write_text('#!/bin/bash\necho "$@"; echo "$(pwd) GPU=$GPU CHOREO=$CHOREO"\nexit 7\n')
    (tmp_path / "ae").chmod(0o755)
    return tmp_path


def run(project: Path, name: str, *arguments: str, cwd: Path) -> list[str]:
    environment = {**os.environ, "GPU": "1", "CHOREO": "./choreo"}
    command = [project / "reproduce" / name, *arguments]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 7, done.stderr  # the status is the starter script's
    return done.stdout.splitlines()


def test_every_script_is_here_and_there_are_no_others() -> None:
    assert {path.name for path in (ROOT / "reproduce").glob("*.sh")} == set(SCRIPTS)


@pytest.mark.parametrize(("name", "words"), SCRIPTS.items())
def test_a_script_starts_its_step(project: Path, tmp_path: Path, name: str, words: str) -> None:
    """Options may hold spaces; settings and the caller's folder are left as they are."""
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    called, where = run(project, name, "--results", "a b", cwd=elsewhere)
    assert called == f"{words} --results a b"
    assert where == f"{elsewhere} GPU=1 CHOREO=./choreo"


def test_run_all_takes_a_step(project: Path) -> None:
    assert run(project, "run_all.sh", cwd=project)[0] == "all"
    assert run(project, "run_all.sh", "figure3", "--fresh", cwd=project)[0] == "figure3 --fresh"


def test_a_script_may_be_a_link(project: Path, tmp_path: Path) -> None:
    link = tmp_path / "fig2"
    link.symlink_to(project / "reproduce" / "figure2_compiler_smem.sh")
    assert subprocess.run([link], capture_output=True, text=True).stdout.startswith("figure2\n")
