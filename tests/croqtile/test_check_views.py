"""Views: what is refused, in which words, and where the caret stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.croqtile.tile import GEMM, Edits, edited, messages

Golden = Callable[[str], None]

CASES: dict[str, Edits] = {
    "subspan-rank": [("lhs.subspan(128, 64)", "lhs.subspan(64)")],
    "at-rank": [(".at(bm, k) => lhs_s", ".at(bm) => lhs_s")],
    "subspan-without-at": [("lhs.subspan(128, 64).at(bm, k)", "lhs.subspan(128, 64)")],
    "step-without-at": [("lhs.subspan(128, 64).at(bm, k)", "lhs.subspan(128, 64).step(1, 1)")],
    "at-without-subspan": [("=> lhs_s[stage]", "=> lhs_s[stage].at(0, 0)")],
    "unknown-step": [("lhs.subspan(128, 64)", "lhs.subview(128, 64)")],
    "whole-as-index": [(".at(bm, k) => lhs_s", ".at(bm, _) => lhs_s")],
    "extent-zero": [("lhs.subspan(128, 64)", "lhs.subspan(0, 64)")],
    "symbolic-extent-of-shared": [("lhs_s[stage].subspan(64, 64)", "lhs_s[stage].subspan(64, K)")],
    "symbolic-extent-in-copy": [("lhs.subspan(128, 64)", "lhs.subspan(128, K)")],
    "whole-symbolic-dimension-in-copy": [("lhs.subspan(128, 64).at(bm, k)", "lhs.subspan(128, _).at(bm, 0)")],
    "tile-beyond-buffer": [("lhs_s[stage].subspan(64, 64).at(p - 1, 0)", "lhs_s[stage].subspan(64, 64).at(p, 0)")],
    "tile-wider-than-buffer": [("lhs_s[stage].subspan(64, 64)", "lhs_s[stage].subspan(64, 128)")],
    "array-without-slot": [("=> lhs_s[stage]", "=> lhs_s")],
    "slot-of-single": [("tma.copy out_s.", "tma.copy out_s[0].")],
    "slot-of-tensor": [("lhs.subspan(128, 64)", "lhs[0].subspan(128, 64)")],
    "slot-of-view": [("=> lhs_s[stage]", "=> lhs_s[stage].subspan(128, 64).at(0, 0)[0]")],
    "sqz-arguments": [(".at(bm, k) => lhs_s", ".at(bm, k).sqz(1) => lhs_s")],
    "chunkat-of-a-negative-remainder": [("lhs.subspan(128, 64).at(bm, k)", "lhs.chunkat(bm, (k - 1) % 4)")],
    "chunkat-unbounded": [("lhs.subspan(128, 64).at(bm, k)", "lhs.chunkat(bm, K)")],
    "chunkat-unbounded-value": [("lhs.subspan(128, 64).at(bm, k)", "lhs.chunkat(bm, k + 1)")],
    "chunkat-not-dividing": [("lhs_s[stage].subspan(64, 64).at(p - 1, 0)", "lhs_s[stage].chunkat(p, _)")],
    "chunkat-symbolic-parts": [("lhs_s[stage].subspan(64, 64).at(p - 1, 0)", "lhs_s[stage].chunkat(_, k)")],
    "chunkat-rank": [("lhs.subspan(128, 64).at(bm, k)", "lhs.chunkat(bm)")],
    "chunkat-twice-along-one-dimension": [("lhs.subspan(128, 64).at(bm, k)", "lhs.chunkat(bm, k).chunkat(bm, _)")],
    "unknown-base-of-named-view": [("stage = k % 4;", "stage = k % 4; t = lsh.subspan(128, 64).at(bm, k);")],
    "chunkat-other-rank": [
        ("lhs.subspan(128, 64).at(bm, k)", "lhs.chunkat(bm, k)"),
        ("shared f16 [128, 64] lhs_s", "shared f16 [2, 64, 64] lhs_s"),
    ],
    "chunkat-both-sides": [
        ("lhs.subspan(128, 64).at(bm, k) => lhs_s[stage]", "lhs.chunkat(bm, k) => lhs_s[stage].chunkat(_, _)")
    ],
    "scalar-as-view": [("=> lhs_s[stage]", "=> stage")],
    "expression-as-view": [("=> lhs_s[stage]", "=> stage + 1")],
    "event-as-view": [("=> lhs_s[stage]", "=> done")],
    "element-of-shared": [("mma.commit;", "mma.commit; x = lhs_s[0].at(0, 0);")],
    "element-rank": [("mma.commit;", "mma.commit; x = lhs.at(0);")],
    "view-as-element": [("stage = k % 4", "stage = lhs.subspan(1, 1).at(0, 0) % 4")],
}


@pytest.mark.parametrize("edits", CASES.values(), ids=CASES)
def test_refused(tmp_path: Path, golden: Golden, edits: Edits) -> None:
    golden(messages(tmp_path, edited(GEMM, edits)))


ACCEPTED: dict[str, Edits] = {
    "chunkat-in-copy": [("lhs.subspan(128, 64).at(bm, k)", "lhs.chunkat(bm, k)")],
    "chunkat-of-a-remainder": [("lhs.subspan(128, 64).at(bm, k)", "lhs.chunkat(bm, (k + 1) % 4)")],
    "chunkat-named": [
        ("stage = k % 4;", "stage = k % 4; tile = lhs.chunkat(bm, k);"),
        ("lhs.subspan(128, 64).at(bm, k)", "tile"),
    ],
    "chunkat-of-chunkat": [
        ("stage = k % 4;", "stage = k % 4; rows = lhs.chunkat(bm, _);"),
        ("lhs.subspan(128, 64).at(bm, k)", "rows.chunkat(_, k)"),
    ],
    "chunkat-of-operand": [("lhs_s[stage].subspan(64, 64).at(p - 1, 0)", "lhs_s[stage].chunkat(p - 1, _)")],
    "whole": [
        (
            "lhs.subspan(128, 64).at(bm, k) => lhs_s[stage]",
            "lhs.subspan(128, 64).at(bm, k) => lhs_s[stage].subspan(_, _).at(0, 0)",
        )
    ],
    "step": [("lhs.subspan(128, 64).at(bm, k)", "lhs.subspan(128, 64).step(64, 64).at(bm * 2, k)")],
    "element-of-tensor": [("mma.commit;", "mma.commit; x = lhs.at(bm, k) * 2.0f;")],
    "sqz": [
        ("shared f16 [128, 64] lhs_s", "shared f16 [1, 128, 64] lhs_s"),
        ("lhs_s[stage].subspan(64, 64).at(p - 1, 0)", "lhs_s[stage].subspan(1, 64, 64).at(0, p - 1, 0).sqz()"),
    ],
}


@pytest.mark.parametrize("edits", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(tmp_path: Path, edits: Edits) -> None:
    assert messages(tmp_path, edited(GEMM, edits)) == "accepted\n"
