"""The occupancy rules, against NVIDIA's own calculator."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest

from croqtile import toolchain
from reproduce.occupancy import occupancy, shared_config

REGISTERS = (24, 40, 56, 58, 64, 72, 80, 90, 95, 96, 101, 104, 128, 168, 255)
THREADS = (32, 96, 128, 256, 288, 384, 512, 1024)
SHARED = (0, 1, 1024, 49152, 74752, 82944, 91136, 99328, 115712, 132096, 163968, 196736, 229504, 232448, 232449)
CARVEOUTS = (None, 0, 57, 100)

PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include "cuda_occupancy.h"
int main(int argc, char** argv) {
  cudaOccDeviceProp sm90;
  sm90.computeMajor = 9; sm90.computeMinor = 0; sm90.maxThreadsPerBlock = 1024; sm90.maxThreadsPerMultiprocessor = 2048;
  sm90.regsPerBlock = 65536; sm90.regsPerMultiprocessor = 65536; sm90.warpSize = 32; sm90.sharedMemPerBlock = 49152;
  sm90.sharedMemPerMultiprocessor = 233472; sm90.numSms = 132; sm90.sharedMemPerBlockOptin = 232448;
  sm90.reservedSharedMemPerBlock = 1024;
  int registers, threads, shared, carveout;
  while (std::scanf("%d %d %d %d", &registers, &threads, &shared, &carveout) == 4) {
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024; kernel.numRegs = registers; kernel.sharedSizeBytes = 0;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN; kernel.maxDynamicSharedSizeBytes = shared;
    cudaOccDeviceState state; state.carveoutConfig = carveout;
    cudaOccResult result{};
    cudaOccMaxActiveBlocksPerMultiprocessor(&result, &sm90, &kernel, &state, threads, shared);
    std::printf("%d %d %d %d\n", result.activeBlocksPerMultiprocessor, result.blockLimitRegs,
                result.blockLimitSharedMem, result.blockLimitWarps);
  }
}
"""


@pytest.mark.nvcc
def test_agrees_with_the_cuda_occupancy_calculator(tmp_path: Path) -> None:
    include = Path(toolchain.find().nvcc).resolve().parent.parent / "include"
    if not (include / "cuda_occupancy.h").exists():  # nvcc may be a script that stands outside its toolkit
        include = Path(toolchain.PINNED_ROOT) / "include"
    if not (include / "cuda_occupancy.h").exists():
        pytest.skip("this toolkit has no cuda_occupancy.h")
    (tmp_path / "occupancy.cc").write_text(PROGRAM)
    program = tmp_path / "occupancy"
    subprocess.run(["g++", "-I", str(include), "-o", str(program), str(tmp_path / "occupancy.cc")], check=True)
    cases = list(itertools.product(REGISTERS, THREADS, SHARED, CARVEOUTS))
    asked = "".join(f"{r} {t} {s} {-1 if c is None else c}\n" for r, t, s, c in cases)
    answers = subprocess.run([str(program)], input=asked, capture_output=True, text=True, check=True).stdout
    for (registers, threads, shared, carveout), line in zip(cases, answers.splitlines(), strict=True):
        kib = None if carveout is None else carveout * 228 // 100 + (carveout * 228 % 100 > 0)
        ours = occupancy(registers, threads, shared, kib)
        theirs = [int(word) for word in line.split()]
        assert [ours.ctas, ours.registers, ours.shared, ours.warps] == theirs, (registers, threads, shared, carveout)


@pytest.mark.parametrize(
    ("registers", "threads", "shared", "ctas", "bound"),
    [
        (72, 256, 115712 + 64, 1, "smem"),  # Table 3, 1P1C 4 stages: 1 → 2 CTAs per SM; 64 bytes of barriers
        (72, 256, 115712, 2, "smem"),  # without static memory it just fits twice
        (72, 256, 99328, 2, "smem"),
        (72, 256, 91136, 2, "smem"),  # 3 stages: 2 → 3
        (72, 256, 74752, 3, "smem, registers"),
        (96, 384, 99328, 1, "registers"),  # 1P2C at the paper's register count
        (58, 384, 99328, 2, "smem, registers"),  # and with fewer
        (168, 384, 163968, 1, "smem, registers"),
    ],
)
def test_rows_of_table_3(registers: int, threads: int, shared: int, ctas: int, bound: str) -> None:
    found = occupancy(registers, threads, shared)
    assert (found.ctas, found.bound) == (ctas, bound)


def test_a_carveout_limits_shared_memory_per_sm() -> None:
    assert occupancy(58, 384, 99328, carveout_kib=132).ctas == 1
    assert occupancy(58, 384, 132096, carveout_kib=132).ctas == 1
    # A wish that fits no CTA at all gives way.
    assert occupancy(58, 384, 132096, carveout_kib=64).ctas == 1


def test_configurations_of_shared_memory() -> None:
    assert [shared_config(kib) for kib in (0, 1, 99, 131, 132, 133, 228)] == [0, 8, 100, 132, 132, 164, 228]
    with pytest.raises(ValueError, match="228 KiB"):
        shared_config(229)
