"""Steps in containers of a real engine: results as on the host, rights, GPUs, and everything that can go wrong."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reproduce import ROOT, engine, image, results, verify
from reproduce.runners import container as containers_of_steps
from reproduce.runners.choose import choose
from reproduce.runners.docker import DockerRunner
from tests.engine.conftest import build_options, containers, document, inv, start, wait_until
from tests.engine.daemon import Daemon

pytestmark = pytest.mark.engine


# --------------------------------------------------------------------------------------------------------------
# The image


def test_build_says_what_it_made_and_leaves_no_containers(
    daemon: Daemon, built: subprocess.CompletedProcess[str]
) -> None:
    assert built.returncode == 0, built.stdout + built.stderr
    assert re.search(r"image sala-reproduction:[0-9a-f]{12} \(sha256:[0-9a-f]{12}\), \d\.\d GB, made in", built.stdout)
    assert "Step 1/" in built.stdout and not containers(daemon)
    made = image.find(engine.connect())
    assert made.torch is False and made.size > 1e8


def test_a_build_that_fails_says_where_with_its_output(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    packed = subprocess.run(["tar", "-C", str(tmp_path / "empty"), "-c", "."], capture_output=True, check=True).stdout
    daemon.client().api.import_image_from_data(packed, repository="sala-test-empty")
    done = inv("build", "--base-image", "sala-test-empty", "--no-torch")
    assert done.returncode == 1 and "the build failed at: Step" in done.stderr and "install.sh" in done.stderr
    assert not containers(daemon) and "Traceback" not in done.stderr


def test_a_base_image_that_cannot_be_had(daemon: Daemon) -> None:
    done = inv("build", "--base-image", "localhost:1/no-such-base")
    assert done.returncode == 1 and "the base image localhost:1/no-such-base cannot be had" in done.stderr
    assert "--base-image" in done.stderr and "Traceback" not in done.stderr


def test_an_older_image_is_noticed(runner: DockerRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "tag", lambda root=ROOT: "sala-reproduction:000000000000")
    with pytest.raises(engine.EngineError, match=r"older than docker/: run `./ae build`"):
        image.find(runner.engine)
    monkeypatch.setattr(image, "NAME", "sala-nothing")
    with pytest.raises(engine.EngineError, match=r"not there: run `./ae build`"):
        image.find(runner.engine)
    assert choose().name == "host" and "not there" in choose().why


# --------------------------------------------------------------------------------------------------------------
# The same results as on the host


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results measured in containers, one step after another."""
    return tmp_path_factory.mktemp("inside")


def values(made: results.Document) -> dict[str, Any]:
    """Its records without what another run takes otherwise: how long it took, and when."""
    return {
        key: (record.status, {**record.values, "compile_s": 0}, record.reason) for key, record in made.records.items()
    }


@pytest.mark.parametrize("step", ["figure2", "table4", "registers"])
def test_results_are_the_hosts(runner: DockerRunner, inside: Path, tmp_path: Path, step: str) -> None:
    """The same records and tables, equal to expected/exact; nvcc is the image's."""
    done = inv(step, "--runner", "docker", "--results", str(inside), timeout=900)
    assert done.returncode == 0 and "--runner docker" in done.stderr, done.stdout + done.stderr
    made = results.load(inside, step)
    assert made is not None and made.complete
    host = host_results(step, tmp_path)
    assert values(made) == values(host) and made.tables == host.tables and made.fingerprint == host.fingerprint
    findings = verify.exact(made)
    assert findings and all(finding.status == verify.OK for finding in findings), [*map(str, findings)]
    assert made.provenance["runner"] == "docker" and host.provenance["runner"] == "host"
    assert made.provenance["image"] == f"{runner.image.tag} {runner.image.id}" and host.provenance["image"] is None
    for name in ("commit", "dirty", "nvcc"):
        assert made.provenance[name] == host.provenance[name]
    assert made.provenance["commit"] and made.tables[0].title in (inside / "logs" / step / "container.log").read_text()


def host_results(step: str, folder: Path) -> results.Document:
    """Measured on the host; what is current in results/ is kept, so that CI compiles nothing twice."""
    if (ROOT / "results" / f"{step}.json").exists():
        shutil.copytree(ROOT / "results", folder / "host")
    done = inv(step, "--runner", "host", "--results", str(folder / "host"), timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    made = results.load(folder / "host", step)
    assert made is not None
    return made


@pytest.mark.slow  # a minute more: what the tests before compare, again, and the steps that they leave out
def test_exact_results_are_verified_in_a_container(runner: DockerRunner, inside: Path) -> None:
    """What the test before has measured, and the rest, made without network and GPU.

    This image has no Triton, which the Tawa rows of Table 2 need: that is said, and everything else is equal.
    """
    done = inv("verify", "--runner", "docker", "--results", str(inside), timeout=900)
    found = re.findall(r"^(\w+): (\d+) of (\d+) exact values equal", done.stdout, re.MULTILINE)
    assert {step for step, _, _ in found} >= {"figure2", "table4", "census", "registers"}, done.stdout + done.stderr
    assert all(int(equal) == int(total) > 0 for step, equal, total in found if step != "table2"), done.stdout
    assert re.search(r"^table2: .* not measured here: no triton$", done.stdout, re.MULTILINE), done.stdout
    assert done.returncode == 0 and "MISMATCH" not in done.stdout, done.stdout


# --------------------------------------------------------------------------------------------------------------
# Rights

PROBE = """
import json, os, pathlib, socket
def writes(path):
    try:
        pathlib.Path(path).write_text("x"); os.unlink(path); return True
    except OSError:
        return False
status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
try:
    socket.create_connection(("1.1.1.1", 53), 2); network = True
except OSError:
    network = False
print(json.dumps({
    "user": [os.getuid(), os.getgid()], "effective": int(status["CapEff"], 16), "bounding": int(status["CapBnd"], 16),
    "no_new_privileges": status["NoNewPrivs"].strip(), "network": network, "interfaces": os.listdir("/sys/class/net"),
    "writes": {path: writes(path + "/probe") for path in PATHS}, "home": os.environ["HOME"],
}))
"""


def probe(runner: DockerRunner, request: containers_of_steps.Request, paths: list[str]) -> dict[str, Any]:
    """What a process sees in the container of a step."""
    name = "sala-reproduction-probe"
    chosen = containers_of_steps.settings(request, runner.image, name, rootless=False)
    command = chosen["command"]
    at = command.index(containers_of_steps.PYTHON)
    chosen["command"] = [*command[: at + 1], "-c", f"PATHS = {paths!r}\n{PROBE}"]
    made = runner.engine.client.containers.create(**{**chosen, "log_config": None})
    try:
        made.start()
        assert made.wait(timeout=60)["StatusCode"] == 0, made.logs()
        found: dict[str, Any] = json.loads(made.logs())
        return found
    finally:
        made.remove(force=True)


def test_a_step_has_no_rights_that_it_does_not_need(
    runner: DockerRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4321)
    monkeypatch.setattr(os, "getgid", lambda: 4322)
    out = tmp_path / "results"
    out.mkdir()
    out.chmod(0o777)
    for path in (containers_of_steps.build_folder(runner.image), containers_of_steps.LOCKS):
        path.mkdir(parents=True, exist_ok=True)
    request = containers_of_steps.read_request("figure2", ["--results", str(out)])
    found = probe(runner, request, [str(out), str(ROOT), str(ROOT / "expected"), "/", "/usr", "/opt", "/tmp"])
    assert found["user"] == [4321, 4322] and found["home"] == "/tmp"
    assert (found["effective"], found["bounding"], found["no_new_privileges"]) == (0, 0, "1")
    assert not found["network"] and found["interfaces"] == ["lo"]
    assert {path for path, written in found["writes"].items() if written} == {str(out), "/tmp"}


def test_profiling_keeps_one_capability_and_the_user(
    runner: DockerRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4321)
    monkeypatch.setenv("SALA_PROFILING", "1")
    containers_of_steps.build_folder(runner.image).mkdir(parents=True, exist_ok=True)
    request = containers_of_steps.Request("table3", (), tmp_path, (tmp_path,), (), profiles=True)
    found = probe(runner, request, [str(ROOT)])
    sys_admin = 1 << 21
    assert found["user"][0] == 4321 and found["effective"] == sys_admin and found["bounding"] == sys_admin
    assert not found["writes"][str(ROOT)]


# --------------------------------------------------------------------------------------------------------------
# What goes wrong


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_ends_the_task_ends_the_container(
    runner: DockerRunner, daemon: Daemon, tmp_path: Path, hanging_choreo: Path, sig: signal.Signals
) -> None:
    task = begin(tmp_path, hanging_choreo)
    task.send_signal(sig)
    said, _ = task.communicate(timeout=40)
    assert task.returncode == 130 and "what was measured is kept" in said and "Traceback" not in said
    assert not containers(daemon)
    made = results.load(tmp_path / "results", "figure2")
    assert made is not None and made.records and not made.complete


def begin(folder: Path, choreo: Path) -> subprocess.Popen[str]:
    """A container that waits for ever in its ninth row, with the rows before it measured."""
    task = start("figure2", "--results", str(folder / "results"), CHOREO=str(choreo))
    wait_until((folder / "results" / "hangs").exists)
    wait_until((folder / "results" / "figure2.json").exists)
    return task


def release(choreo: Path) -> None:
    """From now on it answers for every kernel."""
    choreo.write_text(choreo.read_text().replace("sleep 600", ":"))


def test_the_time_limit(
    runner: DockerRunner,
    daemon: Daemon,
    tmp_path: Path,
    hanging_choreo: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CHOREO", str(hanging_choreo))
    runner.engine.client.api.timeout = 2  # a step that says nothing for longer than this is no engine that is gone
    status = runner.run("figure2", ["--results", str(tmp_path / "results")], limit_s=8)
    assert status == 124 and "run it again to resume" in capfd.readouterr().err
    assert not containers(daemon) and results.load(tmp_path / "results", "figure2") is not None


def test_a_container_that_is_killed_resumes(
    runner: DockerRunner, daemon: Daemon, tmp_path: Path, hanging_choreo: Path
) -> None:
    task = begin(tmp_path, hanging_choreo)
    (running,) = containers(daemon)
    running.kill()
    said, _ = task.communicate(timeout=40)
    assert task.returncode == 137 and "the container was killed (by something else" in said and "resume" in said
    assert not containers(daemon)
    before = document(tmp_path / "results", "figure2")["records"]
    release(hanging_choreo)
    done = inv("figure2", "--runner", "docker", "--results", str(tmp_path / "results"), CHOREO=str(hanging_choreo))
    after = document(tmp_path / "results", "figure2")
    assert after["complete"], done.stdout + done.stderr
    kept = {key: record for key, record in before.items() if record["status"] == "measured"}
    assert kept and {key: after["records"][key] for key in kept} == kept


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_an_engine_that_dies_loses_nothing(
    runner: DockerRunner, daemon: Daemon, tmp_path: Path, hanging_choreo: Path, how: str
) -> None:
    task = begin(tmp_path, hanging_choreo)
    daemon.stop() if how == "stopped" else daemon.kill()
    said, _ = task.communicate(timeout=60)
    daemon.start()
    # An engine that is stopped ends its containers, and may live long enough to say so.
    assert task.returncode in ((125, 130, 137) if how == "stopped" else (125,)), said
    assert ("what was measured is kept" in said or "to resume" in said) and "Traceback" not in said
    made = results.load(tmp_path / "results", "figure2")
    assert made is not None and made.records
    release(hanging_choreo)
    done = inv("figure2", "--runner", "docker", "--results", str(tmp_path / "results"), CHOREO=str(hanging_choreo))
    assert document(tmp_path / "results", "figure2")["complete"], done.stdout + done.stderr
    assert not containers(daemon)


def test_leftovers_of_a_killed_task_are_removed_and_those_of_a_living_one_are_not(
    runner: DockerRunner, daemon: Daemon, tmp_path: Path, hanging_choreo: Path
) -> None:
    task = begin(tmp_path, hanging_choreo)
    (living,) = containers(daemon)
    # Another task beside it: the container stays, and the lock of its results holds.
    beside = inv("figure2", "--runner", "docker", "--results", str(tmp_path / "results"))
    assert beside.returncode == 3 and "in use by another run" in beside.stderr, beside.stdout + beside.stderr
    on_host = inv("figure2", "--runner", "host", "--results", str(tmp_path / "results"))
    assert on_host.returncode == 3 and "in use by another run" in on_host.stderr
    assert [each.name for each in containers(daemon)] == [living.name]
    os.kill(task.pid, signal.SIGKILL)
    task.communicate()
    release(hanging_choreo)
    done = inv("figure2", "--runner", "docker", "--results", str(tmp_path / "results"), CHOREO=str(hanging_choreo))
    assert f"removed the container {living.name}" in done.stderr
    assert document(tmp_path / "results", "figure2")["complete"], done.stdout + done.stderr
    assert not containers(daemon) and not list(containers_of_steps.LOCKS.glob("sala-reproduction-*"))


def test_a_full_disk(runner: DockerRunner, daemon: Daemon, tmp_path: Path, choreo: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(folder)], check=True)
    try:
        inv("figure2", "--runner", "docker", "--results", str(folder), CHOREO=str(choreo))
        before = (folder / "figure2.json").read_bytes()
        assert document(folder, "figure2")["complete"]
        with contextlib.suppress(OSError):
            (folder / "filler").write_bytes(bytes(2**20))
        done = inv("figure2", "--runner", "docker", "--fresh", "--results", str(folder), CHOREO=str(choreo))
        said = done.stdout + done.stderr
        assert done.returncode == 2 and "No space left on device" in said and "Traceback" not in said, said
        assert (folder / "figure2.json").read_bytes() == before
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    assert not containers(daemon)


def test_no_engine_says_so(tmp_path: Path, choreo: Path) -> None:
    away = f"unix://{tmp_path}/no.sock"
    asked = inv("figure2", "--runner", "docker", DOCKER_HOST=away)
    assert asked.returncode == 2 and "no Docker engine answers" in asked.stderr and "systemctl start" in asked.stderr
    left = inv("figure2", "--results", str(tmp_path / "results"), CHOREO=str(choreo), DOCKER_HOST=away)
    assert "steps run on this machine: no Docker engine answers" in left.stderr
    assert document(tmp_path / "results", "figure2")["complete"]


# --------------------------------------------------------------------------------------------------------------
# GPUs


def test_a_gpu_is_asked_of_an_engine_that_has_none(
    runner: DockerRunner, daemon: Daemon, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert runner.run("fa", ["--gpu", "1", "--results", str(tmp_path)], limit_s=60) == 125
    said = capfd.readouterr().err
    assert "NVIDIA Container Toolkit" in said and "--runner host" in said
    assert not containers(daemon)  # one that cannot start exists, too


def test_the_gpu_that_is_chosen_is_the_one_requested(
    runner: DockerRunner, daemon: Daemon, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    daemon.stop()
    daemon.start(gpus=True)
    try:
        status = runner.run("fa", ["--gpu", "3", "--results", str(tmp_path)], limit_s=120)
        assert "NVIDIA_VISIBLE_DEVICES=3" in daemon.seen.read_text()
        assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in daemon.seen.read_text()
        assert status == 0 and "--gpu" not in document(tmp_path, "fa")["provenance"]["command"]
        # A step that uses none does not get one.
        daemon.seen.unlink()
        assert runner.run("figure2", ["--no-table", "--only", "none", "--results", str(tmp_path)], limit_s=120) == 0
        assert not daemon.seen.exists() or "VISIBLE" not in daemon.seen.read_text()
    finally:
        daemon.stop()
        daemon.start()
    assert not containers(daemon)


# --------------------------------------------------------------------------------------------------------------
# No network


@pytest.mark.skipif(not (ROOT / ".venv" / "run.sha256").exists(), reason="./ae has not been run here")
def test_the_starter_script_needs_no_network_after_the_build(tmp_path: Path) -> None:
    command = ["unshare", "-n", str(ROOT / "ae"), "figure2", "--runner", "host", "--results", str(tmp_path)]
    environment = {key: value for key, value in os.environ.items() if key != "DOCKER_HOST"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and document(tmp_path, "figure2")["complete"], done.stderr


def test_nothing_is_left_behind(daemon: Daemon) -> None:
    """After all of the above: no container; the project's folder has changed in results/ and build/ alone."""
    assert not containers(daemon)
    status = ["git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=all"]
    new = [line for line in subprocess.run(status, capture_output=True, text=True).stdout.splitlines() if "??" in line]
    assert os.environ.get("CI") != "true" or not new, new
    assert build_options() and sys.executable
