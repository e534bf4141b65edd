"""The starter script: what it says, what it installs, and that it does so once."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what the script reads, so that no test touches the real environment."""
    (tmp_path / "reproduce").mkdir()
    for name in ("ae", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("requirements.txt", "requirements-test.txt"):
        (tmp_path / "reproduce" / name).write_text("")
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
    names = ("difflib", "fcntl", "hashlib", "os", "shutil", "signal", "subprocess", "sys")
    assert imports == [f"import {name}" for name in names]


def test_a_misspelled_command_is_told_before_anything_is_installed(project: Path) -> None:
    done = run(project, "figre2")
    assert done.returncode == 2 and "there is no command `figre2`; did you mean `figure2`?" in done.stderr
    assert not (project / ".venv").exists()
    assert "Commands: all, doctor" in run(project, "nothing-like-it").stderr


def test_the_commands_are_those_of_the_tasks() -> None:
    source = (ROOT / "ae").read_text()
    commands = source[source.index("COMMANDS = (") : source.index("EXPLANATION =")]
    command = [sys.executable, "-m", "invoke", "--list", "--list-format=json"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    tasks = {task["name"] for task in json.loads(listed.stdout)["tasks"]}
    assert set(re.findall(r'"([\w-]+)"', commands)) == tasks | {"test"}


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_ends_the_script_ends_the_command(project: Path, sig: signal.Signals) -> None:
    """Sent to the script alone, as `timeout`, a scheduler or a closed terminal does."""
    (project / "tasks.py").write_text(
        "import pathlib, signal, sys, time\n"
        f"here = pathlib.Path({str(project)!r})\n"
        "def end(number, frame):\n    (here / 'ended').touch()\n    sys.exit(7)\n"
        "for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):\n    signal.signal(number, end)\n"
        "signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})\n"
        "(here / 'waits').touch()\ntime.sleep(30)\n"
    )
    fake_environment(project, f'case "$*" in *tasks.py*) exec {sys.executable} "$@";; esac')
    child = subprocess.Popen([sys.executable, str(project / "ae"), "figure2"], start_new_session=True)
    for _ in range(400):
        if (project / "waits").exists():
            break
        time.sleep(0.05)
    child.send_signal(sig)
    assert child.wait(20) == 7 and (project / "ended").exists()


def test_requirements_are_installed_once_and_again_when_they_change(project: Path) -> None:
    calls = fake_environment(project, "exit 0")
    for _ in range(2):
        assert run(project, "figure2", "--fresh").returncode == 0
    text = calls.read_text()
    assert text.count("install -qq -r") == 1 and text.count(f"{project}/tasks.py figure2 --fresh") == 2
    (project / "reproduce" / "requirements.txt").write_text("# changed\n")
    run(project, "figure2")
    assert calls.read_text().count("install -qq -r") == 2


def test_no_network_says_what_to_do_and_is_tried_again(project: Path) -> None:
    calls = fake_environment(project, 'case "$*" in *install*) echo "no route to host" >&2; exit 1;; esac')
    done = run(project, "figure2")
    assert done.returncode == 2 and "PIP_NO_INDEX=1 PIP_FIND_LINKS=/folder" in done.stderr
    assert "tasks.py" not in calls.read_text()
    run(project, "figure2")
    assert calls.read_text().count("install -qq -r") == 2


def test_a_command_runs_in_the_callers_folder(project: Path, tmp_path: Path) -> None:
    """So that `--results here` and `CHOREO=./choreo` mean what they say there."""
    fake_environment(project, f'case "$*" in *tasks.py*) pwd > {project}/where;; esac')
    other = tmp_path / "other"
    other.mkdir()
    subprocess.run([sys.executable, str(project / "ae"), "figure2"], cwd=other, check=True, timeout=60)
    assert (project / "where").read_text().strip() == str(other)


def test_the_status_of_the_command_is_the_scripts(project: Path) -> None:
    fake_environment(project, 'case "$*" in *tasks.py*) exit 5;; esac')
    assert run(project, "figure2").returncode == 5


@pytest.mark.parametrize(("arguments", "session"), [(["test"], ""), (["test", "lint", "types"], " -s lint types")])
def test_test_runs_the_nox_sessions(project: Path, arguments: list[str], session: str) -> None:
    calls = fake_environment(project, "exit 0")
    assert run(project, *arguments).returncode == 0
    assert calls.read_text().splitlines()[-1] == f"-m nox -f {project}/noxfile.py{session}"
    assert calls.read_text().count("requirements-test.txt") == 1
    run(project, "figure2")
    assert calls.read_text().count("install") == 3


def test_no_arguments_explain_check_and_run(project: Path) -> None:
    calls = fake_environment(project, "exit 0")
    done = run(project)
    assert "./ae test" in done.stdout
    assert [line for line in calls.read_text().splitlines() if "tasks.py" in line] == [
        f"{project}/tasks.py doctor",
        f"{project}/tasks.py all",
    ]


def test_a_link_to_the_script_works_from_anywhere(project: Path, tmp_path: Path) -> None:
    calls = fake_environment(project, "exit 0")
    link = tmp_path / "elsewhere" / "ae"
    link.parent.mkdir()
    link.symlink_to(project / "ae")
    done = subprocess.run([sys.executable, str(link), "figure2"], cwd="/", capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert calls.read_text().splitlines()[-1] == f"{project}/tasks.py figure2"


def test_two_first_runs_at_once_install_once(project: Path) -> None:
    calls = fake_environment(project, 'case "$*" in *"install -qq -r"*) sleep 1;; esac')
    runs = []
    for _ in range(2):
        runs.append(subprocess.Popen([sys.executable, str(project / "ae"), "steps"], stderr=subprocess.PIPE, text=True))
        time.sleep(0.5)
    said = [child.communicate(timeout=60)[1] for child in runs]
    assert [child.returncode for child in runs] == [0, 0] and "waiting for it" in said[1], said
    assert calls.read_text().count("install -qq -r") == 1 and calls.read_text().count("tasks.py steps") == 2


def test_another_python_does_not_install_anew(project: Path, tmp_path: Path) -> None:
    """The requirements are those of .venv's Python, whichever starts the script (cron, sudo, a container)."""
    calls = fake_environment(project, "exit 0")
    assert run(project, "figure2").returncode == 0
    text = (project / "ae").read_text()
    (project / "ae").write_text(text.replace("import sys\n", 'import sys\n\nsys.version = "3.12.0 (another)"\n', 1))
    assert run(project, "figure2").returncode == 0
    assert calls.read_text().count("install -qq -r") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(project: Path) -> None:
    project.chmod(0o555)
    try:
        done = run(project, "figure2")
    finally:
        project.chmod(0o755)
    assert done.returncode == 2 and f"{project} cannot be written" in done.stderr and "venv" not in done.stderr[:20]
    assert "only the results may lie" in done.stderr


@pytest.mark.parametrize("stage", ["pip install", "tasks.py"])
def test_ctrl_c_while_it_starts_is_no_traceback(project: Path, stage: str) -> None:
    """While requirements are installed, and while the command still imports modules."""
    ready = project / "ready"
    if stage == "tasks.py":  # a Python that starts slowly; the signal comes before its first line
        script = f"import os, signal; open({str(ready)!r}, 'w').close(); import time; time.sleep(1)\n"
        (project / "tasks.py").write_text(
            script
            + "try:\n    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT}); time.sleep(20)\n"
            + "except KeyboardInterrupt:\n    os._exit(130)\n"
        )
        fake_environment(project, f'case "$*" in *tasks.py*) exec {sys.executable} "$@";; esac')
    else:
        body = f"trap 'exit 1' INT; touch {ready}; sleep 20 & wait $!"
        fake_environment(project, f'case "$*" in *"install -qq"*) {body};; esac')
    child = subprocess.Popen(
        [sys.executable, str(project / "ae"), "figure2"], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    for _ in range(400):
        if ready.exists():
            break
        time.sleep(0.05)
    time.sleep(0.2)
    os.killpg(child.pid, signal.SIGINT)
    assert child.stderr is not None
    error = child.stderr.read()
    assert child.wait(20) == 130 and "Traceback" not in error and "No network" not in error


def test_an_interrupted_check_does_not_go_on_to_the_steps(project: Path) -> None:
    calls = fake_environment(project, 'case "$*" in *doctor*) exit 130;; esac')
    assert run(project).returncode == 130 and " all" not in calls.read_text()


def test_a_python_without_venv_is_told_what_to_install(project: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "venv.py").write_text("raise SystemExit('ensurepip is not available')")
    done = run(project, "figure2", PYTHONPATH=str(broken))
    assert done.returncode == 2 and "apt-get install python3-venv" in done.stderr
    assert "ensurepip is not available" in done.stderr and not (project / ".venv").exists()


@pytest.mark.parametrize("kind", ["run", "test"])
def test_requirements_and_pyproject_agree(kind: str) -> None:
    """Every requirement of the project is in the starter script's files, with the same pin where there is one."""
    nox = pytest.importorskip("nox")
    from packaging.requirements import Requirement

    name = "requirements.txt" if kind == "run" else "requirements-test.txt"
    listed = (ROOT / "reproduce" / name).read_text().splitlines()
    pinned = {
        Requirement(line).name.lower(): str(Requirement(line).specifier)
        for line in listed
        if line.strip() and not line.startswith("#")
    }
    project = nox.project.load_toml(ROOT / "pyproject.toml")["project"]
    for line in project["dependencies"] if kind == "run" else project["optional-dependencies"]["test"]:
        wanted = Requirement(line)
        assert wanted.name.lower() in pinned, line
        if str(wanted.specifier).startswith("=="):
            assert pinned[wanted.name.lower()] == str(wanted.specifier)
