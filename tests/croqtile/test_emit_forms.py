"""Programs for the forms of the language: compiled without spills or stalls; on a GPU they check themselves."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from croqtile import driver, toolchain

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
FORMS = sorted((Path(__file__).parent / "forms").glob("*.co"))
PROGRAMS = [*FORMS, *sorted(KERNELS.glob("*/*.co"))]

# Registers per thread with nvcc 13.0; no more than the paper's where it gives a number, and never so many that a
# row of its occupancy table loses a CTA.
REGISTERS = {
    "matmul_f16_dyn_sm90_warpspec_1p1c_64x128_4s": 72,
    "matmul_f16_dyn_sm90_warpspec_1p1c_64x128_3s": 72,
    "matmul_f16_dyn_sm90_warpspec_1p2c": 95,
    "matmul_f16_dyn_sm90_warpspec_1p3c": 96,
    "matmul_f16_dyn_sm90_warpspec_1p3c_nobarrier": 96,
    "fa_tuned_1p2c": 168,
    "fa_tuned_1p2c_nobarrier": 168,
    "fa_3s": 168,
}


def compile_(path: Path, directory: Path, *arguments: str) -> str:
    """What nvcc says; it must succeed."""
    source = directory / f"{path.stem}.cu"
    source.write_text(driver.generate(driver.compile_file(path, {})), encoding="utf-8")
    command = [str(toolchain.find().nvcc), "-std=c++17", "-O3", "-gencode=arch=compute_90a,code=sm_90a"]
    command += [f"-I{path.parent}", *arguments, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.nvcc
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_compiles_without_spills(path: Path, tmp_path: Path) -> None:
    said = compile_(path, tmp_path, "-Xptxas", "-v", "-cubin", "-o", str(tmp_path / "kernel.cubin"))
    assert "warning" not in said
    assert not re.findall(r"\(C75\d\d\)", said), said  # matrix instructions serialised, or fences put in
    kernel = re.search(r"__choreo_device_\w+.*?Used (\d+) registers", said, re.DOTALL)
    assert kernel is not None
    spills = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", kernel.group(0))
    assert spills == [("0", "0", "0")]
    assert int(kernel.group(1)) <= REGISTERS.get(path.stem, 255)


@pytest.mark.gpu
@pytest.mark.nvcc
@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_runs(path: Path, tmp_path: Path) -> None:
    program = tmp_path / path.stem
    compile_(path, tmp_path, "-o", str(program))
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("Test Passed\n")
