"""The union edit: exactly one place, on a copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from reproduce.cutlass import union
from reproduce.cutlass.errors import CutlassError
from reproduce.cutlass.headers import Headers

TEXT = f"struct SharedStorage {{\n  {union.STRUCT}\n    int epilogue;\n  }} tensors;\n}};\n"


def tree(folder: Path, text: str) -> Headers:
    for name in union.EDITED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return Headers(folder, "4.5.0", "test")


def test_the_struct_becomes_a_union() -> None:
    assert union.edit(TEXT, "kernel.hpp") == TEXT.replace(union.STRUCT, union.UNION)


@pytest.mark.parametrize("hits", [0, 2])
def test_any_other_number_of_places_is_refused(hits: int) -> None:
    with pytest.raises(CutlassError, match=f"kernel.hpp: .* occurs {hits} times, expected once"):
        union.edit(TEXT * hits, "kernel.hpp")


def test_the_edit_is_made_on_a_copy(tmp_path: Path) -> None:
    headers = tree(tmp_path / "include", TEXT)
    folder = union.overlay(headers, tmp_path / "build")
    for name in union.EDITED:
        assert union.UNION in (folder / name).read_text()
        assert (headers.include / name).read_text() == TEXT


def test_a_cutlass_without_the_kernels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        CutlassError, match=r"has no cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_cooperative\.hpp"
    ):
        union.overlay(Headers(tmp_path, "2.0.0", "test"), tmp_path / "build")
