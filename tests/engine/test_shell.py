"""``./ae shell`` in a container of a real engine: what is typed at a terminal, and what comes through a pipe."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reproduce import ROOT
from reproduce.runners.docker import DockerRunner
from tests.engine.conftest import containers
from tests.engine.daemon import Daemon

pytestmark = pytest.mark.engine
COMMAND = [sys.executable, "-m", "invoke", "shell", "--runner", "docker"]


def test_commands_from_a_pipe(daemon: Daemon, runner: DockerRunner) -> None:
    typed = "pwd; echo $SALA_RUNNER; echo problem >&2; touch nothing 2>/dev/null || echo read-only; exit 5\n"
    done = subprocess.run(COMMAND, cwd=ROOT, input=typed, capture_output=True, text=True, timeout=120)
    assert done.returncode == 5, done.stdout + done.stderr
    assert done.stdout.splitlines() == [str(ROOT), "docker", "read-only"] and "problem" in done.stderr
    assert not containers(daemon)


def test_keys_at_a_terminal(daemon: Daemon, runner: DockerRunner) -> None:
    """Ctrl-C is the shell's, and ends what it runs, not the shell."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execv(COMMAND[0], COMMAND)
    shown = b""

    def until(text: bytes) -> None:
        nonlocal shown
        deadline = time.monotonic() + 60
        while text not in shown:
            assert time.monotonic() < deadline, shown
            if select.select([terminal], [], [], 1)[0]:
                shown += os.read(terminal, 65536)

    os.write(terminal, b"echo begins-$((40 + 2)); sleep 600\n")
    until(b"begins-42")
    os.write(terminal, b"\x03")
    os.write(terminal, b"echo goes-on-$((40 + 3)); exit 7\n")
    until(b"goes-on-43")
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 7 and not containers(daemon)


def test_commands_from_a_file_and_from_nothing(daemon: Daemon, runner: DockerRunner, tmp_path: Path) -> None:
    """Neither can be waited for as a terminal or a pipe can."""
    (tmp_path / "commands").write_text("echo in-$SALA_RUNNER; exit 4\n")
    for place, status, said in ((tmp_path / "commands", 4, "in-docker\n"), (Path("/dev/null"), 0, "")):
        with place.open() as commands:
            done = subprocess.run(COMMAND, cwd=ROOT, stdin=commands, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout) == (status, said), done.stderr
    assert not containers(daemon)
