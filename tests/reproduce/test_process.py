"""Children end: at their time limit, on an interrupt, and with everything that they started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from reproduce import process


def test_output_status_and_log(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "x.log"
    done = process.run(["bash", "-c", "echo out; echo err >&2; exit 3"], timeout_s=10, env={"A": "1 2"}, log=log)
    assert (done.returncode, done.stdout, done.stderr, done.timed_out) == (3, "out\n", "err\n", False)
    assert done.last_line() == "err"
    text = log.read_text()
    assert text.startswith("$ A='1 2' bash -c") and "out\nerr\n# exit status: 3" in text


def test_a_missing_program_is_an_outcome() -> None:
    done = process.run(["/no/such/program"], timeout_s=1)
    assert not done.ok and done.last_line() == "cannot start /no/such/program: No such file or directory"


def test_the_time_limit_ends_the_whole_group(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    # The grandchild ignores SIGTERM: only killing the group ends it.
    script = f"(trap '' TERM; echo $BASHPID > {pid_file}; while true; do sleep 0.05; done) & echo started; wait"
    started = time.monotonic()
    done = process.run(["bash", "-c", script], timeout_s=0.5)
    assert done.timed_out and done.returncode is None and done.stdout == "started\n"
    assert time.monotonic() - started < 0.5 + 2 * process.GRACE_S
    assert _gone(int(pid_file.read_text()))


def test_an_interrupt_ends_the_child(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = f"from reproduce import process\nprocess.run(['bash', '-c', 'echo $$ > {pid_file}; sleep 60'], timeout_s=60)"
    child = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    for _ in range(200):
        if pid_file.exists() and pid_file.read_text().strip():
            break
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    child.wait(10)
    assert _gone(int(pid_file.read_text()))


def _gone(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if "State:\tZ" in Path(f"/proc/{pid}/status").read_text():
            return True
        time.sleep(0.05)
    return False


def test_a_child_that_starts_while_all_are_ended_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(subprocess.Popen[str]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            process._stopping.set()  # the main thread ends all children, and does not know this one yet
            super().__init__(*arguments, **options)

    monkeypatch.setattr(process, "_stopping", threading.Event())
    monkeypatch.setattr(process.subprocess, "Popen", Late)
    finished = process.run(["sleep", "60"], timeout_s=50)
    assert finished.returncode == -signal.SIGTERM and not finished.timed_out
