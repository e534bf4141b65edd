"""The starter script: what it says, what it installs, and that it does so once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what the script reads, so that no test touches the real environment."""
    (tmp_path / "reproduce").mkdir()
    for name in ("ae", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "reproduce" / "requirements.txt").write_text("")
    return tmp_path


def run(project: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(project / "ae"), *arguments]
    return subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=120)


def fake_environment(project: Path, python: str) -> Path:
    """A .venv whose python is a script; the calls that it gets go to calls.txt."""
    place = project / ".venv" / "bin"
    place.mkdir(parents=True)
    script = place / "python"
    script.write_text(f'#!/bin/bash\necho "$@" >> {project}/calls.txt\n{python}\n')
    script.chmod(0o755)
    return project / "calls.txt"


def test_help_needs_no_environment(project: Path) -> None:
    done = run(project, "--help")
    assert done.returncode == 0 and "./ae figure2" in done.stdout and not (project / ".venv").exists()


def test_it_starts_on_its_own_standard_library() -> None:
    imports = [line for line in (ROOT / "ae").read_text().splitlines() if line.startswith(("import ", "from "))]
    assert imports == ["import hashlib", "import os", "import shutil", "import subprocess", "import sys"]


def test_requirements_are_installed_once_and_again_when_they_change(project: Path) -> None:
    calls = fake_environment(project, "exit 0")
    for _ in range(2):
        assert run(project, "figure2", "--fresh").returncode == 0
    text = calls.read_text()
    assert text.count("install -qq -r") == 1 and text.count("-m invoke figure2 --fresh") == 2
    (project / "reproduce" / "requirements.txt").write_text("# changed\n")
    run(project, "figure2")
    assert calls.read_text().count("install -qq -r") == 2


def test_no_network_says_what_to_do_and_is_tried_again(project: Path) -> None:
    calls = fake_environment(project, 'case "$*" in *install*) echo "no route to host" >&2; exit 1;; esac')
    done = run(project, "figure2")
    assert done.returncode == 2 and "PIP_NO_INDEX=1 PIP_FIND_LINKS=/folder" in done.stderr
    assert "invoke" not in calls.read_text()
    run(project, "figure2")
    assert calls.read_text().count("install -qq -r") == 2


def test_the_status_of_the_command_is_the_scripts(project: Path) -> None:
    fake_environment(project, 'case "$*" in *invoke*) exit 5;; esac')
    assert run(project, "figure2").returncode == 5


@pytest.mark.parametrize(
    ("arguments", "session"), [(["test"], "-m nox"), (["test", "lint", "types"], "-m nox -s lint types")]
)
def test_test_runs_the_nox_sessions(project: Path, arguments: list[str], session: str) -> None:
    calls = fake_environment(project, "exit 0")
    assert run(project, *arguments).returncode == 0
    assert calls.read_text().splitlines()[-1] == session


def test_no_arguments_explain_check_and_run(project: Path) -> None:
    calls = fake_environment(project, "exit 0")
    done = run(project)
    assert "./ae test" in done.stdout
    assert [line for line in calls.read_text().splitlines() if "invoke" in line] == [
        "-m invoke doctor",
        "-m invoke all",
    ]


def test_a_python_without_venv_is_told_what_to_install(project: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "venv.py").write_text("raise SystemExit('ensurepip is not available')")
    done = run(project, "figure2", PYTHONPATH=str(broken))
    assert done.returncode == 2 and "apt-get install python3-venv" in done.stderr
    assert "ensurepip is not available" in done.stderr and not (project / ".venv").exists()


def test_requirements_and_pyproject_agree() -> None:
    """Every requirement of the project is in the starter script's file, with the same pin where there is one."""
    nox = pytest.importorskip("nox")
    listed = {
        line.split(";")[0].strip()
        for line in (ROOT / "reproduce" / "requirements.txt").read_text().splitlines()
        if line.strip() and not line.startswith("#")
    }
    project = nox.project.load_toml(ROOT / "pyproject.toml")["project"]
    from packaging.requirements import Requirement

    pinned = {Requirement(line).name.lower(): str(Requirement(line).specifier) for line in listed}
    for line in [*project["dependencies"], *project["optional-dependencies"]["test"]]:
        wanted = Requirement(line)
        assert wanted.name.lower() in pinned, line
        if str(wanted.specifier).startswith("=="):
            assert pinned[wanted.name.lower()] == str(wanted.specifier)
