"""A Docker engine of the tests' own: started, stopped and killed by them, with everything it writes in one folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import docker

# What the NVIDIA Container Toolkit installs; the engine knows GPUs if it is on its PATH, and runs it as a container
# starts, with what was requested in the container's environment. This one only writes down what that is.
HOOK = """#!/bin/bash
state=$(cat)
bundle=$(sed -n 's/.*"bundle":"\\([^"]*\\)".*/\\1/p' <<<"$state")
grep -o 'NVIDIA_[A-Z_]*=[^"]*' "$bundle/config.json" >{seen}
env | grep '^NVIDIA_' >>{seen} || true
"""


class Daemon:
    """``binaries`` is where the engine's packages are unpacked. ``socket`` is what DOCKER_HOST names."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self.binaries = binaries
        self.folder = folder
        self.socket = f"unix://{folder}/docker.sock"
        self.hooks = folder / "hooks"
        self.seen = folder / "requested"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, gpus: bool = False) -> None:
        """``gpus``: as if the NVIDIA Container Toolkit were installed."""
        self.hooks.mkdir(parents=True, exist_ok=True)
        hook = self.hooks / "nvidia-container-runtime-hook"
        hook.unlink(missing_ok=True)
        if gpus:
            hook.write_text(HOOK.format(seen=self.seen))
            hook.chmod(0o755)
        # A killed engine leaves its containerd and containers behind, and the files that name them.
        path = [self.hooks, self.binaries / "usr/bin", self.binaries / "usr/sbin", os.environ["PATH"]]
        command = ["dockerd", "--host", self.socket, "--data-root", self.folder / "data"]
        command += ["--exec-root", self.folder / "exec", "--pidfile", self.folder / "docker.pid"]
        command += ["--storage-driver", "overlay2", "--iptables=false", "--ip6tables=false", "--ip-forward=false"]
        command += ["--ip-masq=false", "--bridge=none", "--cgroup-parent", self.cgroup, "--shutdown-timeout", "5"]
        with (self.folder / "dockerd.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*map(str, command), "--log-level", "warn"],
                env={**os.environ, "PATH": os.pathsep.join(map(str, path))},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        for _ in range(300):
            with contextlib.suppress(Exception):
                self.client().ping()
                return
            assert self._process.poll() is None, (self.folder / "dockerd.log").read_text()[-3000:]
            time.sleep(0.1)
        raise AssertionError("the engine does not answer")

    @property
    def cgroup(self) -> str:
        return f"sala-test-{os.getpid()}"

    def client(self) -> Any:
        return docker.DockerClient(base_url=self.socket, timeout=60)

    def kill(self) -> None:
        """As a crash: its containers go on without it."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        # A containerd that is still ending, or was and is not waited for, is a living one to the next engine.
        for process in self.processes("containerd"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for _ in range(100):
            if not self.processes("containerd"):
                break
            time.sleep(0.1)
        (self.folder / "exec" / "containerd" / "containerd.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()  # ends its containers and its own containerd
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(30)
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def clean_up(self) -> None:
        """Removes everything that the engine made: mounts, control groups, files."""
        self.stop()
        for process in self.processes():  # of an engine that was killed: its containerd and what keeps containers
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for place in sorted(self.mounts(), reverse=True):
            subprocess.run(["umount", "-l", place], check=False)
        for group in Path("/sys/fs/cgroup").glob(f"**/{self.cgroup}"):
            for folder in sorted([group, *(path for path in group.rglob("*") if path.is_dir())], reverse=True):
                with contextlib.suppress(OSError):
                    folder.rmdir()
        shutil.rmtree(self.folder, ignore_errors=True)

    def processes(self, program: str = "") -> list[int]:
        """Processes of this engine, known by its folder in their command lines; those of one program, or all."""
        found = []
        for place in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = place.read_bytes().decode(errors="replace").split("\0")
                if f"{self.folder}/" in " ".join(words) and program in ("", Path(words[0]).name):
                    found.append(int(place.parent.name))
        return found

    def mounts(self) -> list[str]:
        places = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        return [place for place in places if place.startswith(f"{self.folder}/")]
