"""Events: what is refused, in which words, and where the caret stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.croqtile.tile import GEMM, Edits, edited, messages

Golden = Callable[[str], None]

CASES: dict[str, Edits] = {
    "never-triggered": [("wait full[stage];", "wait full[stage], done;")],
    "copy-never-triggered": [("          trigger full[stage];\n", "")],
    "copy-never-waited": [("          wait full[stage];\n", "")],
    "triggered-by-another-role": [
        ("          trigger full[stage];\n", ""),
        ("mma.commit;", "mma.commit; trigger full[stage];"),
    ],
    "scalar-indexed": [("mma.commit;", "mma.commit; trigger done[0];")],
    "array-without-index": [("trigger full[stage]", "trigger full")],
    "copy-array-without-index": [("tma.copy.async<full[stage]>", "tma.copy.async<full>")],
    "slot-out-of-range": [("trigger empty[s];", "trigger empty[4];")],
    "more-slots-than-memory": [("empty[4], done", "empty[29057], done")],
    "slot-negative": [("trigger empty[s];", "trigger empty[0 - 1];")],
    "slot-out-of-range-in-loop": [("foreach {s} in [4]", "foreach {s} in [5]")],
    "buffer-slot-out-of-range": [("=> lhs_s[stage]", "=> lhs_s[7]")],
    "slot-by-warpgroup-out-of-range": [("trigger empty[s];", "trigger empty[p + 2];")],
    "uneven-arrivals": [
        ("trigger empty[s];", "trigger empty[s]; if (p == 1) trigger done; "),
        ("shared event full[4], empty[4], done;", "shared event full[4], empty[4], done[2];"),
        ("trigger done;", "trigger done[0];"),
        ("mma.commit;", "mma.commit; trigger done[1];"),
    ],
}


@pytest.mark.parametrize("edits", CASES.values(), ids=CASES)
def test_refused(tmp_path: Path, golden: Golden, edits: Edits) -> None:
    golden(messages(tmp_path, edited(GEMM, edits)))


ACCEPTED: dict[str, Edits] = {
    "several-at-once": [
        ("trigger empty[s];", "trigger empty[s], done;"),
        ("wait empty[stage];", "wait empty[stage], done;"),
    ],
    "left-over": [("trigger empty[s];", "trigger empty[s], done;")],
}


@pytest.mark.parametrize("edits", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(tmp_path: Path, edits: Edits) -> None:
    assert messages(tmp_path, edited(GEMM, edits)) == "accepted\n"
