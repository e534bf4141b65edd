"""Buffers that hold several stages: when they are arrays, and when they had better stay what they are."""

# ruff: noqa: E501  (program text in tables)
from __future__ import annotations

from pathlib import Path

import pytest

from croqtile import ir, rewrite
from croqtile.irprint import view
from tests.croqtile.tile import GEMM, edited, lowered

RING = ("shared f16 [128, 64] lhs_s[4];", "shared f16 [512, 64] lhs_s;")
COPY, LOAD = "lhs_s[stage];", "lhs_s[stage].subspan(64, 64).at(p - 1, 0)"


def uses(directory: Path, declaration: tuple[str, str], copy: str, load: str) -> list[str]:
    """The declaration, the target of the copy and the operand A, after lowering."""
    kernel = lowered(directory, edited(GEMM, [declaration, (f"=> {COPY}", f"=> {copy};"), (LOAD, load)]))
    buffer = kernel.buffers[0]
    found = [f"{list(buffer.shape)} × {buffer.count}"]
    for statement in rewrite.statements(kernel.body):
        if isinstance(statement, ir.CopyIn) and statement.target.root is buffer:
            found.append(view(statement.target))
        if isinstance(statement, ir.Mma):
            assert isinstance(statement.a, ir.SharedOperand)
            found.append(view(statement.a.view))
    return found


@pytest.mark.parametrize(
    ("declaration", "copy", "load", "expected"),
    [
        pytest.param(
            RING, "lhs_s.subspan(128, 64).at(stage, 0)", "lhs_s.subspan(128, 64).at(stage, 0).subspan(64, 64).at(p - 1, 0)",
            ["[128, 64] × 4", "lhs_s[stage](:, 0:64)", "lhs_s[stage_1]((p - 1) * 64:64, 0:64)"],
            id="tile-of-a-tile",
        ),
        pytest.param(
            RING, "lhs_s.subspan(128, 64).at(stage, 0)", "lhs_s.subspan(64, 64).at(stage * (#p - 1) + p - 1, 0)",
            ["[128, 64] × 4", "lhs_s[stage](:, 0:64)", "lhs_s[stage_1]((p - 1) * 64:64, 0:64)"],
            id="flat-index",
        ),
        pytest.param(
            RING, "lhs_s.subspan(128, _).at(stage, 0)", "lhs_s.subspan(64, _).at(2 * stage + p - 1, 0)",
            ["[128, 64] × 4", "lhs_s[stage](:, :)", "lhs_s[stage_1]((p - 1) * 64:64, :)"],
            id="whole-rows",
        ),
        pytest.param(
            RING, "lhs_s.subspan(128, 64).at(3 - stage, 0)", "lhs_s.subspan(64, 64).at(7 - 2 * stage + 1 - p, 0)",
            ["[128, 64] × 4", "lhs_s[3 - stage](:, 0:64)", "lhs_s[3 - stage_1]((2 - p) * 64:64, 0:64)"],
            id="backwards",
        ),
        pytest.param(
            ("shared f16 [128, 64] lhs_s[4];", "shared f16 [4, 128, 64] lhs_s;"),
            "lhs_s.subspan(1, 128, 64).at(stage, 0, 0).sqz()", "lhs_s.subspan(1, 64, 64).at(stage, p - 1, 0).sqz()",
            ["[1, 128, 64] × 4", "lhs_s[stage](~, 0:128, 0:64)", "lhs_s[stage_1](~, (p - 1) * 64:64, 0:64)"],
            id="a-dimension-of-stages",
        ),
        pytest.param(
            RING, "lhs_s.subspan(128, 64).step(128, 64).at(stage, 0)", "lhs_s.subspan(64, 64).step(128, 64).at(stage, 0)",
            ["[128, 64] × 4", "lhs_s[stage](:, 0:64)", "lhs_s[stage_1](0:64, 0:64)"],
            id="step",
        ),
    ],
)  # fmt: skip
def test_split(tmp_path: Path, declaration: tuple[str, str], copy: str, load: str, expected: list[str]) -> None:
    assert uses(tmp_path, declaration, copy, load) == expected


@pytest.mark.parametrize(
    ("copy", "load"),
    [
        pytest.param("lhs_s.subspan(128, 64).at(stage, 0)", "lhs_s.subspan(64, 64).at(stage + p - 1, 0)", id="stages-overlap"),
        pytest.param("lhs_s.subspan(128, 64).at(stage, 0)", "lhs_s.subspan(64, 64).at(2 * stage + p, 0)", id="into-the-next-stage"),
        pytest.param("lhs_s.subspan(128, 64).step(64, 64).at(stage, 0)", "lhs_s.subspan(64, 64).at(p - 1, 0)", id="half-a-stage-apart"),
        pytest.param("lhs_s.subspan(128, 64).at(0, 0)", "lhs_s.subspan(64, 64).at(p - 1, 0)", id="no-stages"),
        pytest.param("lhs_s.subspan(128, 64).at(stage, 0)", "lhs_s.subspan(64, 64).at(bm + p - 1, 0)", id="unknown-remainder"),
    ],
)  # fmt: skip
def test_not_split(tmp_path: Path, copy: str, load: str) -> None:
    assert uses(tmp_path, RING, copy, load)[0] == "[512, 64] × 1"


def test_not_split_when_used_as_a_whole(tmp_path: Path) -> None:
    edits = [
        RING,
        (f"=> {COPY}", "=> lhs_s.subspan(128, 64).at(stage, 0);"),
        (LOAD, "lhs_s.subspan(64, 64).at(2 * stage + p - 1, 0)"),
    ]
    edits += [
        ("mma.load.swiz<128> lhs_s", "mma.load lhs_s"),
        (".swiz<128> lhs.", ".swiz<128> lhs."),
        ("sync.wg", "call f(lhs_s); sync.wg"),
    ]
    assert lowered(tmp_path, edited(GEMM, edits)).buffers[0].count == 1


def test_one_buffer_and_an_array_mean_the_same(tmp_path: Path) -> None:
    array = lowered(tmp_path, GEMM)
    edits = [
        RING,
        (f"=> {COPY}", "=> lhs_s.subspan(128, _).at(stage, 0);"),
        (LOAD, "lhs_s.subspan(64, 64).at(2 * stage + p - 1, 0)"),
    ]
    single = lowered(tmp_path, edited(GEMM, edits))
    assert [(b.name, b.shape, b.count, b.swizzle) for b in array.buffers] == [
        (b.name, b.shape, b.count, b.swizzle) for b in single.buffers
    ]
