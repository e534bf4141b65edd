"""Fragments: what is refused, in which words, and where the caret stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.croqtile.tile import SOFTMAX, Edits, edited, messages

Golden = Callable[[str], None]

CASES: dict[str, Edits] = {
    "rows": [("fragment bf16[64, 64]", "fragment bf16[60, 64]")],
    "columns": [("fragment bf16[64, 64]", "fragment bf16[64, 60]")],
    "three-extents": [("fragment bf16[64, 64]", "fragment bf16[64, 64, 2]")],
    "symbolic-extent": [("fragment bf16[64, 64]", "fragment bf16[64, N]")],
    "initial-value": [("top {-inf}", "top {scale}")],
    "element-of-other-column": [("__to<bf16>(score.at(i, j))", "__to<bf16>(score.at(i, j + 1))")],
    "element-transposed": [("__to<bf16>(score.at(i, j))", "__to<bf16>(score.at(j, i))")],
    "row-by-column": [("top.at(i)", "top.at(j)")],
    "matrix-in-vector": [("frag.reduce_sum", "frag.apply top, [](i) { return score.at(i, i); }; frag.reduce_sum")],
    "element-rank": [("top.at(i)", "top.at(i, j)")],
    "index-count": [("[](i, j) { return __to", "[](i) { return __to")],
    "element-outside-apply": [("wait full;", "wait full; x = top.at(0);")],
    "apply-shape": [("fragment bf16[64, 64] prob", "fragment bf16[64, 128] prob")],
    "reduce-shape": [("fragment f32[64] top", "fragment f32[128] top")],
    "reduce-into-matrix": [("frag.reduce_max score, top", "frag.reduce_max score, prob")],
    "reduce-of-vector": [("frag.reduce_max score, top", "frag.reduce_max total, top")],
    "reduce-axis": [("score, top, 1", "score, top, 0")],
    "reduce-types": [("frag.reduce_max score, top", "frag.reduce_max prob, top")],
    "copy-shape": [("frag.reduce_sum", "frag.copy top, score; frag.reduce_sum")],
    "copy-types": [("frag.reduce_sum", "frag.copy score, prob; frag.reduce_sum")],
    "store-of-vector": [("mma.store out", "mma.store top")],
    "operand-types": [("fragment bf16[64, 64]", "fragment f16[64, 64]")],
    "operand-columns": [
        ("fragment bf16[64, 64] prob;", "fragment bf16[64, 64] prob; fragment bf16[64, 32] half;"),
        ("mma.row.col out, prob", "mma.row.col out, half"),
    ],
    "accumulator-as-operand-too-early": [("mma.row.row score, q_s", "mma.row.row score, score")],
    "unknown-conversion": [("__to<bf16>", "__to<half>")],
}


@pytest.mark.parametrize("edits", CASES.values(), ids=CASES)
def test_refused(tmp_path: Path, golden: Golden, edits: Edits) -> None:
    golden(messages(tmp_path, edited(SOFTMAX, edits)))


ACCEPTED: dict[str, Edits] = {
    "replaced": [
        ("mma.store out", "out = mma.fill.f32 0.0f; mma.row.row out, q_s, k_s.subspan(32, 64).at(0, 0); mma.store out"),
        ("mma.store out, o_s", "mma.store out, o_s.subspan(64, 32).at(0, 0)"),
    ],
    "restarted": [("mma.store out", "out = mma.fill.f32 0.0f; mma.row.col out, prob, v_s; mma.store out")],
    "applied-before-shaped": [
        ("mma.row.row score, q_s", "frag.apply score, [](i, j) { return 1.0f; }; mma.row.row score, q_s")
    ],
    "in-a-loop": [("wait full;", "foreach {n} in [2] { fragment f32[64] v; frag.copy v, top; } wait full;")],
    "declared-accumulator": [("out = mma.fill.f32 0.0f;", "fragment f32[64, 64] out {0.0f};")],
    "conditional-value": [
        ("return __to<bf16>(score.at(i, j))", "return j > i + m ? -inf : __to<bf16>(score.at(i, j))")
    ],
}


@pytest.mark.parametrize("edits", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(tmp_path: Path, edits: Edits) -> None:
    assert messages(tmp_path, edited(SOFTMAX, edits)) == "accepted\n"
