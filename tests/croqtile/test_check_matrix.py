"""Matrix instructions: what is refused, in which words, and where the caret stands."""

# ruff: noqa: E501  (program text in tables)
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.croqtile.tile import GEMM, Edits, edited, messages

Golden = Callable[[str], None]

CASES: dict[str, Edits] = {
    "k-differs": [("rhs_s[stage];\n          mma", "rhs_s[stage].subspan(128, 32).at(0, 0);\n          mma")],
    "m-not-divisible": [("lhs_s[stage].subspan(64, 64).at(p - 1, 0)", "lhs_s[stage].subspan(32, 64).at(p - 1, 0)")],
    "n-not-divisible": [("rhs_s[stage];\n          mma", "rhs_s[stage].subspan(100, 64).at(0, 0);\n          mma")],
    "n-too-large": [
        ("shared f16 [128, 64] rhs_s", "shared f16 [264, 64] rhs_s"),
        (
            "rhs.subspan(128, 64).at(bn, k) => rhs_s[stage]",
            "rhs.subspan(128, 64).at(bn, k) => rhs_s[stage].subspan(128, 64).at(0, 0)",
        ),
    ],
    "k-not-divisible": [
        ("subspan(64, 64).at(p - 1, 0);\n          b", "subspan(64, 24).at(p - 1, 0);\n          b"),
        ("rhs_s[stage];\n          mma", "rhs_s[stage].subspan(128, 24).at(0, 0);\n          mma"),
    ],
    "accumulator-shape": [
        ("mma.commit;", "mma.row.row acc, a, c; mma.commit;"),
        ("b = mma", "c = mma.load rhs_s[stage].subspan(64, 64).at(0, 0); b = mma"),
    ],
    "store-shape": [("mma.store acc, out_s.subspan(64, 128)", "mma.store acc, out_s.subspan(64, 64)")],
    "store-to-tensor": [
        ("mma.store acc, out_s.subspan(64, 128).at(p - 1, 0)", "mma.store acc, output.subspan(64, 128).at(0, 0)")
    ],
    "accumulator-type": [("mma.fill.f16", "mma.fill.bf16")],
    "operand-types": [
        ("global f16 [N, K] rhs", "global bf16 [N, K] rhs"),
        ("shared f16 [128, 64] rhs_s", "shared bf16 [128, 64] rhs_s"),
    ],
    "bf16-needs-f32": [
        ("global f16 [M, K] lhs, global f16 [N, K] rhs", "global bf16 [M, K] lhs, global bf16 [N, K] rhs"),
        ("shared f16 [128, 64] lhs_s", "shared bf16 [128, 64] lhs_s"),
        ("shared f16 [128, 64] rhs_s", "shared bf16 [128, 64] rhs_s"),
    ],
    "f32-operands": [
        ("global f16 [M, K] lhs, global f16 [N, K] rhs", "global f32 [M, K] lhs, global f32 [N, K] rhs"),
        ("shared f16 [128, 64] lhs_s", "shared f32 [128, 64] lhs_s"),
        ("shared f16 [128, 64] rhs_s", "shared f32 [128, 64] rhs_s"),
        ("mma.fill.f16", "mma.fill.f32"),
    ],
    "e4m3-by-columns": [
        ("global f16 [M, K] lhs, global f16 [N, K] rhs", "global f8_e4m3 [M, K] lhs, global f8_e4m3 [K, N] rhs"),
        ("shared f16 [128, 64] lhs_s", "shared f8_e4m3 [128, 128] lhs_s"),
        ("shared f16 [128, 64] rhs_s", "shared f8_e4m3 [128, 128] rhs_s"),
        ("lhs.subspan(128, 64)", "lhs.subspan(128, 128)"),
        ("rhs.subspan(128, 64)", "rhs.subspan(128, 128)"),
        ("lhs_s[stage].subspan(64, 64)", "lhs_s[stage].subspan(64, 128)"),
        ("mma.row.row", "mma.row.col"),
    ],
    "load-from-tensor": [("mma.load.swiz<128> rhs_s[stage]", "mma.load rhs.subspan(128, 64).at(0, 0)")],
    "operand-from-tensor": [("mma.row.row acc, a, b", "mma.row.row acc, a, rhs.subspan(128, 64).at(0, 0)")],
    "operand-is-fragment": [("mma.row.row acc, a, b", "mma.row.row acc, a, acc")],
    "accumulator-is-view": [("mma.row.row acc, a, b", "mma.row.row a, a, b")],
    "accumulator-of-no-instruction": [("acc = mma.fill", "idle = mma.fill.f32 0.0f; acc = mma.fill")],
    "fill-value": [("mma.fill.f16 0.0f", "mma.fill.f16 K")],
    "not-committed": [("          mma.commit;\n", "")],
    "wait-negative": [("mma.commit;", "mma.commit; mma.wait<-1>;")],
    "wait-not-constant": [("mma.commit;", "mma.commit; mma.wait<K>;")],
    "three-dimensions": [("shared f16 [128, 64] rhs_s", "shared f16 [1, 128, 64] rhs_s")],
    "row-dimension-not-last": [
        ("shared f16 [128, 64] rhs_s", "shared f16 [128, 2, 64] rhs_s"),
        (
            "rhs.subspan(128, 64).at(bn, k) => rhs_s[stage]",
            "rhs.subspan(128, 64).at(bn, k) => rhs_s[stage].subspan(128, 1, 64).at(0, 0, 0).sqz()",
        ),
        ("swiz<128> rhs_s[stage]", "swiz<128> rhs_s[stage].subspan(128, 1, 64).at(0, 0, 0).sqz()"),
    ],
}


@pytest.mark.parametrize("edits", CASES.values(), ids=CASES)
def test_refused(tmp_path: Path, golden: Golden, edits: Edits) -> None:
    golden(messages(tmp_path, edited(GEMM, edits)))


ACCEPTED: dict[str, Edits] = {
    "direct-operands": [
        ("mma.row.row acc, a, b", "mma.row.row acc, lhs_s[stage].subspan(64, 64).at(p - 1, 0), rhs_s[stage]"),
        ("          mma.commit;\n", ""),
    ],
    "by-columns": [
        ("global f16 [N, K] rhs", "global f16 [K, N] rhs"),
        ("shared f16 [128, 64] rhs_s", "shared f16 [64, 128] rhs_s"),
        ("rhs.subspan(128, 64).at(bn, k)", "rhs.subspan(64, 128).at(k, bn)"),
        ("mma.row.row", "mma.row.col"),
    ],
    "f32-accumulator": [("mma.fill.f16", "mma.fill.f32")],
    "k-in-steps": [
        (
            "mma.row.row acc, a, b;",
            "foreach {kk} in [4] { x = mma.load lhs_s[stage].subspan(64, 64).at(p - 1, 0).chunkat(_, kk); y = mma.load rhs_s[stage].chunkat(_, kk); mma.row.row acc, x, y; }",
        )
    ],
}


@pytest.mark.parametrize("edits", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(tmp_path: Path, edits: Edits) -> None:
    assert messages(tmp_path, edited(GEMM, edits)) == "accepted\n"
