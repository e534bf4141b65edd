"""The host runtime header, run on the CPU: every name of the language page's section on it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostprogram import build, run

from croqtile import runtime

SOURCE = r"""
#include <cstring>
#include <set>
#include <tuple>

static int calls = 0;

template <typename T>
void print_range(const char* name, double lo, double hi, int count) {
  auto data = choreo::make_spandata<T>(count);
  data.fill_random(lo, hi);
  double least = 1e9, most = -1e9, sum = 0;
  std::set<float> values;
  for (int i = 0; i < count; ++i) {
    const double value = choreo::to_f32(data[i]);
    least = std::min(least, value), most = std::max(most, value), sum += value;
    values.insert(value);
  }
  std::printf("%s in range %d, mean near middle %d, values %zu\n", name, least >= lo && most < hi,
              std::fabs(sum / count - (lo + hi) / 2) < (hi - lo) / 10, values.size());
}

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "views") {
    int M = 3;
    long K = 5;
    auto data = choreo::make_spandata<choreo::f16>(M, K);
    data.fill(1.5f);
    data[2][4] = choreo::f16(7.0f);
    const auto& constant = data;
    auto view = data.view();
    choreo::spanned_view<choreo::f16, 2> copy = view;
    copy[0][1] = choreo::f16(-2.0f);
    half* pointer = data.data();
    auto other = choreo::make_spanview<f16, 2>(pointer, {M, K});
    choreo::spanned_view<const choreo::f16, 2> read_only = other;
    std::cout << data.bytes() << " " << data.shape()[0] << "x" << data.shape()[1] << " " << constant.shape().size()
              << " " << choreo::to_f32(constant[2][4]) << " " << choreo::to_f32(constant.view()[0][1]) << " "
              << choreo::to_f32(read_only[0][1]) << " " << choreo::to_f32(view[1][1]) << " "
              << (view[2].data() - pointer) << " " << other.bytes() << "\n";
    auto deep = choreo::make_spandata<float>(2, 3, 4, 5);
    std::cout << (&deep[1][2][3][4] - deep.data()) << " " << deep[1].shape()[2] << " " << deep[0][0][0][0]
              << "\n";
    auto types = std::make_tuple(choreo::make_spandata<choreo::bf16>(1), choreo::make_spandata<choreo::f8_e4m3>(1),
                                 choreo::make_spandata<choreo::s32>(1), choreo::make_spandata<choreo::u8>(1));
    std::get<1>(types).fill(0.5f);
    std::get<2>(types).fill(-3);
    std::cout << std::get<0>(types).bytes() << std::get<1>(types).bytes() << std::get<2>(types).bytes()
              << std::get<3>(types).bytes() << " " << choreo::to_f32(std::get<1>(types)[0]) << " "
              << std::get<2>(types)[0] << "\n";
  } else if (what == "negative extent") {
    choreo::make_spandata<float>(2, -1);
  } else if (what == "random") {
    print_range<choreo::f16>("f16", 0, 2, 20000);
    print_range<choreo::bf16>("bf16", -1, 1, 20000);
    print_range<choreo::f8_e4m3>("e4m3", -1, 1, 20000);
    print_range<float>("f32", 10, 11, 20000);
    print_range<choreo::s32>("s32", -5, 5, 20000);
    auto a = choreo::make_spandata<choreo::f16>(64), b = choreo::make_spandata<choreo::f16>(64);
    a.fill_random(0.0f, 1.0f);
    b.fill_random(0, 1);
    std::printf("two tensors differ %d\n", std::memcmp(a.data(), b.data(), a.bytes()) != 0);
    for (int i = 0; i < 4; ++i) std::printf("%.4f ", choreo::to_f32(a[i]));
    std::printf("\n");
  } else if (what == "empty range") {
    choreo::make_spandata<float>(1).fill_random(1, 1);
  } else if (what == "abend") {
    choreo::abend_true(cudaSuccess);
    choreo::abend_true(0);
    choreo::abend_true(false);
#line 100 "caller.co"
    choreo::abend_true(cudaErrorInvalidValue);
  } else if (what == "abend number") {
#line 200 "caller.co"
    choreo::abend_true(argc + 40);
  } else if (what == "assert") {
    choreo::choreo_assert(true, "not printed");
#line 300 "caller.co"
    choreo::choreo_assert(argc == 0, std::string("the message"));
  } else if (what == "timing") {
    int warmup = 3;
    std::cout << choreo::timing([] { ++calls; std::cout << "call\n"; }, choreo::TimerOption{warmup, 4}) << "\n";
    choreo::TimerOption none;
    none.warmup = 1, none.repeat = 0;
    calls = 0;
    std::cout << choreo::timing([] { ++calls; }, none) << " " << calls << "\n";
  } else if (what == "settings") {
    const std::size_t samples = 9;
    const double tolerance = 0.25;
    const choreo::TimerOption by_name{.warmup = 2, .repeat = samples}, repeat_only{.repeat = 7}, in_order{1u, samples};
    const choreo::SampledVerifierConfig all{argc, tolerance, 1}, one{samples}, named{.base_tol = tolerance};
    std::cout << by_name.warmup << " " << by_name.repeat << " " << repeat_only.warmup << " " << repeat_only.repeat
              << " " << in_order.warmup + in_order.repeat << " " << all.num_samples << " " << all.base_tol * 2 << " "
              << all.rel_tol << " " << one.num_samples << " " << one.rel_tol << " " << named.base_tol << "\n";
  } else if (what == "stride") {
    int bad = 0;
    for (std::size_t total = 1; total < 400; ++total)
      for (std::size_t dim = 1; dim <= 40; ++dim)
        for (std::size_t samples : {std::size_t(0), std::size_t(1), std::size_t(7), std::size_t(50), 2 * total}) {
          const std::size_t s = choreo::pick_coprime_stride(total, dim, samples);
          bad += s < 1 || std::gcd(s, total) != 1 || std::gcd(s, dim) != 1;
        }
    std::cout << bad << " " << choreo::pick_coprime_stride(2048ull * 2048, 2048, 4096) << "\n";
  } else if (what == "verify") {
    const int M = 40, N = 24, K = 32;
    auto a = choreo::make_spandata<choreo::f16>(M, K), b = choreo::make_spandata<choreo::f16>(N, K);
    auto c = choreo::make_spandata<choreo::f16>(M, N);
    a.fill_random(0, 2);
    b.fill_random(0, 2);
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < N; ++j) {
        float sum = 0;
        for (int k = 0; k < K; ++k) sum += choreo::to_f32(a[i][k]) * choreo::to_f32(b[j][k]);
        c[i][j] = choreo::f16(sum);
      }
    const std::string change = argc > 2 ? argv[2] : "";
    const float value = choreo::to_f32(c[17][5]);
    if (change == "inside") c[17][5] = choreo::f16(value * 1.04f);
    if (change == "outside") c[17][5] = choreo::f16(value * 1.06f + 0.2f);
    if (change == "nan") c[17][5] = choreo::f16(NAN);
    if (change == "shape") b = choreo::make_spandata<choreo::f16>(N + 1, K);
    if (change == "none") {
      choreo::verify_matmul_row_row_sampled(a, b, c, choreo::SampledVerifierConfig{0, 1.0f, 1.0f});
    } else if (change == "sampled") {
      // Of 960 elements 7 are looked at: (s · 137) mod 960, never (17, 5) = 413. The same holds on every run.
      c[17][5] = choreo::f16(NAN);
      choreo::SampledVerifierConfig config;
      config.num_samples = 7;
      choreo::verify_matmul_row_row_sampled(a.view(), b.view(), c.view(), config);
    } else {
      choreo::verify_matmul_row_row_sampled(a, b, c, {});
    }
    std::cout << "agrees\n";
  }
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(SOURCE, tmp_path_factory.mktemp("runtime"))


def test_prelude_is_one_text() -> None:
    text = runtime.prelude()
    assert '#include "' not in text
    for name in ("iostream", "cmath", "cuda_runtime.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h"):
        assert f"#include <{name}>" in text
    assert text.count("#define CHOREO_ELEMENTS_H") == 1


def test_every_header_is_installed() -> None:
    tomllib = pytest.importorskip("tomllib")
    package = runtime.DIRECTORY.parent
    project = tomllib.loads((package.parent / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["croqtile"]
    installed = {path for pattern in patterns for path in package.glob(pattern)}
    assert set(runtime.DIRECTORY.rglob("*.*h")) <= installed


def test_views(program: Path) -> None:
    done = run(program, "views")
    assert done.stdout.splitlines() == ["30 3x5 2 7 -2 -2 1.5 10 30", "119 5 0", "2141 0.5 -3"]


def test_negative_extent(program: Path) -> None:
    done = run(program, "negative extent")
    assert done.returncode == 1
    assert "a tensor's extent is negative: -1" in done.stderr


def test_random_numbers(program: Path) -> None:
    first, second = run(program, "random"), run(program, "random")
    assert first.stdout == second.stdout  # reproducible
    lines = first.stdout.splitlines()
    assert all("in range 1, mean near middle 1" in line for line in lines[:5])
    assert lines[4].endswith("values 10")  # every integer of [-5, 5)
    assert lines[5] == "two tensors differ 1"


def test_empty_random_range(program: Path) -> None:
    assert "the range [lo, hi) is empty" in run(program, "empty range").stderr


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("abend", "caller.co:100: error: CUDA: invalid argument (cudaErrorInvalidValue)"),
        ("abend number", "caller.co:200: error: error code 42"),
        ("assert", "caller.co:300: error: the message"),
    ],
)
def test_failures_name_the_caller(program: Path, what: str, message: str) -> None:
    done = run(program, what)
    assert done.returncode == 1
    assert done.stderr.strip() == message
    assert done.stdout == ""


def test_timing(program: Path) -> None:
    done = run(program, "timing")
    record, wait = "record (nil)", "wait for event"
    calls = ["call"] * 3 + [record] + ["call"] * 4 + [record, wait, "3"]
    assert done.stdout.splitlines() == [*calls, record, record, wait, "0 1"]


def test_settings_take_any_number_in_order_or_by_name(program: Path) -> None:
    assert run(program, "settings").stdout == "2 9 10 7 10 2 0.5 1 9 0.05 0.25\n"


def test_timing_reports_errors(program: Path) -> None:
    done = run(program, "timing", STUB_FAIL="cudaEventRecord")
    assert done.returncode == 1
    assert "invalid argument" in done.stderr


def test_coprime_stride(program: Path) -> None:
    bad, stride = run(program, "stride").stdout.split()
    assert bad == "0"
    assert 1000 < int(stride) < 1050


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("", None),
        ("inside", None),
        ("sampled", None),
        ("outside", "verification failed: c[17][5]"),
        ("nan", "verification failed: c[17][5] = nan"),
        ("shape", "do not agree"),
        ("none", "num_samples must be at least 1"),
    ],
)
def test_sampled_verifier(program: Path, change: str, message: str | None) -> None:
    done = run(program, "verify", change)
    if message is None:
        assert (done.returncode, done.stdout, done.stderr) == (0, "agrees\n", "")
    else:
        assert done.returncode == 1
        assert message in done.stderr
        assert done.stdout == ("Test FAILED\n" if "verification failed" in message else "")
