"""Copies and swizzles: what is refused, in which words, and where the caret stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.croqtile.tile import GEMM, Edits, edited, messages

Golden = Callable[[str], None]

CASES: dict[str, Edits] = {
    "shapes": [("lhs.subspan(128, 64)", "lhs.subspan(64, 64)")],
    "shapes-out": [("output.subspan(64, 128)", "output.subspan(128, 64)")],
    "element-types": [("global f16 [M, K] lhs", "global bf16 [M, K] lhs")],
    "inwards-without-event": [("tma.copy.async<full[stage]>.swiz<128> lhs", "tma.copy lhs")],
    "outwards-with-event": [("tma.copy out_s", "tma.copy.async<done> out_s")],
    "shared-to-shared": [("=> output.subspan(64, 128).at(bm * 2 + p - 1, bn)", "=> lhs_s[0]")],
    "swizzle-value": [(".swiz<128> lhs", ".swiz<256> lhs")],
    "swizzle-not-constant": [(".swiz<128> lhs", ".swiz<K> lhs")],
    "swizzle-too-wide-for-rows": [
        ("lhs.subspan(128, 64).at(bm, k)", "lhs.subspan(128, 32).at(bm, k)"),
        ("shared f16 [128, 64] lhs_s", "shared f16 [128, 32] lhs_s"),
    ],
    "swizzle-too-wide-for-tile": [
        (
            "lhs.subspan(128, 64).at(bm, k) => lhs_s[stage]",
            "lhs.subspan(128, 32).at(bm, k) => lhs_s[stage].subspan(128, 32).at(0, 0)",
        )
    ],
    "swizzle-disagrees": [("mma.load.swiz<128> lhs_s", "mma.load.swiz<64> lhs_s")],
    "swizzle-disagrees-between-copies": [
        (
            "trigger full[stage];",
            "tma.copy.async<full[stage]>.swiz<32> lhs.subspan(128, 64).at(bm, k) => lhs_s[stage]; trigger full[stage];",
        )
    ],
    "row-of-8-bytes": [
        (
            "lhs.subspan(128, 64).at(bm, k) => lhs_s[stage]",
            "lhs.subspan(128, 4).at(bm, k) => lhs_s[stage].subspan(128, 4).at(0, 0)",
        )
    ],
    "too-many-rows": [
        ("lhs.subspan(128, 64).at(bm, k) => lhs_s[stage]", "lhs.subspan(521, 64).at(bm, k) => lhs_s[stage]"),
        ("shared f16 [128, 64] lhs_s", "shared f16 [521, 64] lhs_s"),
    ],
    "multicast-outwards": [("tma.copy out_s", "tma.copy.multicast out_s")],
}


@pytest.mark.parametrize("edits", CASES.values(), ids=CASES)
def test_refused(tmp_path: Path, golden: Golden, edits: Edits) -> None:
    golden(messages(tmp_path, edited(GEMM, edits)))


ACCEPTED: dict[str, Edits] = {
    "without-swizzle": [(".swiz<128> lhs", " lhs"), ("mma.load.swiz<128> lhs_s", "mma.load lhs_s")],
    "swizzle-of-load-only": [(".swiz<128> lhs", " lhs")],
    "swizzle-of-copy-only": [("mma.load.swiz<128> lhs_s", "mma.load lhs_s")],
    "narrower": [(".swiz<128> lhs", ".swiz<64> lhs"), ("mma.load.swiz<128> lhs_s", "mma.load.swiz<64> lhs_s")],
    "rows-of-two-boxes": [
        ("lhs.subspan(128, 64).at(bm, k) => lhs_s[stage]", "lhs.subspan(264, 64).at(bm, k) => lhs_s[stage]"),
        ("shared f16 [128, 64] lhs_s", "shared f16 [264, 64] lhs_s"),
    ],
    "ones-do-not-count": [
        ("shared f16 [128, 64] rhs_s", "shared f16 [1, 128, 64] rhs_s"),
        ("swiz<128> rhs_s[stage]", "swiz<128> rhs_s[stage].sqz()"),
    ],
}


@pytest.mark.parametrize("edits", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(tmp_path: Path, edits: Edits) -> None:
    assert messages(tmp_path, edited(GEMM, edits)) == "accepted\n"
