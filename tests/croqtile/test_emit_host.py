"""Host wrappers: their text, and what they do, run on the CPU against a CUDA runtime that records its calls."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hostprogram import build, run

from croqtile import ir
from croqtile.emit.host import emit_wrapper, expression
from croqtile.emit.plan import EmitPlan, GridAxis, MapDim, MapPlan, Param

SPAN = ir.Span("gemm.co", 12, 1)
ONE = ir.IntLit(1)


def dim(name: str) -> ir.Symbol:
    return ir.Symbol(name, ir.SymbolKind.DIM, name)


M, N, K = dim("M"), dim("N"), dim("K")


def cdiv(symbol: ir.Symbol, divisor: int) -> ir.Expr:
    return ir.Intrinsic("cdiv", (ir.Var(symbol), ir.IntLit(divisor)))


def gemm_plan(asynchronous: bool = False, cluster: int = 1) -> EmitPlan:
    """C[M, N] = A[M, K] · B[N, K] with tiles of 64 × 128."""
    lhs, rhs, out = (
        ir.Tensor(name, ir.Elem.F16, (ir.Var(a), ir.Var(b)), SPAN)
        for name, a, b in (("lhs", M, K), ("rhs", N, K), ("output", M, N))
    )

    def tile_map(tensor: ir.Tensor, rows: int, writes: bool = False) -> MapPlan:
        outer, inner = tensor.dims
        dims = (MapDim(inner, ONE, 64), MapDim(outer, inner, rows))
        return MapPlan(f"{tensor.name}_map", tensor, dims, 128, writes)

    maps = (tile_map(lhs, 64), tile_map(rhs, 128), tile_map(out, 64, writes=True))
    grid = (
        ir.Symbol("bm", ir.SymbolKind.GRID, "bm", bound=cdiv(M, 64)),
        ir.Symbol("bn", ir.SymbolKind.GRID, "bn", bound=cdiv(N, 128)),
    )
    kernel = ir.Kernel(
        name="matmul",
        tensors=(lhs, rhs, out),
        dims=(M, K, N),
        captured=(),
        grid=grid,
        cluster=cluster,
        warpgroup=ir.Symbol("p", ir.SymbolKind.WARPGROUP, "p", bound=ir.IntLit(2)),
        warpgroups=2,
        thread=None,
        launch_bounds=None,
        asynchronous=asynchronous,
        buffers=(),
        events=(),
        body=(),
        span=SPAN,
    )
    params = [Param(m.name, "CUtensorMap", m) for m in maps] + [Param("K", "int", K)]
    return EmitPlan(
        kernel=kernel,
        offsets={},
        placement_bytes=98304,
        dynamic_bytes=99328,
        barrier_offsets={},
        static_events=(),
        maps=maps,
        params=tuple(params),
        grid=(GridAxis(grid[0], "y"), GridAxis(grid[1], "x")),
        threads=256,
    )


def heads_plan() -> EmitPlan:
    """A tensor of constant and of cut dimensions, a captured scalar, a pointer parameter."""
    tokens, seq = dim("T"), dim("SEQ")
    x = ir.Tensor("x", ir.Elem.BF16, (ir.Var(tokens), ir.IntLit(128)), SPAN)
    lengths = ir.Tensor("lengths", ir.Elem.S32, (ir.Var(seq), ir.Var(seq)), SPAN)
    dims = (
        MapDim(ir.IntLit(128), ONE, 64),
        MapDim(ir.Var(seq), ir.IntLit(128), 128),
        MapDim(ir.Binary("/", ir.Var(tokens), ir.Var(seq)), ir.Binary("*", ir.Var(seq), ir.IntLit(128)), 1),
    )
    x_map = MapPlan("x_map", x, dims, 128, writes=True, whole=((ir.Var(seq), ir.Var(tokens)),))
    scale = ir.Captured(ir.Symbol("scale", ir.SymbolKind.CAPTURED, "scale", ctype="float"), ir.FloatLit("0.125f"), SPAN)
    plan = gemm_plan(asynchronous=True)
    kernel = replace(plan.kernel, name="heads", tensors=(x, lengths), captured=(scale,))
    params = (
        Param("x_map", "CUtensorMap", x_map),
        Param("lengths", "const int*", lengths),
        Param("scale", "float", scale),
    )
    grid = (ir.Symbol("b", ir.SymbolKind.GRID, "b", bound=ir.Binary("/", ir.Var(tokens), ir.Var(seq))),)
    return replace(
        plan, kernel=replace(kernel, grid=grid), maps=(x_map,), params=params, grid=(GridAxis(grid[0], "x"),)
    )


def test_gemm_wrapper(golden: Callable[[str], None]) -> None:
    golden(emit_wrapper(gemm_plan()))


def test_heads_wrapper(golden: Callable[[str], None]) -> None:
    golden(emit_wrapper(heads_plan()))


def test_rounding_up_at_launch_is_in_64_bits() -> None:
    assert expression(cdiv(M, 64)) == "choreo::launch::ceil_div(M, 64)"
    half = ir.FloatLit("0.5f")
    assert expression(ir.Intrinsic("__exp2f", (half,))) == "std::exp2(static_cast<float>(0.5f))"
    assert expression(ir.Intrinsic("__max", (ir.Var(M), ir.IntLit(4)))) == "std::max<long long>(M, 4)"
    assert expression(ir.Intrinsic("__min", (ir.Var(M), half))) == "std::min<float>(M, 0.5f)"
    rounded = expression(ir.Intrinsic("__to", (half,), ir.Elem.BF16))
    assert rounded == "choreo::to_f32(static_cast<choreo::bf16>(static_cast<float>(0.5f)))"
    assert expression(ir.Binary("*", ir.Var(N), cdiv(M, 2))) == "N * choreo::launch::ceil_div(M, 2)"


# --------------------------------------------------------------------------------------------------------------
# Running. The kernels are ordinary functions here: only their address and their parameter types matter.

PROGRAM = r"""
void __choreo_device_matmul(CUtensorMap, CUtensorMap, CUtensorMap, int) {}
void __choreo_device_heads(CUtensorMap, const int*, float) {}

extern "C" cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                        size_t bytes, cudaStream_t stream) {
  std::printf("launch grid %u %u %u block %u bytes %zu stream %p:", grid.x, grid.y, grid.z, block.x, bytes,
              static_cast<void*>(stream));
  if (function == reinterpret_cast<const void*>(__choreo_device_matmul)) {
    for (int i = 0; i < 3; ++i) std::printf(" map %llu", *static_cast<unsigned long long*>(arguments[i]));
    std::printf(" K %d\n", *static_cast<int*>(arguments[3]));
  } else {
    std::printf(" map %llu lengths %p scale %g\n", *static_cast<unsigned long long*>(arguments[0]),
                *static_cast<void**>(arguments[1]), *static_cast<float*>(arguments[2]));
  }
  return stub_result("cudaLaunchKernel");
}

@WRAPPERS@

int main(int, char** argv) {
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 0); };
  if (std::string(argv[1]) == "matmul") {  // M K, N K, M N, address
    half* data = reinterpret_cast<half*>(number(8));
    const auto lhs = choreo::make_spanview<choreo::f16, 2>(data, {number(2), number(3)});
    const choreo::spanned_view<const choreo::f16, 2> rhs = choreo::make_spanview<f16, 2>(data, {number(4), number(5)});
    matmul(lhs, rhs, choreo::make_spanview<choreo::f16, 2>(data, {number(6), number(7)}));
  } else {  // T width, SEQ SEQ, address
    auto* data = reinterpret_cast<char*>(number(6));
    heads(choreo::make_spanview<choreo::bf16, 2>(reinterpret_cast<choreo::bf16*>(data), {number(2), number(3)}),
          choreo::make_spanview<choreo::s32, 2>(reinterpret_cast<choreo::s32*>(data), {number(4), number(5)}));
  }
  std::printf("returned\n");
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    wrappers = emit_wrapper(gemm_plan()) + emit_wrapper(heads_plan())
    return build(PROGRAM.replace("@WRAPPERS@", wrappers), tmp_path_factory.mktemp("wrapper"))


def matmul(program: Path, *sizes: int, address: int = 0x1000, **environment: str) -> tuple[int, list[str], str]:
    done = run(program, "matmul", *map(str, sizes), hex(address), **environment)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_one_launch_with_the_right_arguments(program: Path) -> None:
    assert matmul(program, 100, 264, 256, 264, 100, 256) == (
        0,
        [
            "map 1: type 6, address 0x1000, extents 264 100, pitches 528, box 64 64, swizzle 3",
            "map 2: type 6, address 0x1000, extents 264 256, pitches 528, box 64 128, swizzle 3",
            "map 3: type 6, address 0x1000, extents 256 100, pitches 512, box 64 64, swizzle 3",
            "attribute 8 = 99328",
            "launch grid 2 2 1 block 256 bytes 99328 stream (nil): map 1 map 2 map 3 K 264",
            "synchronize (nil)",
            "returned",
        ],
        "",
    )


def test_cut_dimension_captured_scalar_and_pointer(program: Path) -> None:
    done = run(program, "heads", "6000", "128", "1500", "1500", "0x40")
    assert done.stdout.splitlines() == [
        "map 1: type 9, address 0x40, extents 128 1500 4, pitches 256 384000, box 64 128 1, swizzle 3",
        "attribute 8 = 99328",
        "launch grid 4 1 1 block 256 bytes 99328 stream (nil): map 1 lengths 0x40 scale 0.125",
        "returned",  # asynchronous: nothing waits
    ]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((64, 64, 64, 128, 64, 64), "dimension K is 64 in `lhs` (dimension 1) but 128 in `rhs` (dimension 1)"),
        ((64, 64, 64, 64, 128, 64), "dimension M is 64 in `lhs` (dimension 0) but 128 in `output` (dimension 0)"),
        ((64, 64, 64, 64, 64, 72), "dimension N is 64 in `rhs` (dimension 0) but 72 in `output` (dimension 1)"),
        ((0, 64, 64, 64, 0, 64), "dimension 0 of `lhs` (M) is 0: there is nothing to compute"),
        ((64, 0, 64, 0, 64, 64), "dimension 1 of `lhs` (K) is 0: there is nothing to compute"),
        ((1 << 32, 64, 64, 64, 1 << 32, 64), "dimension 0 of `lhs` (M) is 4294967296: the limit is 2147483647"),
        ((64 * 65536, 64, 64, 64, 64 * 65536, 64), "too many tiles: `bm` counts 65536, the limit of grid.y is 65535"),
        ((64, 100, 64, 100, 64, 64), "`lhs`: the row pitch is 100 elements = 200 bytes; the copy engine needs a"),
        ((64, 64, 100, 64, 64, 100), "`output`: the row pitch is 100 elements = 200 bytes"),
    ],
)
def test_refused_shapes(program: Path, sizes: tuple[int, ...], message: str) -> None:
    status, output, error = matmul(program, *sizes)
    assert status == 1
    assert not any(line.startswith("launch") for line in output)
    assert error.startswith("gemm.co:12: error: matmul: ")
    assert message in error
    assert error.count("\n") == 1


def test_the_pitch_of_a_single_row_does_not_matter(program: Path) -> None:
    status, output, _ = matmul(program, 1, 64, 4, 64, 1, 4)
    assert status == 0
    assert output[2].startswith("map 3: type 6, address 0x1000, extents 4 1, pitches 16,")


def test_refused_pointers(program: Path) -> None:
    sizes = (64, 64, 64, 64, 64, 64)
    assert "`lhs` is a null pointer" in matmul(program, *sizes, address=0)[2]
    misaligned = "`lhs` is misaligned: its address 0x1008 is not a multiple of 16 bytes"
    assert misaligned in matmul(program, *sizes, address=0x1008)[2]


def test_refused_constant_and_cut_dimensions(program: Path) -> None:
    wide = run(program, "heads", "6000", "64", "1500", "1500", "0x40")
    assert "dimension 1 of `x` must be 128, but the argument has 64" in wide.stderr
    uneven = run(program, "heads", "6001", "128", "1500", "1500", "0x40")
    assert "`x`: T = 6001 is not a whole number of pieces of 1500, into which the program cuts it" in uneven.stderr
    twice = run(program, "heads", "6000", "128", "1500", "1501", "0x40")
    assert "dimension SEQ is 1500 in `lengths` (dimension 0) but 1501 in `lengths` (dimension 1)" in twice.stderr
    assert {wide.returncode, uneven.returncode, twice.returncode} == {1}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("cudaFuncSetAttribute", "cannot get 99328 bytes of shared memory per block: CUDA: invalid argument"),
        ("cudaGetDriverEntryPointByVersion", "CUDA: invalid argument (cudaErrorInvalidValue)"),
        ("cuTensorMapEncodeTiled", "`lhs`: cuTensorMapEncodeTiled failed with CUDA driver error 1"),
        ("cudaLaunchKernel", "the kernel was not launched (grid 1 × 1 × 1, 256 threads, 99328 bytes of dynamic"),
        ("cudaStreamSynchronize", "the kernel failed: CUDA: invalid argument"),
    ],
)
def test_cuda_errors_have_their_text(program: Path, call: str, message: str) -> None:
    status, output, error = matmul(program, 64, 64, 64, 64, 64, 64, STUB_FAIL=call)
    assert status == 1
    assert "returned" not in output
    assert error.startswith("gemm.co:12: error: matmul: ")
    assert message in error


def test_errors_of_an_asynchronous_launch_are_reported(program: Path) -> None:
    done = run(program, "heads", "6000", "128", "1500", "1500", "0x40", STUB_FAIL="cudaLaunchKernel")
    assert done.returncode == 1
    assert "heads: the kernel was not launched" in done.stderr


def test_clusters_must_divide_the_grid(tmp_path: Path) -> None:
    wrappers = emit_wrapper(gemm_plan(cluster=2)) + emit_wrapper(heads_plan())
    clustered = build(PROGRAM.replace("@WRAPPERS@", wrappers), tmp_path)
    assert matmul(clustered, 128, 64, 64, 64, 128, 64)[0] == 0
    status, _, error = matmul(clustered, 192, 64, 64, 64, 192, 64)
    assert status == 1
    assert "`bm` counts 3 tiles, which is not a multiple of the cluster's 2 CTAs" in error


def test_only_written_tensors_need_mutable_elements() -> None:
    signature = emit_wrapper(gemm_plan()).split("{")[0]
    assert re.findall(r"spanned_view<(const )?choreo::f16, 2>& (\w+)", signature) == [
        ("const ", "lhs"),
        ("const ", "rhs"),
        ("", "output"),
    ]
