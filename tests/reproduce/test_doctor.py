from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reproduce import doctor
from reproduce.choreo import Choreo
from tests.reproduce.conftest import FakeMachine


@pytest.fixture(autouse=True)
def compiler(make_choreo: Callable[..., Choreo], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHOREO", make_choreo().command[0])


def checks(machine: FakeMachine) -> dict[str, doctor.Check]:
    return {check.what: check for check in doctor.examine(machine)}


def test_a_machine_that_has_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "profiling_is_restricted", lambda: False)
    found = checks(FakeMachine("NVIDIA H200", "13.0.88", tmp_path / "ncu"))
    assert [found[name].ok for name in ("Python", "nvcc", "GPU", "ncu", "one kernel")] == [True] * 5
    assert "98304 B" in found["one kernel"].found and "driver 580" in found["GPU"].found


def test_a_bare_machine_is_limited_not_broken() -> None:
    found = checks(FakeMachine())
    assert [found[name].ok for name in ("nvcc", "GPU", "ncu")] == [None] * 3
    assert "install nvcc 13.0 from PyPI" in found["nvcc"].advice and found["one kernel"].ok


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
    assert found["disk"].ok is False and found["one kernel"].ok is False
    assert "CHOREO=/no/such/choreo: there is no such program" in found["one kernel"].found
