"""The census reads kernels' source text; with the pinned CUTLASS it must find the paper's 21 = 2 + 19."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from reproduce.cutlass import census
from reproduce.cutlass.configurations import Storage
from reproduce.cutlass.errors import CutlassError
from reproduce.cutlass.headers import PINNED_VERSION, Headers

PERSISTENT = """
  struct SharedStorage {
    struct TensorStorage : cute::aligned_struct<128, _1> { int epilogue, mainloop; } tensors;
  };
  // while (work_tile_info.is_valid()) in a comment is no loop, and neither is a union TensorStorage { there
  do { work(); } while (work_tile_info.is_valid());
  while ( work_tile_info.is_valid() ) { }
"""
ONE_TILE = "struct SharedStorage {\n  union TensorStorage {\n int mainloop, epilogue; } tensors; };"


def test_a_persistent_kernel_with_a_struct() -> None:
    kernel = census.read_kernel("sm90_x_warpspecialized.hpp", PERSISTENT)
    assert (kernel.architecture, kernel.scheduler_loops, kernel.storage) == ("sm90", 2, Storage.STRUCT)
    assert kernel.persistent


def test_a_kernel_of_one_tile_with_a_union() -> None:
    kernel = census.read_kernel("sm100_x_warpspecialized.hpp", ONE_TILE)
    assert (kernel.architecture, kernel.scheduler_loops, kernel.storage) == ("sm100", 0, Storage.UNION)
    assert not kernel.persistent


@pytest.mark.parametrize("text", ["", ONE_TILE + ONE_TILE])
def test_a_header_that_cannot_be_classified_is_an_error(text: str) -> None:
    with pytest.raises(CutlassError, match="definitions of TensorStorage, expected one"):
        census.read_kernel("sm90_x_warpspecialized.hpp", text)


def test_no_kernels_is_an_error_not_an_empty_census(tmp_path: Path) -> None:
    with pytest.raises(CutlassError, match="no complete CUTLASS"):
        census.take(Headers(tmp_path, "4.5.0", "test"))


def test_the_summary_shows_kinds_that_break_the_rule() -> None:
    kernels = (
        census.read_kernel("sm90_a_warpspecialized.hpp", ONE_TILE),
        census.read_kernel("sm90_b_warpspecialized.hpp", PERSISTENT.replace("    struct Tensor", "    union Tensor")),
        census.read_kernel("sm90_c_warpspecialized.hpp", PERSISTENT),
    )
    summary = census.Census("0", kernels).summary()
    assert summary == "3 = 1 union, non-persistent + 1 union, persistent + 1 struct, persistent"


def test_the_pinned_release_has_the_papers_census(cutlass_headers: Headers) -> None:
    found = census.take(cutlass_headers)
    assert found.version == PINNED_VERSION
    assert found.summary() == "21 = 2 union, non-persistent + 19 struct, persistent"
    assert Counter(kernel.architecture for kernel in found.kernels) == {"sm90": 8, "sm100": 10, "sm103": 2, "sm120": 1}
    unions = [kernel.file for kernel in found.kernels if kernel.storage is Storage.UNION]
    assert unions == ["sm90_gemm_tma_warpspecialized.hpp", "sm90_gemm_warpspecialized.hpp"]
