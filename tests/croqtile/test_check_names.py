"""Names, scalars, definitions: what is refused, in which words, and where the caret stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.croqtile.tile import GEMM, SOFTMAX, Edits, edited, messages

Golden = Callable[[str], None]

IN_LOOP = "stage = k % 4;"  # of the producer

CASES: dict[str, Edits] = {
    "unknown-event": [("wait empty[stage]", "wait vacant[stage]")],
    "unknown-in-expression": [("stage = k % 4", "stage = kk % 4")],
    "unknown-in-view": [(".at(bm, k) => lhs_s", ".at(bm, q) => lhs_s")],
    "of-another-role": [("stage = k % 4;", "stage = k % 4; mine = k;"), ("sync.wg 1, 2;", "x = mine; sync.wg 1, 2;")],
    "of-an-inner-block": [("sync.wg 1, 2;", "x = stage; sync.wg 1, 2;")],
    "failed-once-reported-once": [("stage = k % 4", "stage = kk % 4 + kk")],
    "two-errors": [("wait empty[stage]", "wait vacant[stage]"), ("wait full[stage]", "wait fool[stage]")],
    "redefined-buffer": [("shared f16 [128, 128] out_s;", "shared f16 [128, 128] out_s, lhs_s;")],
    "redefined-event": [("empty[4], done;", "empty[4], full;")],
    "redefined-parameter": [("[N, K] rhs", "[N, K] lhs")],
    "redefined-int": [(IN_LOOP, "int stage = k % 4; int stage = 0;")],
    "redefined-counter": [("{bm, bn} by", "{bm, bm} by")],
    "not-a-scalar": [("stage = k % 4", "stage = lhs_s")],
    "event-as-scalar": [("stage = k % 4", "stage = done % 4")],
    "assign-counter": [(IN_LOOP, "stage = k % 4; k = 0;")],
    "assign-dimension": [(IN_LOOP, "stage = k % 4; K = 0;")],
    "assign-grid-variable": [(IN_LOOP, "stage = k % 4; bm = 0;")],
    "assign-warpgroup": [(IN_LOOP, "stage = k % 4; p = 0;")],
    "assign-thread": [(IN_LOOP, "stage = k % 4; t = 0;")],
    "assign-captured": [("  parallel {bm", "  int n = K / 2;\n  parallel {bm"), (IN_LOOP, "stage = k % 4; n = 0;")],
    "assign-float-to-int": [(IN_LOOP, "int x = 0; stage = k % 4; x = 1.5f;")],
    "unknown-type": [(IN_LOOP, "long x = 0; stage = k % 4;")],
    "unknown-element-type": [("global f16 [N, K]", "global half [N, K]")],
    "unknown-element-type-of-buffer": [("shared f16 [128, 128]", "shared fp16 [128, 128]")],
    "unknown-function": [("cdiv(K, 64)", "ceil(K, 64)")],
    "argument-count": [("cdiv(K, 64)", "cdiv(K)")],
    "division-by-zero": [("k % 4", "k % (2 - 2)")],
    "float-index": [(".at(bm, k) => lhs_s", ".at(bm, 1.5f) => lhs_s")],
    "float-modulo": [("stage = k % 4", "stage = k % 4.0f")],
    "upper-bound-of-unbounded": [(IN_LOOP, "stage = k % 4; x = #stage; y = #M;")],
    "join-of-unbounded": [(IN_LOOP, "stage = k % 4; x = bm # K;")],
    "whole-dimension-as-scalar": [("stage = k % 4", "stage = _ % 4")],
    "scalar-as-event": [("wait empty[stage]", "wait stage")],
    "read-of-device-memory-by-host": [("  parallel {bm", "  float n = lhs.at(0, 0);\n  parallel {bm")],
    "private-value": [
        ("    shared event", "    int count = 0;\n    shared event"),
        (IN_LOOP, "stage = k % 4; count = count + 1;"),
        ("    }\n  }\n}\n", "    }\n    if (count > 2) sync.shared;\n  }\n}\n"),
    ],
}


@pytest.mark.parametrize("edits", CASES.values(), ids=CASES)
def test_names(tmp_path: Path, golden: Golden, edits: Edits) -> None:
    golden(messages(tmp_path, edited(GEMM, edits)))


SOFTMAX_CASES: dict[str, Edits] = {
    "fragment-of-another-role": [("trigger full;", "trigger full; frag.copy top, top;")],
    "fragment-as-scalar": [("wait full;", "wait full; x = top + 1;")],
    "fragment-copied-by-assignment": [("wait full;", "wait full; x = top;")],
    "view-as-fragment": [("frag.reduce_max score,", "frag.reduce_max q_s,")],
    "redefined-fragment": [("wait full;", "wait full; fragment f32[64] top;")],
    "redefined-index": [("[](i, j) { return __to", "[](i, i) { return __to")],
}


@pytest.mark.parametrize("edits", SOFTMAX_CASES.values(), ids=SOFTMAX_CASES)
def test_fragment_names(tmp_path: Path, golden: Golden, edits: Edits) -> None:
    golden(messages(tmp_path, edited(SOFTMAX, edits)))


ACCEPTED: dict[str, Edits] = {
    "as-is": [],
    "shadowed-view": [("a = mma.load", "a = rhs_s[stage]; a = mma.load")],
    "running-count": [
        ("acc = mma.fill", "int count = 0; acc = mma.fill"),
        ("mma.commit;", "mma.commit; count = count + 1;"),
    ],
    "int-in-inner-scope": [(IN_LOOP, "int stage = k % 4; if (k > 2) { int stage = 0; }")],
    "named-constant": [
        ("  parallel {bm", "  int tile = 64;\n  parallel {bm"),
        ("lhs.subspan(128, 64)", "lhs.subspan(128, tile)"),
    ],
    "join": [("bm * 2 + p - 1", "bm # (p - 1)")],
}


@pytest.mark.parametrize("edits", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(tmp_path: Path, edits: Edits) -> None:
    assert messages(tmp_path, edited(GEMM, edits)) == "accepted\n"
