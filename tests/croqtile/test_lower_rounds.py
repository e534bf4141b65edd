"""Stages that count round, in the ways in which people write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from croqtile import ir, rewrite, walk
from croqtile.analyse import analyse
from tests.croqtile.tile import GEMM, edited, lowered


def program(start: str, step: str) -> str:
    """The GEMM with stages that are counted instead of computed."""
    text = GEMM.replace("foreach {k}", f"int stage = {start}; foreach {{k}}").replace("stage = k % 4;", "")
    edits = [
        ("trigger full[stage];", f"trigger full[stage]; {step}"),
        ("trigger empty[stage];", f"trigger empty[stage]; {step}"),
    ]
    return edited(text, edits)


ROUNDS = {
    "remainder": "stage = (stage + 1) % 4;",
    "if": "stage = stage + 1; if (stage == 4) stage = 0;",
    "if-at-least": "stage = stage + 1; if (stage >= 4) { stage = 0; }",
    "remainder-later": "stage = stage + 1; stage = stage % 4;",
    "if-else": "if (stage == 3) stage = 0; else stage = stage + 1;",
    "if-less-else": "if (stage < 3) { stage = stage + 1; } else { stage = 0; }",
    "select": "stage = stage + 1 == 4 ? 0 : stage + 1;",
    "select-less": "stage = stage < 3 ? stage + 1 : 0;",
    "downwards": "stage = stage == 0 ? 3 : stage - 1;",
}


@pytest.mark.parametrize("step", ROUNDS.values(), ids=ROUNDS)
def test_rounds_are_followed(tmp_path: Path, step: str) -> None:
    kernel = lowered(tmp_path, program("0", step))
    updates = [walk.update_of(s) for s in rewrite.statements(kernel.body) if isinstance(s, ir.Assign)]
    by = 3 if "- 1;" in step else 1
    assert updates == [walk.Update(by, 4)] * 2
    analysis = analyse(kernel, True)
    assert not analysis.diagnostics
    assert analysis.bytes == 131072  # out_s lies over the stages


OTHERS = {
    "shorter": "stage = stage + 1; if (stage == 3) stage = 0;",
    "no-step": "if (stage == 3) stage = 0;",
    "other-condition": "stage = stage + 1; if (k == 4) stage = 0;",
    "not-to-zero": "stage = stage + 1; if (stage == 4) stage = 1;",
}


@pytest.mark.parametrize("step", OTHERS.values(), ids=OTHERS)
def test_other_counts_are_not_taken_for_rounds_of_four(tmp_path: Path, step: str) -> None:
    kernel = lowered(tmp_path, program("0", step))
    updates = [walk.update_of(s) for s in rewrite.statements(kernel.body) if isinstance(s, ir.Assign)]
    assert walk.Update(1, 4) not in updates


def test_a_round_that_starts_beyond_its_end_is_not_followed(tmp_path: Path) -> None:
    """From slot 4 of 5 in steps round 0 … 3: the stages' count says nothing of the first iteration."""
    five = program("4", ROUNDS["if"]).replace("_s[4];", "_s[5];").replace("full[4], empty[4]", "full[5], empty[5]")
    assert analyse(lowered(tmp_path, five), True).bytes == 5 * 32768 + 32768
