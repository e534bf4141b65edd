"""Roles and barriers: what is refused, in which words, and where the caret stands."""

# ruff: noqa: E501  (program text in tables)
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.croqtile.tile import GEMM, Edits, edited, messages

Golden = Callable[[str], None]

CASES: dict[str, Edits] = {
    "empty": [("(p > 0)", "(p > 5)")],
    "overlap": [("(p > 0)", "(p >= 0)")],
    "overlap-of-warpgroups": [("(p == 0 && t == 0)", "(p == 1)")],
    "some-threads": [("(p == 0 && t == 0)", "(p == 0 && t < 32)")],
    "uneven-threads": [("(p == 0 && t == 0)", "(p == 0 && t == 0 || p == 1 && t == 1)"), ("(p > 0)", "(p == 2)")],
    "other-variable": [("(p == 0 && t == 0)", "(p == 0 && bm == 0)")],
    "unknown-variable": [("(p == 0 && t == 0)", "(p == 0 && x == 0)")],
    "barrier-of-nobody": [("sync.wg 1, 2;", "sync.wg 1, 2, 3;")],
    "barrier-not-a-member": [("sync.wg 1, 2;", "sync.wg 1;")],
    "barrier-member-missing": [("sync.wg 1, 2;", "sync.wg 0, 1, 2;")],
    "barrier-under-condition": [("sync.wg 1, 2;", "if (p == 1) sync.wg 1, 2;")],
    "barrier-in-thread-role": [("trigger full", "sync.wg 0; trigger full")],
    "barrier-member-not-constant": [("sync.wg 1, 2;", "sync.wg p, 2;")],
    "cta-barrier-missing": [("sync.wg 1, 2;", "sync.shared;")],
    "cta-barrier-in-thread-role": [("trigger full", "sync.shared; trigger full")],
    "mma-in-thread-role": [("trigger full", "mma.commit; trigger full")],
    "fill-in-thread-role": [("trigger full", "acc = mma.fill.f16 0.0f; trigger full")],
    "fragment-in-thread-role": [("trigger full", "fragment f32[64] v; trigger full")],
    "store-in-thread-role": [("wait empty[stage]", "mma.store acc, out_s; wait empty[stage]")],
    "wait-under-thread-condition": [("wait full[stage];", "if (t == 0) wait full[stage];")],
    "trigger-under-thread-condition": [("trigger empty[stage];", "if (t == 0) trigger empty[stage];")],
    "mma-under-thread-loop": [("mma.row.row", "foreach {u} in [t] mma.row.row")],
    "copy-under-thread-value": [("tma.copy out_s", "first = t == 0; if (first) tma.copy out_s")],
    "inthreads-empty": [("wait full[stage];", "wait full[stage]; inthreads (p == 0) x = 1;")],
    "inthreads-of-threads": [("wait full[stage];", "wait full[stage]; inthreads (t == 0) trigger done;")],
    "slot-of-the-thread": [("wait full[stage];", "wait full[t % 4];")],
    "tile-of-the-thread": [("rhs_s[stage];\n          mma", "rhs_s[(stage + t) % 4];\n          mma")],
    "condition-that-parts-the-threads-later": [
        ("acc = mma.fill", "int mine = 0; acc = mma.fill"),
        ("wait full[stage];", "if (mine == 0) wait full[stage]; if (t == 0) { mine = 1; }"),
    ],
    "loop-that-parts-the-threads-later": [
        ("acc = mma.fill", "int mine = 1; int next = 1; acc = mma.fill"),
        ("trigger empty[stage];", "foreach {i} in [mine] trigger empty[stage]; mine = next; next = t;"),
    ],
    "call-by-some-threads": [("wait full[stage];", "wait full[stage]; if (t == 0) call f(out_s);")],
    "role-in-role": [("wait full[stage];", "wait full[stage]; inthreads.async (p == 1) x = 1;")],
}


@pytest.mark.parametrize("edits", CASES.values(), ids=CASES)
def test_refused(tmp_path: Path, golden: Golden, edits: Edits) -> None:
    golden(messages(tmp_path, edited(GEMM, edits)))


ACCEPTED: dict[str, Edits] = {
    "both-reach-in-two-roles": [("(p > 0)", "(p > 0)")],
    "inthreads": [("mma.commit;", "mma.commit; inthreads (p == 1) x = k;")],
    "thread-condition-without-effect": [("mma.commit;", "mma.commit; if (t == 0) x = k;")],
    "condition-with-or": [("(p > 0)", "(p == 1 || p == 2)")],
}


@pytest.mark.parametrize("edits", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(tmp_path: Path, edits: Edits) -> None:
    assert messages(tmp_path, edited(GEMM, edits)) == "accepted\n"


TWO_ROLES = [
    (
        "inthreads.async (p > 0) {",
        "inthreads.async (p == 2) { foreach {s} in [4] trigger empty[s]; sync.wg 1, 2; }\n      inthreads.async (p == 1) {",
    ),
]


def test_barrier_across_roles(tmp_path: Path) -> None:
    assert messages(tmp_path, edited(GEMM, TWO_ROLES)) == "accepted\n"


def test_barrier_across_roles_missed_by_one(tmp_path: Path, golden: Golden) -> None:
    golden(messages(tmp_path, edited(GEMM, [*TWO_ROLES, ("sync.wg 1, 2; }", "}")])))
