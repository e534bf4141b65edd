"""The Slurm runner on a real Slurm of one node (.ci/slurm starts it), and what it says of states that are hard to bring
about.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reproduce import ROOT, results, verify
from reproduce.choreo import Choreo
from reproduce.runners import slurm, slurm_follow, slurm_queue
from reproduce.runners.host import HostRunner
from reproduce.runners.slurm import SlurmRunner
from reproduce.runners.slurm_options import SlurmOptions
from reproduce.runners.slurm_queue import State
from tests.reproduce.test_process import _gone
from tests.reproduce.test_runners_slurm_job import stub_apptainer  # noqa: F401

HANGING = ("conv2d_fprop_ws_1p1c",)


def runner(options: str = "cpus=1") -> SlurmRunner:
    return SlurmRunner(SlurmOptions.parse(options))


def in_background(tmp_path: Path, choreo: Choreo, options: str = "cpus=1") -> subprocess.Popen[str]:
    """The runner as a process of its own, with figure2 by a compiler that hangs."""
    code = (
        "import sys\nfrom reproduce.runners.slurm import SlurmRunner\n"
        f"sys.exit(SlurmRunner.from_environment({options!r}).run('figure2', ['--results', sys.argv[1]], limit_s=60))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "results")],
        cwd=ROOT,
        env={**os.environ, "CHOREO": choreo.command[0]},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def left_in_build() -> set[Path]:
    return set(slurm._FOLDER.glob("*"))


def job_of(text: str) -> str:
    found = re.search(r"job (\d+)", text)
    assert found, text
    return found[1]


def wait_for_job(tmp_path: Path) -> str:
    """Waits until the compiler of the job hangs; the job's number."""
    for _ in range(400):
        if (tmp_path / "calls.hanging").exists():
            log = next((tmp_path / "results" / "logs" / "figure2").glob("slurm-*.log"))
            return log.stem.removeprefix("slurm-")
        time.sleep(0.05)
    raise AssertionError("the job does not start")


def ended_with_what_was_measured(tmp_path: Path) -> None:
    assert all(_gone(int(pid)) for pid in (tmp_path / "calls.hanging").read_text().split())
    document = results.load(tmp_path / "results", "figure2")
    assert document is not None and document.records and not document.complete


def asked_for(job: str) -> str:
    return subprocess.run(["scontrol", "-o", "show", "job", job], capture_output=True, text=True, check=True).stdout


def values(folder: Path, step: str) -> Any:
    document = results.load(folder, step)
    assert document is not None
    return json.loads(json.dumps([table.to_json() for table in document.tables])), verify.exact(document)


@pytest.mark.slurm
@pytest.mark.parametrize("step", ["figure2", "table4"])
def test_results_are_those_of_the_host(step: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status = runner().run(step, ["--results", str(tmp_path / "slurm")], limit_s=300)
    shown = capfd.readouterr()
    assert status == 0 and HostRunner().run(step, ["--results", str(tmp_path / "host")], limit_s=300) == 0
    ours, findings = values(tmp_path / "slurm", step)
    assert findings and all(finding.status == verify.OK for finding in findings)
    assert ours == values(tmp_path / "host", step)[0]
    job = job_of(shown.err)
    log = (tmp_path / "slurm" / "logs" / step / f"slurm-{job}.log").read_text()
    assert log == shown.out and "equal" in log and "submitit" not in log
    assert re.search(f"job {job} (runs|ran) on", shown.err)
    assert "TresPerNode=gres" not in asked_for(job)


@pytest.mark.slurm
def test_exit_status_and_arguments(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert runner().run("figure2", ["--nonsense", "--results", str(tmp_path / "a b")], limit_s=60) == 2
    assert "unrecognized arguments: --nonsense" in capfd.readouterr().out


@pytest.mark.slurm
def test_all_is_one_job_per_step_and_one_summary(make_choreo, tmp_path: Path, monkeypatch, capfd) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("CHOREO", make_choreo().command[0])
    monkeypatch.setattr(slurm, "STEPS", {name: slurm.STEPS[name] for name in ("figure2", "table4", "fa")})
    status = runner().run("all", ["--results", str(tmp_path / "results")], limit_s=600)
    shown = capfd.readouterr()
    jobs = re.findall(r"^(\w+): job (\d+) (?:runs|ran) on", shown.err, re.MULTILINE)
    assert [step for step, _ in jobs] == ["figure2", "table4", "fa"]
    asked = [asked_for(job) for _, job in jobs]
    # What uses a GPU asks for one, whether or not there is one in the end; each job starts after the one before.
    assert ["TresPerNode=gres:gpu:1" in text for text in asked] == [False, False, True]
    begun = [re.search(r"StartTime=(\S+) EndTime=(\S+)", text).groups() for text in asked]  # type: ignore[union-attr]
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(begun))
    summary = shown.out.rpartition("Summary")[2]
    assert all(step in summary for step, _ in jobs) and "in all" in summary
    outcomes = [results.load(tmp_path / "results", step) for step, _ in jobs]
    assert all(outcome is not None and outcome.complete for outcome in outcomes)
    assert status == max(1 if "differs" in results.verdicts(each) else 0 for each in outcomes if each)


@pytest.mark.slurm
def test_the_time_limit(make_choreo, tmp_path: Path, monkeypatch, capfd) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("CHOREO", make_choreo(hang=HANGING).command[0])
    assert runner().run("figure2", ["--results", str(tmp_path / "results")], limit_s=4) == 124
    assert "run it again to resume" in capfd.readouterr().out
    ended_with_what_was_measured(tmp_path)


@pytest.mark.slurm
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_cancels_the_job(by: signal.Signals, make_choreo: Callable[..., Choreo], tmp_path: Path) -> None:
    before = left_in_build()
    task = in_background(tmp_path, make_choreo(hang=HANGING))
    job = wait_for_job(tmp_path)
    task.send_signal(by)
    _, stderr = task.communicate(timeout=50)
    assert task.returncode == 130 and "what was measured is kept" in stderr and "Traceback" not in stderr
    assert slurm_queue.ask(job).name == "CANCELLED"  # type: ignore[union-attr]
    assert left_in_build() == before
    ended_with_what_was_measured(tmp_path)


@pytest.mark.slurm
def test_cancelled_by_someone_else(make_choreo: Callable[..., Choreo], tmp_path: Path) -> None:
    task = in_background(tmp_path, make_choreo(hang=HANGING))
    job = wait_for_job(tmp_path)
    subprocess.run(["scancel", job], check=True)
    _, stderr = task.communicate(timeout=50)
    assert task.returncode == 130 and f"job {job}" in stderr and "was cancelled" in stderr
    ended_with_what_was_measured(tmp_path)


@pytest.mark.slurm
def test_requeued(make_choreo: Callable[..., Choreo], tmp_path: Path) -> None:
    task = in_background(tmp_path, make_choreo(hang=HANGING))
    job = wait_for_job(tmp_path)
    subprocess.run(["scontrol", "requeue", job], check=True)
    assert task.stderr is not None
    said = ""
    while "was requeued" not in said:
        line = task.stderr.readline()
        assert line, said
        said += line
    task.send_signal(signal.SIGINT)
    _, stderr = task.communicate(timeout=50)
    assert task.returncode == 130 and "cancelled before it ran" in stderr
    ended_with_what_was_measured(tmp_path)


@pytest.fixture
def restart_controller() -> Iterator[None]:
    """The tests after this one need the controller again."""
    yield
    subprocess.run(["slurmctld"], check=True, env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin"})
    for _ in range(100):
        asked = subprocess.run(["sinfo", "-h", "-p", "test", "-o", "%t"], capture_output=True, text=True)
        if asked.stdout.strip() == "idle":
            return
        time.sleep(0.1)
    raise AssertionError("slurmctld does not come back")


@pytest.mark.slurm
@pytest.mark.skipif("SLURM_TEST" not in os.environ, reason="stops the controller, and .ci/slurm started none")
def test_the_controller_stops(restart_controller: None, make_choreo: Callable[..., Choreo], tmp_path: Path) -> None:
    """A job goes on without it, and so does what is shown; a new one cannot be submitted."""
    task = in_background(tmp_path, make_choreo(hang=HANGING))
    wait_for_job(tmp_path)
    pid = int((Path(os.environ["SLURM_TEST"]) / "slurmctld.pid").read_text())
    os.kill(pid, signal.SIGTERM)
    assert _gone(pid)
    assert task.stderr is not None
    said = ""
    while "does not answer" not in said:
        line = task.stderr.readline()
        assert line, said
        said += line
    for each in (tmp_path / "calls.hanging").read_text().split():  # the compiler ends: so does the step
        os.kill(int(each), signal.SIGKILL)
    stdout, _ = task.communicate(timeout=50)
    assert task.returncode == 1 and "Figure 2" in stdout  # one row of it failed
    task = in_background(tmp_path, make_choreo())
    _, stderr = task.communicate(timeout=50)
    assert task.returncode == 2 and "slurmctld" in stderr and "Traceback" not in stderr


@pytest.mark.slurm
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("partition=hopper", "--slurm partition=NAME with one of: short, test"),
        ("cpus=1,gres=gpu:b200:1", "has what the job asks for (cpus_per_task=1, gres=gpu:b200:1)"),
        ("cpus=1,gres=tpu:1", "`sinfo -o '%R %G'` shows how"),
    ],
)
def test_what_slurm_refuses(options: str, message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    step, before = "fa" if "gres" in options else "figure2", left_in_build()
    assert runner(options).run(step, ["--results", str(tmp_path / "results")], limit_s=60) == 2
    shown = capfd.readouterr().err
    assert message in shown and "Traceback" not in shown and "sbatch: error" not in shown
    assert left_in_build() == before


@pytest.mark.slurm
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("cpus=1,partition=short,time=30", "more time than the partition allows: --slurm time=MINUTES"),
        ("cpus=4000", "more than a node of the partition has"),
    ],
)
def test_a_job_that_would_wait_for_ever(options: str, message: str, tmp_path: Path, monkeypatch, capfd) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(slurm_follow, "HOPELESS_S", 1.0)
    assert runner(options).run("figure2", ["--results", str(tmp_path / "results")], limit_s=60) == 2
    shown = capfd.readouterr().err
    assert message in shown and "cancelled before it ran" in shown
    assert slurm_queue.ask(job_of(shown)).name == "CANCELLED"  # type: ignore[union-attr]


@pytest.mark.slurm
def test_in_an_image(make_choreo, stub_apptainer, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def] # noqa: F811
    folder, last = stub_apptainer()
    image = tmp_path / "sala.sif"
    image.write_bytes(b"image")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CHOREO", make_choreo().command[0])
    monkeypatch.setenv("SALA_SIF", str(image))
    made = SlurmRunner.from_environment("cpus=1")
    assert "sala.sif" in made.why
    assert made.run("figure2", ["--results", str(tmp_path / "results")], limit_s=60) == 0
    words, _ = last()
    assert str(image) in words and "--nv" not in words
    document = results.load(tmp_path / "results", "figure2")
    assert document is not None and document.complete
    assert document.provenance["runner"] == "slurm"
    assert document.provenance["image"] == f"sala.sif sha256:{hashlib.sha256(b'image').hexdigest()}"


def test_no_such_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALA_SIF", "/nowhere.sif")
    with pytest.raises(ValueError, match="no such image"):
        SlurmRunner.from_environment()


def test_no_slurm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert runner().run("figure2", [], limit_s=60) == 2
    assert "no Slurm commands on PATH" in capsys.readouterr().err


def test_no_submitit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(slurm_queue, "partitions", lambda: ["test"])
    monkeypatch.setitem(sys.modules, "submitit", None)
    assert runner().run("figure2", [], limit_s=60) == 2
    assert "-m pip install submitit" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--gpu", "1"], ["--gpu=1"]])
def test_slurm_chooses_the_gpu(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert runner().run("fa", arguments, limit_s=60) == 2
    assert "Slurm chooses the GPU" in capsys.readouterr().err


def test_there_is_no_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner().shell("") == 2
    assert "--runner host or docker has one" in capsys.readouterr().err


def test_reports_need_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert runner().run("list", [], limit_s=60) == 0


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("TIMEOUT", 124, "reached its time limit"),
        ("OUT_OF_MEMORY", 137, "--slurm mem=SIZE"),
        ("NODE_FAIL", 1, "its node failed"),
        ("PREEMPTED", 1, "preempted"),
        ("FAILED", 1, "exit code 127:0"),
        ("UNKNOWN", 1, "not known to Slurm any more"),
        ("LAUNCH_FAILED", 1, "ended as LAUNCH_FAILED"),
    ],
)
def test_jobs_that_did_not_end_by_themselves(
    name: str,
    status: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answers = iter([State("PENDING", "Priority"), State("RUNNING", node="n1"), State(name, "", "n1", 0, "127:0")])
    monkeypatch.setattr(slurm_queue, "ask", lambda job: next(answers))
    monkeypatch.setattr(slurm_follow, "ASK_S", (0.0, 0.0))
    job = SimpleNamespace(job_id="7", paths=SimpleNamespace(result_pickle=tmp_path / "none"))
    followed = slurm_follow.Followed("fa", job, slurm_follow.Log(tmp_path / "log"), tmp_path, math.inf)
    assert followed.follow() == status
    shown = capsys.readouterr().err
    assert "jobs of higher priority come first (Priority)" in shown and "runs on n1" in shown and words in shown
    assert followed.problem


def test_a_job_that_was_never_seen_running_names_its_node_and_log_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter([State("PENDING", "Priority"), State("COMPLETED", node="n1")])
    monkeypatch.setattr(slurm_queue, "ask", lambda job: next(answers))
    monkeypatch.setattr(slurm_follow, "ASK_S", (0.0, 0.0))
    job = SimpleNamespace(job_id="7", paths=SimpleNamespace(result_pickle=tmp_path / "none"))
    slurm_follow.Followed("fa", job, slurm_follow.Log(tmp_path / "log"), tmp_path / "place", math.inf).follow()
    assert f"fa: job 7 ran on n1; log: {tmp_path / 'log'}" in capsys.readouterr().err
