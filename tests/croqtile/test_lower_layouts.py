"""Swizzles that nobody has written, and layouts that cannot be."""

# ruff: noqa: E501  (program text in tables)
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.croqtile.tile import GEMM, SOFTMAX, Edits, edited, lowered, messages

Golden = Callable[[str], None]


def swizzles(directory: Path, program: str, edits: Edits) -> dict[str, int]:
    return {buffer.name: buffer.swizzle for buffer in lowered(directory, edited(program, edits)).buffers}


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        pytest.param([], (128, 128, 128), id="written"),
        pytest.param([(".swiz<128> lhs.", " lhs."), ("mma.load.swiz<128> lhs", "mma.load lhs")], (128, 128, 128), id="not-written"),
        pytest.param([(".swiz<128> lhs.", ".swiz<64> lhs."), ("mma.load.swiz<128> lhs", "mma.load lhs")], (64, 128, 128), id="by-copy"),
        pytest.param([(".swiz<128> lhs.", " lhs."), ("mma.load.swiz<128> lhs", "mma.load.swiz<32> lhs")], (32, 128, 128), id="by-load"),
        # Columns that are copied out separately must be whole panels.
        pytest.param(
            [("tma.copy out_s.subspan(64, 128).at(p - 1, 0) => output.subspan(64, 128).at(bm * 2 + p - 1, bn)",
              "foreach {c} in [4] tma.copy out_s.subspan(64, 32).at(p - 1, c) => output.subspan(64, 32).at(bm * 2 + p - 1, bn * 4 + c)")],
            (128, 128, 64), id="narrow-tiles-out",
        ),
        pytest.param([("shared f16 [128, 128] out_s", "shared f16 [128, 144] out_s")], (128, 128, 32), id="odd-rows"),
        pytest.param([("shared f16 [128, 128] out_s", "shared f16 [128, 136] out_s")], (128, 128, 0), id="no-width-fits"),
        pytest.param([("sync.wg", "call f(out_s); sync.wg")], (128, 128, 0), id="called"),
    ],
)  # fmt: skip
def test_swizzles(tmp_path: Path, edits: Edits, expected: tuple[int, int, int]) -> None:
    found = swizzles(tmp_path, GEMM, edits)
    assert (found["lhs_s"], found["rhs_s"], found["out_s"]) == expected


def test_alignment_follows_the_swizzle(tmp_path: Path) -> None:
    kernel = lowered(tmp_path, edited(GEMM, [("shared f16 [128, 128] out_s", "shared f16 [128, 144] out_s")]))
    assert {b.name: b.align for b in kernel.buffers} == {"lhs_s": 1024, "rhs_s": 1024, "out_s": 256}


def test_only_copied_stays_row_major(tmp_path: Path) -> None:
    edits = [
        ("shared bf16 [64, 64] q_s", "shared bf16 [64, 64] extra, q_s"),
        ("trigger full;", "tma.copy.async<full> key.subspan(64, 64).at(1, 0) => extra; trigger full;"),
        ("mma.store out", "tma.copy extra => output.subspan(64, 64).at(m, 0); mma.store out"),
    ]
    assert swizzles(tmp_path, SOFTMAX, edits)["extra"] == 0


CASES: dict[str, tuple[str, Edits]] = {
    "operand-called": (SOFTMAX, [(".swiz<128> query", " query"), ("mma.store out", "call f(q_s); mma.store out")]),
    "narrow-copy-into-swizzle-of-load": (
        GEMM,
        [(".swiz<128> lhs.subspan(128, 64).at(bm, k) => lhs_s[stage]", " lhs.subspan(128, 32).at(bm, k) => lhs_s[stage].subspan(128, 32).at(0, 0)")],
    ),
    "rows-misaligned": (
        GEMM,
        [("lhs_s[stage].subspan(64, 64).at(p - 1, 0)", "lhs_s[stage].subspan(64, 64).step(4, 64).at(p - 1, 0)")],
    ),
    "columns-misaligned": (
        GEMM,
        [
            ("lhs_s[stage].subspan(64, 64).at(p - 1, 0)", "lhs_s[stage].subspan(64, 16).step(64, 8).at(p - 1, 1)"),
            ("rhs_s[stage];\n          mma", "rhs_s[stage].subspan(128, 16).at(0, 0);\n          mma"),
        ],
    ),
    "rows-too-narrow": (
        GEMM,
        [
            ("shared f16 [128, 64] rhs_s", "shared f16 [128, 72] rhs_s"),
            (".swiz<128> rhs.subspan(128, 64).at(bn, k) => rhs_s[stage]", " rhs.subspan(128, 64).at(bn, k) => rhs_s[stage].subspan(128, 64).at(0, 0)"),
            ("mma.load.swiz<128> rhs_s[stage]", "mma.load rhs_s[stage].subspan(128, 64).at(0, 0)"),
        ],
    ),
    "n-inside-a-panel": (SOFTMAX, [("mma.row.col out, prob, v_s", "mma.row.col out, prob, v_s.subspan(64, 32).at(0, 1)"), ("mma.store out, o_s", "mma.store out, o_s.subspan(64, 32).at(0, 0)")]),
}  # fmt: skip


@pytest.mark.parametrize(("program", "edits"), CASES.values(), ids=CASES)
def test_refused(tmp_path: Path, golden: Golden, program: str, edits: Edits) -> None:
    golden(messages(tmp_path, edited(program, edits)))
