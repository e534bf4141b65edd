"""Edits of a text by line."""

from __future__ import annotations

import pytest

from triton_overlap.edits import Edits

LINES = ["a {", "  b", "  c", "}"]


def test_edits_do_not_move_each_other() -> None:
    edits = Edits(LINES)
    edits.insert_before(1, "x", "y")
    edits.insert_after(1, "z")
    edits.drop(2)
    edits.replace(1, "  B")
    assert edits.text() == "a {\n  x\n  y\n  B\n  z\n}\n"


def test_inserted_lines_stand_before_what_is_dropped() -> None:
    edits = Edits(LINES)
    edits.drop(1)
    edits.insert_before(1, "x")
    assert edits.text().splitlines() == ["a {", "  x", "  c", "}"]


def test_a_substitution_must_hit_once() -> None:
    edits = Edits(["b b", "c"])
    edits.substitute(1, "c", "d")
    assert edits.line(1) == "d"
    with pytest.raises(ValueError, match="line 1 does not contain 'b' once"):
        edits.substitute(0, "b", "x")
