"""The host part of a stress build, on a stand-in for the CUDA runtime: which launches differ is noticed and said."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from croqtile import toolchain
from croqtile.driver import compile_file, generate
from croqtile.stress import Wrong

ROOT = Path(__file__).resolve().parents[2]
KERNEL = ROOT / "kernels" / "matmul" / "matmul_f16_dyn_sm90_warpspec_1p3c_nobarrier.co"

pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("stress")
    source = directory / "kernel.cu"
    source.write_text(generate(compile_file(KERNEL, {}), Wrong(overlap=("out_s", "rhs_s"))))
    nvcc = [str(toolchain.find().nvcc), "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-w"]
    fake = directory / "fake.o"
    made = directory / "program"
    for arguments in (
        ["-x", "c++", "-c", str(Path(__file__).with_name("fake_cudart.cc")), "-o", str(fake)],
        ["-cudart", "none", f"-I{KERNEL.parent}", str(source), str(fake), "-o", str(made)],
    ):
        done = subprocess.run([*nvcc, *arguments], capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
    return made


def run(program: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {"CHOREO_SKIP_VERIFY": "1", "CHOREO_DISABLE_TIMING": "1", "CHOREO_STRESS_SEEDS": "8", **environment}
    command = [str(program), "--m", "200", "--n", "200", "--k", "64"]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env={**os.environ, **settings}
    )


def test_equal_outputs_pass(program: Path) -> None:
    done = run(program)
    assert done.returncode == 0 and done.stdout.endswith("Test Passed\n")
    assert "stress: 8 seeds, 0 differ, plain equal" in done.stdout


def test_the_warning_of_a_wrong_build_is_printed_once(program: Path) -> None:
    warning = "WARNING: deliberately wrong build, for tests only: out_s and rhs_s lie on each other"
    assert run(program).stderr.count(warning) == 1


def test_the_seed_of_a_difference_is_named(program: Path) -> None:
    done = run(program, FAKE_BAD_SEED="5")
    assert done.returncode == 1 and "Test FAILED" in done.stdout
    assert "stress: seed 5: another output\nstress: 8 seeds, 1 differ, plain equal" in done.stdout


def test_a_first_seed(program: Path) -> None:
    done = run(program, FAKE_BAD_SEED="5", CHOREO_STRESS_FIRST_SEED="6")
    assert "stress: 8 seeds, 0 differ" in done.stdout
    done = run(program, FAKE_BAD_SEED="9", CHOREO_STRESS_FIRST_SEED="6")
    assert "stress: seed 9: another output" in done.stdout


def test_all_is_compared_with_the_expected_checksum(program: Path) -> None:
    checksum = run(program).stdout.split("checksum: ")[1].split()[0]
    assert run(program, CHOREO_STRESS_EXPECTED=checksum).returncode == 0
    done = run(program, CHOREO_STRESS_EXPECTED=checksum, FAKE_ALWAYS_BAD="1")
    assert done.returncode == 1 and "8 seeds, 8 differ, plain differs" in done.stdout


def test_a_fault_says_so(program: Path) -> None:
    done = run(program, FAKE_FAULT="1")
    assert done.returncode == 1 and "CUDA: an illegal memory access" in done.stderr


def test_a_seed_of_its_own(program: Path) -> None:
    """Without a number of seeds: every launch has the seed of the environment."""
    done = run(program, CHOREO_STRESS_SEEDS="0", CHOREO_STRESS_SEED="5", FAKE_BAD_SEED="5")
    other = run(program, CHOREO_STRESS_SEEDS="0", FAKE_BAD_SEED="5")
    assert done.returncode == other.returncode == 0
    assert done.stdout.split("checksum: ")[1].split()[0] != other.stdout.split("checksum: ")[1].split()[0]
