"""The top of the page: verdicts per claim, and what is missing."""

from __future__ import annotations

from reproduce.html import claims
from reproduce.results import Document
from reproduce.steps import STEPS
from reproduce.tables import Cell, Column, Row, Table
from tests.reproduce.test_html_cells import figure3

EQUAL = Cell(1024, paper=1024, verdict="equal")
ABSENT = Cell(None, "not measured", "no GPU", paper=7)


def figure2(*cells: Cell, complete: bool = True) -> Document:
    rows = tuple(Row(str(i), str(i), {"base": cell}) for i, cell in enumerate(cells))
    table = Table("figure2", "Figure 2", (Column("base", "base", "KiB"),), rows)
    return Document("figure2", "Figure 2", "", {"gpu": None}, {}, (table,), complete)


def verdict(*cells: Cell) -> str:
    return claims.claims(STEPS, {"figure2": figure2(*cells)}, {})[0].verdict


def test_one_bad_value_decides() -> None:
    assert verdict(EQUAL, EQUAL) == "equal"
    assert verdict(EQUAL, ABSENT) == "equal, in part"
    assert verdict(ABSENT, ABSENT) == "not measured"
    assert verdict(EQUAL, ABSENT, Cell(2048, paper=1024, verdict="differs")) == "differs"
    assert verdict(EQUAL, Cell(None, "no run", "ended")) == "no run"
    assert verdict(EQUAL, Cell(None, "failed", "wrong")) == "failed"
    assert verdict(EQUAL, Cell(1100, paper=1024, verdict="equal")) == "near"
    assert verdict(Cell(1100, paper=1024, verdict="shown")) == "shown"


def test_every_step_has_a_line_and_a_missing_one_says_what_to_do() -> None:
    found = claims.claims(STEPS, {"figure2": figure2(EQUAL)}, {"table4": "table4.json: no JSON"})
    assert [claim.step for claim in found] == list(STEPS)
    lines = {claim.step: claim for claim in found}
    assert lines["figure3"].verdict == "not measured" and "./ae figure3" in lines["figure3"].details[0]
    assert lines["table4"].verdict == "failed" and lines["table4"].details == ("table4.json: no JSON",)


def test_an_interrupted_step_says_so() -> None:
    found = claims.claims(STEPS, {"figure2": figure2(EQUAL, complete=False)}, {})[0]
    assert any("interrupted" in detail for detail in found.details)


def test_timed_values_are_compared_to_three_references_and_the_outliers_listed() -> None:
    lines = {claim.step: claim for claim in claims.claims(STEPS, {"figure3": figure3(1.35)}, {})}
    assert lines["figure3"].verdict == "in range" and not lines["figure3"].outside
    details = " ".join(lines["figure3"].details)
    assert all(text in details for text in ("reference runs (H200)", "paper's values (H800)", "any GPU"))
    lines = {claim.step: claim for claim in claims.claims(STEPS, {"figure3": figure3(1.0)}, {})}
    assert lines["figure3"].verdict == "out of range" and len(lines["figure3"].outside) == 3
    assert "6 values of it are no row of these results" in lines["figure3"].details[1]


def test_gaps_name_what_has_no_value_and_why() -> None:
    found = claims.gaps(STEPS, {"figure2": figure2(EQUAL, ABSENT, ABSENT)}, {})
    assert found[0] == claims.Gap("figure2: Figure 2", 2, "no GPU")
    assert len(found) == len(STEPS) and all(gap.why == "no results yet" for gap in found[1:])
    failed = Cell(None, "failed", "wrong")
    found = claims.gaps(STEPS, {"figure2": figure2(failed)}, {"table4": "table4.json: no JSON"})
    assert [gap.why for gap in found[:2]] == ["failed: wrong", "table4.json: no JSON"]


def test_what_soundness_rests_on() -> None:
    row = Row(
        "overlap", "a pair is never seen to break", {"tried": Cell("9 programs"), "broken": Cell(0, verdict="equal")}
    )
    table = Table("soundness", "S", (Column("tried", "tried", kind="text"), Column("broken", "broken")), (row,))
    document = Document("soundness", "S", "", {"gpu": None}, {}, (table,), True)
    found = claims.claims({"soundness": STEPS["soundness"]}, {"soundness": document}, {})
    assert "A pair is never seen to break: 0 found in 9 programs." in found[0].details
    assert found[0].details[0] == "Values: 1 as they must be."
