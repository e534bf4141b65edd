"""Steps side by side on a machine of two GPUs. The GPUs are not real; the processes are."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from reproduce.schedule import Ended, Job, Schedule
from tests.reproduce.test_process import _gone

# A step that writes when it began and ended, and with which GPU, and prints a line.
STEP = """
import os, pathlib, sys, time
name, seconds, status = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
began = time.monotonic()
print("begins", flush=True)
time.sleep(seconds)
gpu = sys.argv[sys.argv.index("--gpu") + 1] if "--gpu" in sys.argv else "none"
pathlib.Path({folder!r}, name).write_text(
    f"{{gpu}} {{os.environ.get('CUDA_VISIBLE_DEVICES')}} {{os.environ.get('GPU')}} {{began}} {{time.monotonic()}}")
sys.exit(status)
"""


@pytest.fixture
def make_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    for name in ("GPU", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "step.py").write_text(STEP.format(folder=str(tmp_path)))

    def make(name: str, *, uses_gpu: bool, seconds: float = 0.3, status: int = 0) -> Job:
        return Job(name, (sys.executable, str(tmp_path / "step.py"), name, str(seconds), str(status)), uses_gpu)

    return make


def test_each_gpu_has_one_step_at_a_time_and_the_others_need_not_wait(make_job, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    jobs = [make_job(f"gpu{n}", uses_gpu=True) for n in range(5)] + [
        make_job(f"cpu{n}", uses_gpu=False) for n in (0, 1)
    ]
    lines, ends = [], []
    started = time.monotonic()
    Schedule(jobs, ["0", "3"], lambda name, text: lines.append((name, text)), ends.append).run()
    assert sorted(lines) == sorted((job.name, "begins") for job in jobs)
    assert {end.job.name for end in ends} == {job.name for job in jobs} and {end.status for end in ends} == {0}

    seen: dict[str, list[tuple[float, float]]] = {}
    for end in ends:
        gpu, visible, setting, began, ended = (tmp_path / end.job.name).read_text().split()
        assert gpu == (end.gpu or "none")
        assert (visible, setting) == ((gpu, gpu) if end.job.uses_gpu else ("None", "None"))
        assert gpu in (("0", "3") if end.job.uses_gpu else ("none",))
        seen.setdefault(gpu, []).append((float(began), float(ended)))
    assert set(seen) == {"0", "3", "none"}
    for times in seen.values():
        times.sort()
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(times))
    # They did run side by side, however late a busy machine started one of them.
    assert any(a < d and c < b for a, b in seen["0"] for c, d in seen["3"])
    assert time.monotonic() - started < 60


def test_a_step_that_fails_does_not_keep_others_from_running(make_job) -> None:  # type: ignore[no-untyped-def]
    jobs = [
        make_job("a", uses_gpu=True, status=1),
        Job("b", ("/no/such/program",), False),
        make_job("c", uses_gpu=True),
    ]
    ends: list[Ended] = []
    with pytest.raises(FileNotFoundError):
        Schedule(jobs, ["0"], lambda *_: None, ends.append).run()
    ends.clear()
    Schedule([jobs[0], jobs[2]], ["0"], lambda *_: None, ends.append).run()
    assert [(end.job.name, end.status) for end in ends] == [("a", 1), ("c", 0)]


def test_an_interrupt_ends_every_child(tmp_path: Path) -> None:
    """Ctrl-C in the middle of two steps, each with a child of its own that would outlive it."""
    text = f"echo $$ >> {tmp_path}/pids; sleep 60 & echo $! >> {tmp_path}/pids; wait"
    jobs = [Job(name, ("bash", "-c", text), True) for name in "ab"]

    def interrupt() -> None:
        while not (tmp_path / "pids").exists() or len((tmp_path / "pids").read_text().split()) < 4:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    ends: list[Ended] = []
    with pytest.raises(KeyboardInterrupt):
        Schedule(jobs, ["0", "1"], lambda *_: None, ends.append).run()
    assert ends == [] and all(_gone(int(pid)) for pid in (tmp_path / "pids").read_text().split())


SMI = "{0}, NVIDIA H200, 580.159.04, 9.0, 1980, 345, 700.00, 30, GPU-{0}"


def test_all_on_two_gpus(make_choreo, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """The real command: its lines say which step they are of, every step has its results, and the summary is whole."""
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(f"#!/bin/bash\necho '{SMI.format(0)}'\necho '{SMI.format(1)}'\n")
    smi.chmod(0o755)
    steps = "{name: cli.STEPS[name] for name in ('figure2', 'table4', 'figure3', 'fa')}"
    code = f"import sys; from reproduce import cli; cli.STEPS = {steps}; sys.exit(cli.main(sys.argv[1:]))"
    environment = {**os.environ, "CHOREO": make_choreo().command[0], "PATH": f"{smi.parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-c", code, "all", "--gpu", "0,1", "--results", str(tmp_path / "results")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    lines = done.stdout.splitlines()
    for name, where in (("figure2", "no GPU"), ("figure3", "GPU [01]"), ("fa", "GPU [01]")):
        ended = re.compile(rf"{name:11} \| ended after [\d.]+ s \({where}\)")
        assert any(ended.fullmatch(line) for line in lines), done.stdout + done.stderr
        assert (tmp_path / "results" / f"{name}.json").is_file()
    assert "Summary" in lines and "Traceback" not in done.stdout + done.stderr
    assert any("first verdicts after" in line for line in lines)
