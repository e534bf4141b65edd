from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reproduce import cli, doctor, engine, trial
from reproduce.choreo import Choreo
from reproduce.lock import lock_gpu
from reproduce.ncu import METRICS
from tests.reproduce.conftest import FakeMachine


@pytest.fixture(autouse=True)
def compiler(make_choreo: Callable[..., Choreo], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CHOREO", make_choreo().command[0])
    monkeypatch.setattr(trial, "ROOT", tmp_path)  # what the programs of the stand-in compiler are is nothing to keep


FAKE_NCU = """#!/bin/bash
while [ "$1" != --log-file ]; do shift; done
cat > "$2" <<'EOF'
"ID","Kernel Name",{names}
"","",""
"0","__choreo_device_f","99328","1024","72","256","2","3","4","5","14.8"
EOF
"""


def checks(machine: FakeMachine) -> dict[str, doctor.Check]:
    return {check.what: check for check in doctor.examine(machine)}


def test_a_machine_that_has_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "profiling_is_restricted", lambda: False)
    found = checks(FakeMachine("NVIDIA H200", "13.0.88", tmp_path / "ncu"))
    assert [found[name].ok for name in ("Python", "nvcc", "GPU", "driver", "ncu", "one kernel: CUDA")] == [True] * 6
    assert "98304 B" in found["one kernel: CUDA"].found and "driver 580" in found["GPU"].found


def test_one_kernel_from_end_to_end(tmp_path: Path) -> None:
    """Every stage really runs: a stand-in for ncu that writes what ncu writes, programs of the stand-in compiler."""
    ncu = tmp_path / "ncu"
    ncu.write_text(FAKE_NCU.format(names=",".join(f'"{name}"' for name in METRICS.values())))
    ncu.chmod(0o755)
    found = checks(FakeMachine("NVIDIA H200", "13.0.88", ncu))
    stages = [check for name, check in found.items() if name.startswith("one kernel")]
    assert [stage.ok for stage in stages] == [True] * 4, stages
    assert found["one kernel: program"].found.startswith("72 registers, 0 B of spills")
    assert found["one kernel: on the GPU"].found.startswith("GEMM 512³: Test Passed")
    assert found["one kernel: under ncu"].found.startswith("99328 B of dynamic shared memory, 2 CTAs/SM")


def test_a_project_that_cannot_be_written_is_one_stage_that_is_not_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*arguments: object, **options: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", "/project/build/steps")

    monkeypatch.setattr(trial.programs, "build", build)
    stage = checks(FakeMachine(None, "13.0.88"))["one kernel: program"]
    assert stage.ok is False and stage.found == "cannot write /project/build/steps: Read-only file system"
    assert "use a clone of the project that you may write to" in stage.advice


def test_a_stage_that_fails_is_not_ok_and_the_next_ones_say_why(
    make_choreo: Callable[..., Choreo], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CHOREO", make_choreo(program="echo 'Test FAILED: element 3'; exit 1").command[0])
    found = checks(FakeMachine("NVIDIA H200", "13.0.88", tmp_path / "ncu"))
    launched, profiled = found["one kernel: on the GPU"], found["one kernel: under ncu"]
    assert launched.ok is False and "Test FAILED: element 3" in launched.found and "logs: " in launched.advice
    assert profiled.ok is None and profiled.found == "not here: the stage before it did not run to its end"


def test_nothing_runs_beside_what_is_timed_on_the_gpu(tmp_path: Path) -> None:
    machine = FakeMachine("NVIDIA H200", "13.0.88", tmp_path / "ncu")
    assert machine.gpu is not None
    with lock_gpu(tmp_path / "build" / "steps", machine.gpu):
        launched = checks(machine)["one kernel: on the GPU"]
    assert launched.ok is None and launched.found.startswith("not now: GPU 0 is in use by another run")


@pytest.mark.parametrize(
    ("driver", "cuda", "ok"),
    [("580.95.05", 13000, True), ("570.10", None, False), ("570.10", 13000, True), ("580.95.05", None, True)],
)
def test_a_driver_for_cuda_13(monkeypatch: pytest.MonkeyPatch, driver: str, cuda: int | None, ok: bool) -> None:
    """With a compatibility package an older driver will do; without its library its number decides."""
    monkeypatch.setattr(doctor, "cuda_of_driver", lambda: cuda)
    machine = FakeMachine("NVIDIA H200")
    gpu = machine.gpu
    assert gpu is not None
    monkeypatch.setattr(FakeMachine, "gpu", property(lambda self: replace(gpu, driver=driver)))
    found = checks(machine)["driver"]
    assert found.ok is ok and found.found.startswith(driver)
    assert ok or ("too old for CUDA 13.0" in found.found and "580 or newer" in found.advice)


def test_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SALA_IMAGE", raising=False)
    monkeypatch.setattr(engine, "address", lambda: None)
    assert checks(FakeMachine())["engine"].found == "no Docker engine: steps run on this machine"
    monkeypatch.setattr(engine, "address", lambda: "unix:///nowhere/docker.sock")
    found = checks(FakeMachine())["engine"]
    assert found.ok is None and "/nowhere/docker.sock" in found.found
    monkeypatch.setenv("SALA_IMAGE", "sala:1 sha256:ab")
    assert checks(FakeMachine())["engine"].found == "this runs in a container of sala:1 sha256:ab"


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor"]) in (0, 1)
    out = capsys.readouterr().out
    assert "one kernel: CUDA" in out and re.search(r"\d s\.\n$", out)


def test_a_bare_machine_is_limited_not_broken() -> None:
    found = checks(FakeMachine())
    assert [found[name].ok for name in ("nvcc", "GPU", "ncu")] == [None] * 3
    assert "install nvcc 13.0 from PyPI" in found["nvcc"].advice and found["one kernel: CUDA"].ok
    assert (
        found["one kernel: program"].found == "not here: no nvcc"
        and "./ae build" in found["one kernel: program"].advice
    )
    assert found["one kernel: on the GPU"].found == found["one kernel: under ncu"].found == "not here: no GPU"


def test_another_cuda_minor_is_named() -> None:
    nvcc = checks(FakeMachine(nvcc="13.1.80"))["nvcc"]
    assert nvcc.ok is None and nvcc.found == "13.1.80 (the references are for 13.0)"


def test_profiling_for_administrators_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "profiling_is_restricted", lambda: True)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    ncu = checks(FakeMachine("NVIDIA H200", "13.0.88", tmp_path / "ncu"))["ncu"]
    assert ncu.ok is None and "NVreg_RestrictProfilingToAdminUsers=0" in ncu.advice


def test_a_full_disk_and_a_broken_compiler_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 0))  # type: ignore[attr-defined]
    monkeypatch.setenv("CHOREO", "/no/such/choreo")
    found = checks(FakeMachine())
    assert found["disk"].ok is False and found["one kernel: CUDA"].ok is False
    assert "CHOREO=/no/such/choreo: there is no such program" in found["one kernel: CUDA"].found
