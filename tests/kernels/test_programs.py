"""The programs, built in both modes and run on a GPU: whole output, awkward sizes, the same bits in both modes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
PROGRAMS = {path.stem: path for path in sorted(KERNELS.glob("*/*.co"))}
MODES = {"base": ["--no-sala"], "sala": []}
OUT_OF_BOUND = {("fa_3s", "base")}
LIMIT_S = 120  # of one run; a hung kernel ends here

# Sizes in elements: one tile or less, K of one tile, no multiples of the tile, more K tiles than stages, 2048³.
GEMM_SIZES = [
    ("--m 1 --n 8 --k 16", "one CTA, less than a tile"),
    ("--m 64 --n 128 --k 64", "one tile"),
    ("--m 200 --n 328 --k 128", "parts of tiles"),
    ("--m 1000 --n 520 --k 1072", "parts of tiles, also along K"),
    ("--m 2048 --n 2048 --k 2048", "the paper's check"),
]
ATTENTION_SIZES = [
    ("--batch 1 --heads 1 --seq 1", "one query"),
    ("--batch 1 --heads 1 --seq 128", "one block"),
    ("--batch 2 --heads 3 --seq 300", "parts of blocks"),
    ("--batch 1 --heads 2 --seq 2048", "many blocks"),
]
CONV_SIZES = [
    ("--batch 1 --height 8 --width 8 --channels 8 --filters 8", "one CTA, less than a tile"),
    ("--batch 2 --height 17 --width 70 --channels 72 --filters 136", "parts of tiles"),
    ("--batch 1 --height 16 --width 64 --channels 64 --filters 128 --filter-size 1", "one step"),
    ("--batch 2 --height 20 --width 20 --channels 64 --filters 128 --filter-size 5 --padding 0", "no padding"),
]


def sizes_of(name: str) -> list[str]:
    family = {"matmul": GEMM_SIZES, "fa": ATTENTION_SIZES, "conv2d": CONV_SIZES}[name.split("_")[0]]
    return [size for size, _ in family]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """Executables by (program, mode), filled as they are asked for."""
    return {}


@pytest.fixture
def executable(
    name: str, mode: str, built: dict[tuple[str, str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return build(name, mode, built, tmp_path_factory)


def build(name: str, mode: str, built: dict[tuple[str, str], Path], directories: pytest.TempPathFactory) -> Path:
    if (name, mode) not in built:
        out = directories.mktemp("programs") / f"{name}.{mode}"
        command = [sys.executable, "-m", "croqtile", *MODES[mode], str(PROGRAMS[name]), "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        built[name, mode] = out
    return built[name, mode]


def run(program: Path, arguments: str) -> str:
    done = subprocess.run(
        [str(program), *arguments.split(), "--disable-timing"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("\nTest Passed\n")
    return done.stdout


BOTH = [(name, mode) for name in PROGRAMS for mode in MODES if (name, mode) not in OUT_OF_BOUND]


@pytest.mark.nvcc
@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode"), BOTH)
def test_compiles(executable: Path) -> None:
    assert executable.exists()


@pytest.mark.nvcc
@pytest.mark.gpu
@pytest.mark.parametrize("name", PROGRAMS)
def test_both_modes_give_the_same_right_output(
    name: str, built: dict[tuple[str, str], Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    for size in sizes_of(name):
        checksums = set()
        for mode in MODES:
            if (name, mode) not in OUT_OF_BOUND:
                output = run(build(name, mode, built, tmp_path_factory), size)
                assert "elements agree with the GPU reference" in output
                checksums |= set(re.findall(r"^checksum: (\w{16})$", output, re.MULTILINE))
        assert len(checksums) == 1, f"{name} {size}: the modes differ"


@pytest.mark.nvcc
@pytest.mark.gpu
@pytest.mark.parametrize(("name", "mode"), BOTH)
def test_repeated_launches_never_differ(executable: Path, name: str) -> None:
    assert "identical outputs" in run(executable, f"{sizes_of(name)[-1]} --skip-verify --repeat-check 20")


WRONG = r"""
#include "matmul/matmul_host.h"

template <typename A, typename C>
__global__ void wrong_matmul(const A* a, const A* b, C* c, int M, int N, int K, int wrong_row, int wrong_column) {
  const int i = blockIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= N) return;
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += choreo::to_f32(a[i * K + k]) * choreo::to_f32(b[j * K + k]);
  const bool wrong = i == wrong_row && j == wrong_column;
  if (wrong_row != -2 || i != 0 || j != 0) c[i * N + j] = C(wrong ? sum + 8 : sum);  // -2: (0, 0) is never written
}

int main(int argc, char** argv) {
  const int row = std::atoi(argv[1]), column = std::atoi(argv[2]);
  return matmul_program<choreo::f16>(argc, argv, [=](auto a, auto b, auto c) {
    const int M = c.shape()[0], N = c.shape()[1], K = a.shape()[1];
    wrong_matmul<<<dim3((N + 127) / 128, M), 128>>>(a.data(), b.data(), c.data(), M, N, K, row, column);
  });
}
"""


@pytest.mark.nvcc
@pytest.mark.gpu
@pytest.mark.parametrize(("wrong", "passes"), [("-1 -1", True), ("1533 701", False), ("-2 0", False)])
def test_one_wrong_element_in_four_million_fails(wrong: str, passes: bool, tmp_path: Path) -> None:
    from croqtile import runtime, toolchain

    program = tmp_path / "wrong"
    toolchain.compile_executable(toolchain.find(), runtime.prelude() + WRONG, program, [KERNELS])
    done = subprocess.run(
        [str(program), *wrong.split(), "--disable-timing"], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert (done.returncode == 0) == passes, done.stdout + done.stderr
    assert ("Test Passed" in done.stdout, "Test FAILED" in done.stdout) == (passes, not passes)
