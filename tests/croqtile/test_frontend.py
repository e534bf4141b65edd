"""The front end as one call."""

from __future__ import annotations

from pathlib import Path

import pytest

from croqtile.diagnostics import CompileError
from croqtile.frontend import load
from tests.croqtile.tile import GEMM, SOFTMAX, edited, write


def test_kernels_in_order(tmp_path: Path) -> None:
    unit = load(write(tmp_path, GEMM + SOFTMAX))
    assert [kernel.name for kernel in unit.kernels] == ["gemm", "softmax"]
    assert [function.start for function in unit.functions] == [0, len(GEMM)]


def test_defines_reach_the_kernel(tmp_path: Path) -> None:
    text = edited(GEMM, [("lhs_s[4]", "lhs_s[DEPTH]"), ("shared event full[4]", "shared event full[4]")])
    (kernel,) = load(write(tmp_path, text), ["DEPTH=5"]).kernels
    assert kernel.buffers[0].count == 5


def test_the_errors_of_all_functions_are_collected(tmp_path: Path) -> None:
    text = edited(GEMM, [("k % 4", "kk % 4")]) + edited(SOFTMAX, [("wait full;", "wait ful;")])
    with pytest.raises(CompileError) as error:
        load(write(tmp_path, text))
    assert [type(d).__name__ for d in error.value.diagnostics] == ["UnknownName", "UnknownName"]
    assert "wait ful;" in error.value.rendered


def test_a_file_without_functions(tmp_path: Path) -> None:
    assert load(write(tmp_path, "int main() {}\n")).kernels == ()
