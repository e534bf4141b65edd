"""The CPU references, arguments and checksums of the programs, against independent computations. Runs without a GPU."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from croqtile import runtime, toolchain

KERNELS = Path(__file__).resolve().parents[2] / "kernels"

SOURCE = r"""
#include "matmul/matmul_host.h"
#include "flash_atten/attention_host.h"
#include "conv/conv_host.h"

// Attention by the definition, in double precision, without subtracting a maximum.
double attention_error(bool causal) {
  const int B = 2, SEQ = 9, H = 3, D = 8;
  auto q = choreo::make_spandata<choreo::bf16>(B, SEQ, H, D), k = choreo::make_spandata<choreo::bf16>(B, SEQ, H, D);
  auto v = choreo::make_spandata<choreo::bf16>(B, SEQ, H, D);
  q.fill_random(-3, 3), k.fill_random(-3, 3), v.fill_random(-1, 1);
  double worst = 0;
  for (int b = 0; b < B; ++b)
    for (int i = 0; i < SEQ; ++i)
      for (int h = 0; h < H; ++h) {
        const std::vector<float> row = attention_row(q, k, v, b, i, h, causal);
        for (int d = 0; d < D; ++d) {
          double numerator = 0, denominator = 0;
          for (int j = 0; j < SEQ; ++j) {
            if (causal && j > i) continue;
            double dot = 0;
            for (int e = 0; e < D; ++e) dot += double(choreo::to_f32(q[b][i][h][e])) * choreo::to_f32(k[b][j][h][e]);
            const double weight = std::exp(dot / std::sqrt(double(D)));
            numerator += weight * choreo::to_f32(v[b][j][h][d]);
            denominator += weight;
          }
          worst = std::fmax(worst, std::fabs(row[d] - numerator / denominator));
        }
      }
  return worst;
}

// Convolution by spreading every input pixel over the outputs that it contributes to.
double convolution_error(int pad) {
  const ConvShape shape{2, 7, 6, 4, 5, 3, 2, pad};
  auto input = choreo::make_spandata<choreo::f16>(shape.N, shape.H, shape.W, shape.C);
  auto filter = choreo::make_spandata<choreo::f16>(shape.K, shape.R, shape.S, shape.C);
  auto output = choreo::make_spandata<double>(shape.N, shape.P(), shape.Q(), shape.K);
  input.fill_random(-1, 1), filter.fill_random(-1, 1);
  for (int n = 0; n < shape.N; ++n)
    for (int h = 0; h < shape.H; ++h)
      for (int w = 0; w < shape.W; ++w)
        for (int k = 0; k < shape.K; ++k)
          for (int r = 0; r < shape.R; ++r)
            for (int s = 0; s < shape.S; ++s) {
              const int p = h + pad - r, q = w + pad - s;
              if (p < 0 || p >= shape.P() || q < 0 || q >= shape.Q()) continue;
              for (int c = 0; c < shape.C; ++c)
                output[n][p][q][k] += double(choreo::to_f32(input[n][h][w][c])) * choreo::to_f32(filter[k][r][s][c]);
            }
  double worst = 0;
  for (int n = 0; n < shape.N; ++n)
    for (int p = 0; p < shape.P(); ++p)
      for (int q = 0; q < shape.Q(); ++q)
        for (int k = 0; k < shape.K; ++k)
          worst = std::fmax(worst, std::fabs(output[n][p][q][k] -
                                             conv2d_element(input.data(), filter.data(), shape, n, p, q, k)));
  return worst;
}

int main(int argc, char** argv) {
  program::Arguments arguments(argc, argv);
  if (arguments.flag("--references")) {
    std::printf("%d %d %d %d\n", attention_error(true) < 1e-5, attention_error(false) < 1e-5,
                convolution_error(0) < 1e-5, convolution_error(1) < 1e-5);
  } else if (arguments.flag("--checksum")) {
    auto data = choreo::make_spandata<choreo::f16>(11);  // no whole number of 64-bit words
    data.fill_random(-1, 1);
    const std::uint64_t first = program::checksum(data);
    int changes = 0;
    for (int i = 0; i < 11; ++i) {
      const choreo::f16 old = data[i];
      data[i] = choreo::f16(choreo::to_f32(old) + 4);
      changes += program::checksum(data) != first;
      data[i] = old;
    }
    std::swap(data[0], data[4]);
    changes += program::checksum(data) != first;
    std::swap(data[0], data[4]);
    std::printf("%d %d\n", changes, program::checksum(data) == first);
  } else {
    const long long m = arguments.integer("--m", 2048, "rows");
    arguments.close();
    std::printf("%lld %d %d\n", m, arguments.verify(), arguments.timing());
  }
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("references") / "program"
    toolchain.compile_executable(toolchain.find(), runtime.prelude() + SOURCE, out, [KERNELS])
    return out


def run(program: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *arguments], capture_output=True, text=True, timeout=60, check=False, env=environment
    )


pytestmark = pytest.mark.nvcc


def test_references(program: Path) -> None:
    assert run(program, "--references").stdout == "1 1 1 1\n"


def test_checksum_sees_every_element(program: Path) -> None:
    assert run(program, "--checksum").stdout == "12 1\n"


@pytest.mark.parametrize(
    ("arguments", "environment", "printed"),
    [
        ([], {}, "2048 1 1"),
        (["--m", "64", "--unknown", "7", "stray"], {}, "64 1 1"),
        (["--m=96", "--skip-verify"], {}, "96 0 1"),
        (["--disable-timing"], {"CHOREO_SKIP_VERIFY": "1"}, "2048 0 0"),
        ([], {"CHOREO_DISABLE_TIMING": "1", "CHOREO_SKIP_VERIFY": "0"}, "2048 1 0"),
        ([], {"CHOREO_DISABLE_TIMING": ""}, "2048 1 1"),
        ([], {"CHOREO_SKIP_VERIFY": "yes"}, "2048 0 1"),
    ],
)
def test_arguments(program: Path, arguments: list[str], environment: dict[str, str], printed: str) -> None:
    assert run(program, *arguments, **environment).stdout == printed + "\n"


@pytest.mark.parametrize("value", ["0", "-5", "x", "12x", ""])
def test_bad_sizes_are_refused(program: Path, value: str) -> None:
    done = run(program, "--m", value)
    assert done.returncode == 1
    assert done.stderr == f"error: --m needs an integer of at least 1, got `{value}`\n"
    assert done.stdout == "Test FAILED\n"


def test_help_needs_no_gpu(program: Path) -> None:
    done = run(program, "--m", "64", "--help")
    assert done.returncode == 0 and done.stderr == ""
    assert re.search(r"^  --m N +rows \(2048\)$", done.stdout, re.MULTILINE)
    assert re.search(r"^  --skip-verify +no checks$", done.stdout, re.MULTILINE)


def test_ignored_words_are_named(program: Path) -> None:
    done = run(program, "--m", "64", "--mm=7", "--repeat-check", "3", "stray", "--skip-verify", "--disable-timing=1")
    assert done.returncode == 0 and done.stdout == "64 0 1\n"
    assert re.findall(r"`([^`]+)`", done.stderr) == ["--mm=7", "stray", "--disable-timing=1"]
