"""Operands released while still read: found where it is certain, and never where the slots differ."""

# ruff: noqa: E501  (program text in tables)
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.croqtile.tile import GEMM, Edits, edited, messages

Golden = Callable[[str], None]
COMMIT = "mma.commit;"
RELEASE = "          trigger empty[stage];\n"

REFUSED: dict[str, Edits] = {
    "newest-released": [(COMMIT, "mma.commit; mma.wait<1>;")],
    "not-committed": [(f"          {COMMIT}\n{RELEASE}", f"          trigger empty[stage];\n          {COMMIT}\n")],
    "before-the-wait": [(COMMIT, "mma.commit; mma.wait<1>; trigger empty[stage]; mma.wait<0>;"), (RELEASE, "")],
    "one-before-still-pending": [(COMMIT, "mma.commit; mma.wait<2>;"), (RELEASE, "          trigger empty[(k + 3) % 4];\n")],
    "one-before-still-pending-by-subtraction": [(COMMIT, "mma.commit; mma.wait<2>;"), (RELEASE, "          trigger empty[(k - 1) % 4];\n")],
    "direct-operands": [("mma.row.row acc, a, b", "mma.row.row acc, lhs_s[stage].subspan(64, 64).at(p - 1, 0), rhs_s[stage]"), (COMMIT, "mma.commit; mma.wait<1>;")],
    "stages-in-one-buffer": [
        ("lhs_s[4]", "lhs_s"), ("shared f16 [128, 64] lhs_s", "shared f16 [512, 64] lhs_s"), ("=> lhs_s[stage]", "=> lhs_s.subspan(128, 64).at(stage, 0)"),
        ("lhs_s[stage].subspan", "lhs_s.subspan(128, 64).at(stage, 0).subspan"), (COMMIT, "mma.commit; mma.wait<1>;"),
        ("rhs_s[stage];\n          mma.row", "rhs_s[0];\n          mma.row"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("edits", REFUSED.values(), ids=REFUSED)
def test_refused(tmp_path: Path, golden: Golden, edits: Edits) -> None:
    golden(messages(tmp_path, edited(GEMM, edits)))


ACCEPTED: dict[str, Edits] = {
    "commit-alone-waits": [],
    "waited": [(COMMIT, "mma.commit; mma.wait<0>;")],
    "one-before": [(COMMIT, "mma.commit; mma.wait<1>;"), (RELEASE, "          if (k > 0) trigger empty[(k + 3) % 4];\n")],
    "one-before-by-subtraction": [(COMMIT, "mma.commit; mma.wait<1>;"), (RELEASE, "          if (k > 0) trigger empty[(k - 1) % 4];\n")],
    "two-before": [(COMMIT, "mma.commit; mma.wait<2>;"), (RELEASE, "          if (k > 1) trigger empty[(k + 2) % 4];\n")],
    "other-event": [(COMMIT, "mma.commit; mma.wait<1>;"), (RELEASE, "          trigger done;\n          mma.wait<0>; trigger empty[stage];\n")],
    "running-count-is-left-to-the-analysis": [
        ("acc = mma.fill", "int n = 0; acc = mma.fill"), ("wait full[stage]", "n = n + 1; wait full[stage]"), (COMMIT, "mma.commit; mma.wait<1>;"),
        (RELEASE, "          trigger empty[(n + 2) % 4];\n"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("edits", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(tmp_path: Path, edits: Edits) -> None:
    assert messages(tmp_path, edited(GEMM, edits)) == "accepted\n"
