"""Nsight Compute's CSV, and what it says when it may not profile."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from reproduce import ncu
from reproduce.choreo import Choreo
from reproduce.programs import Program
from reproduce.step import Context, NoRunError, NotMeasuredError
from tests.reproduce.conftest import FakeMachine

VALUES = {
    "dynamic": "115,712",
    "static": "64",
    "registers": "72",
    "threads": "256",
    "limit_shared": "1",
    "limit_registers": "3",
    "limit_warps": "8",
    "limit_blocks": "32",
    "active": "7.61",
}


def output(values: dict[str, str] | None = None) -> str:
    values = VALUES if values is None else values
    names = [metric for name, metric in ncu.METRICS.items() if name in values]
    header = ["ID", "Process Name", "Kernel Name", "Block Size", *names]
    units = ["", "", "", "", *("byte/block" if "shared" in name else "" for name in names)]
    row = ["0", "prog, with comma", "__choreo_device_matmul(CUtensorMap, int)", "(256, 1, 1)", *values.values()]
    lines = [",".join(f'"{field}"' for field in fields) for fields in (header, units, row)]
    return "\n".join(["==PROF== Connected to process 7", "Test Passed", *lines]) + "\n"


def test_the_csv_is_read_by_names_not_by_columns() -> None:
    found = ncu.read(output())
    assert (found.dynamic, found.static, found.registers, found.threads) == (115712, 64, 72, 256)
    assert (found.ctas, found.active) == (1, 7.61)


def test_what_is_missing_is_said() -> None:
    with pytest.raises(NoRunError, match="no launch of __choreo_device_"):
        ncu.read("==WARNING== No kernels were profiled.\n")
    with pytest.raises(NoRunError, match="no number for sm__warps_active"):
        ncu.read(output({name: value for name, value in VALUES.items() if name != "active"}))
    with pytest.raises(NoRunError, match="no number for launch__registers_per_thread"):
        ncu.read(output({**VALUES, "registers": "n/a"}))


@pytest.fixture
def profile(tmp_path: Path, make_context: Callable[..., Context]) -> Callable[[str], ncu.Profile]:
    """Runs ``ncu.profile`` with a stand-in for ncu made of the given bash lines."""

    def run(lines: str) -> ncu.Profile:
        fake = tmp_path / "ncu"
        fake.write_text(f"#!/bin/bash\n{lines}\n")
        fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
        context = make_context("table3", Choreo(("choreo",), own=False), FakeMachine("NVIDIA H200", "13.0.88", fake))
        program = Program("k", True, tmp_path / "k.exe", 98304, 72, 0, 64, 99328, 256, 1.0)
        return ncu.profile(context, program, ["--m", "2048"], key="k", CHOREO_CARVEOUT_KIB="132")

    return run


def test_how_ncu_is_called(profile: Callable[[str], ncu.Profile], tmp_path: Path) -> None:
    (tmp_path / "answer").write_text(output())
    script = f'echo "$CHOREO_CARVEOUT_KIB $CHOREO_SKIP_VERIFY $@" > {tmp_path}/call; cat {tmp_path}/answer'
    assert profile(script).dynamic == 115712
    call = (tmp_path / "call").read_text()
    assert call.startswith("132 1 --csv --page raw --print-units base --clock-control none")
    assert "regex:__choreo_device_ --launch-count 1" in call and call.endswith("k.exe --m 2048\n")


def test_no_permission_says_what_to_do(profile: Callable[[str], ncu.Profile]) -> None:
    with pytest.raises(NotMeasuredError, match="run as root, or set NVreg_RestrictProfilingToAdminUsers=0"):
        profile("echo '==ERROR== ERR_NVGPUCTRPERM - no permission to access counters'; exit 1")


def test_other_errors_of_ncu(profile: Callable[[str], ncu.Profile]) -> None:
    with pytest.raises(NoRunError, match="ncu: Failed to connect"):
        profile("echo '==ERROR== Failed to connect'; exit 9")
