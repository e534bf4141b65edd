"""Integer expressions of the kernel that could leave 32 bits are checked before the launch."""

from __future__ import annotations

from pathlib import Path

import tile
from hostprogram import build, run

from croqtile.emit.host import emit_wrapper
from tests.croqtile.emitting import plan_of

K_LOOP = "foreach {k} in [cdiv(K, 64)] {"


def checks(directory: Path, *edits: tuple[str, str]) -> list[str]:
    """What the wrapper checks: name and value."""
    text = emit_wrapper(plan_of(directory, tile.edited(tile.GEMM, edits)))
    start = "choreo::launch::fits(site_, "
    return [line.strip().removeprefix(start).removesuffix(");") for line in text.splitlines() if start in line]


def test_tile_counts_of_dimensions_that_fit_need_no_check(tmp_path: Path) -> None:
    assert checks(tmp_path) == []


def test_a_product_of_dimensions(tmp_path: Path) -> None:
    assert checks(tmp_path, (K_LOOP, "foreach {k} in [M * K / 64] {")) == ['"M * K", M * K']


def test_parts_come_before_what_contains_them(tmp_path: Path) -> None:
    found = checks(tmp_path, (K_LOOP, "foreach {k} in [(M + 1) * (M * K + N) / 64] {"))
    assert [check.split('"')[1] for check in found] == ["M + 1", "M * K", "M * K + N", "(M + 1) * (M * K + N)"]


def test_an_index_stands_for_its_last_value(tmp_path: Path) -> None:
    named = ("parallel p by 3", "first = bm * N; parallel p by 3")
    assert checks(tmp_path, named) == ['"bm * N", (choreo::launch::ceil_div(M, 128) - 1) * N']


def test_coordinates_of_tiles(tmp_path: Path) -> None:
    assert checks(tmp_path, (".at(bm, k) => lhs_s", ".at(bm * N, k) => lhs_s")) == [
        '"bm * N", (choreo::launch::ceil_div(M, 128) - 1) * N',
        '"bm * N * 128", (choreo::launch::ceil_div(M, 128) - 1) * N * 128',
    ]


def test_a_captured_integer_is_checked_as_a_whole(tmp_path: Path) -> None:
    captured = ("  parallel {bm, bn}", "  int count = M * K;\n  parallel {bm, bn}")
    assert checks(tmp_path, captured) == ['"M * K", M * K']
    small = ("  parallel {bm, bn}", "  int count = M * K / (M * K);\n  parallel {bm, bn}")
    assert checks(tmp_path, small) == [], "the wrapper computes it in 64 bits"


PROGRAM = r"""
void __choreo_device_gemm(CUtensorMap, CUtensorMap, CUtensorMap, int, int, int) {}

extern "C" cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t) {
  std::printf("launched\n");
  return stub_result("cudaLaunchKernel");
}

@WRAPPER@

int main(int, char** argv) {
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 0); };
  half* data = reinterpret_cast<half*>(0x1000);
  const size_t m = number(1), n = number(2), k = number(3);
  gemm(choreo::make_spanview<choreo::f16, 2>(data, {m, k}), choreo::make_spanview<choreo::f16, 2>(data, {n, k}),
       choreo::make_spanview<choreo::f16, 2>(data, {m, n}));
}
"""


def test_the_launch_is_refused(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, tile.edited(tile.GEMM, [(K_LOOP, "foreach {k} in [M * K / 64] {")]))
    assert [param.ctype for param in plan.params[3:]] == ["int", "int", "int"]
    program = build(PROGRAM.replace("@WRAPPER@", emit_wrapper(plan)), tmp_path)
    fits = run(program, str((1 << 16) - 8), "64", str(1 << 15))
    assert fits.returncode == 0, fits.stderr
    assert "launched" in fits.stdout
    large = run(program, str(1 << 16), "64", str(1 << 15))
    assert (large.returncode, "launched" in large.stdout) == (1, False)
    assert "gemm: `M * K` reaches 2147483648: the kernel computes it in 32 bits, where the limit is" in large.stderr
