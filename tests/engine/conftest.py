"""One engine and one image for all tests of this folder; the image is built as a user builds it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reproduce import ROOT, engine, image
from reproduce.runners.docker import DockerRunner
from tests.engine.daemon import Daemon

BASE = "sala-test-base"


@pytest.fixture(scope="session")
def daemon() -> Iterator[Daemon]:
    # Not in pytest's own folders, which are kept: an engine's data are large, and mounted.
    with tempfile.TemporaryDirectory(prefix="engine-", dir=Path(os.environ["SALA_TEST_BASE"]).parent) as folder:
        made = Daemon(Path(os.environ["SALA_TEST_ENGINE"]), Path(folder))
        before = os.environ.get("DOCKER_HOST")
        try:
            made.start()
            os.environ["DOCKER_HOST"] = made.socket
            packed = subprocess.Popen(["tar", "-C", os.environ["SALA_TEST_BASE"], "-c", "."], stdout=subprocess.PIPE)
            assert packed.stdout is not None
            made.client().api.import_image_from_data(packed.stdout, repository=BASE)
            assert packed.wait() == 0
            yield made
            left = [container.name for container in made.client().containers.list(all=True)]
            assert not left, f"containers left behind: {left}"
        finally:
            os.environ.pop("DOCKER_HOST")
            if before is not None:
                os.environ["DOCKER_HOST"] = before
            made.clean_up()
        assert not made.mounts()


@pytest.fixture(scope="session")
def built(daemon: Daemon) -> subprocess.CompletedProcess[str]:
    """``./ae build`` as it ended."""
    return inv("build", *build_options(), timeout=600)


def build_options() -> list[str]:
    options = ["--base-image", os.environ.get("SALA_TEST_BASE_IMAGE", BASE), "--no-torch", "--network", "host"]
    certificates = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    return [*options, "--extra-ca", certificates] if certificates else options


@pytest.fixture
def runner(daemon: Daemon, built: subprocess.CompletedProcess[str]) -> DockerRunner:
    assert built.returncode == 0, built.stdout + built.stderr
    found = engine.connect()
    return DockerRunner(found, image.find(found))


def inv(*words: str, timeout: float = 300, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "invoke", *words]
    env = {**os.environ, "NO_COLOR": "1", **environment}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=timeout)


def start(*words: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "invoke", *words]
    env = {**os.environ, "NO_COLOR": "1", "RUNNER": "docker", **environment}
    return subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def document(results: Path, step: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((results / f"{step}.json").read_text())
    return found


def wait_until(condition: Callable[[], object], seconds: float = 60) -> None:
    for _ in range(int(seconds * 20)):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def containers(daemon: Daemon) -> list[Any]:
    found: list[Any] = daemon.client().containers.list(all=True)
    return found


@pytest.fixture
def hanging_choreo(tmp_path: Path) -> Path:
    """A compiler that answers for the first kernels of Figure 2, and waits for ever for the convolution.

    What it waits for is seen by ``hangs`` in the results folder, which it can write.
    """
    folder = tmp_path / "compiler"
    folder.mkdir()
    program = folder / "choreo"
    program.write_text(
        "#!/bin/bash\n"
        'case "$*" in\n'
        f'  *conv2d*) touch "{tmp_path}/results/hangs"; sleep 600;;\n'
        "esac\n"
        "echo 'cudaFuncAttributeMaxDynamicSharedMemorySize is set to `98304`' >&2\n"
    )
    program.chmod(0o755)
    return program


@pytest.fixture
def choreo(hanging_choreo: Path) -> Path:
    """The same compiler, which answers for every kernel."""
    hanging_choreo.write_text(hanging_choreo.read_text().replace("sleep 600", ":"))
    return hanging_choreo
