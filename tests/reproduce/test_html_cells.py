"""What the page says about a value: never more than was measured."""

from __future__ import annotations

from dataclasses import replace

from reproduce.html import cells
from reproduce.results import Document
from reproduce.tables import Cell, Column, Row, Table

COLUMNS = (Column("base", "base", "KiB"), Column("ratio", "ratio", "x", "timing"), Column("same", "same", kind="text"))
H200 = {"gpu": {"name": "NVIDIA H200"}}


def document(table: Table, step: str = "t", **provenance: object) -> Document:
    return Document(step, "T", "", {"gpu": None, **provenance}, {}, (table,), True)


def row(cell: Cell, key: str = "base") -> cells.RowView:
    table = Table("t", "T", COLUMNS, (Row("1", "one", {key: cell}, "112->96"),))
    return cells.view(document(table), table).rows[0]


def test_equal_within_a_tolerance_is_near_and_shows_the_papers_value() -> None:
    found = row(Cell(98476, paper=98304, verdict="equal"))
    assert (found.verdict, found.mark) == ("near", "≈")
    assert found.cells[0].paper == "96" and found.cells[0].mark == "≈"


def test_the_same_value_in_other_units_is_equal() -> None:
    found = row(Cell(98304, paper=96.0, verdict="equal"))
    assert found.verdict == "equal" and found.cells[0].text == "96" and found.cells[0].paper == ""


def test_what_was_not_measured_says_why_and_is_no_pass() -> None:
    found = row(Cell(None, "not measured", "no GPU", paper=1))
    assert (found.cells[0].text, found.cells[0].mark, found.verdict) == ("no GPU", "○", "not measured")


def test_failures_are_marked() -> None:
    for status in ("failed", "no run"):
        found = row(Cell(None, status, "ended after 120 s"))
        assert (found.verdict, found.mark, found.tone) == (status, "✗", "bad")
    found = row(Cell(1024, paper=2048, verdict="differs"))
    assert (found.verdict, found.tone, found.cells[0].paper) == ("differs", "bad", "2")


def figure3(ratio: float) -> Document:
    values = {
        "ratio": Cell(ratio, paper=1.34, verdict="shown"),
        "same": Cell(True, paper=True, verdict="equal"),
    }
    table = Table("figure3", "Figure 3", COLUMNS, (Row("4s 64x128 (f16)", "4s", values, "1.34x"),))
    return document(table, "figure3", **H200)


def test_a_timed_row_is_judged_by_its_time_not_by_its_output() -> None:
    good, bad = figure3(1.35), figure3(1.0)
    assert cells.view(good, good.tables[0]).rows[0].verdict == "in range"
    view = cells.view(bad, bad.tables[0])
    assert (view.rows[0].verdict, view.rows[0].cells[1].mark, view.timed) == ("out of range", "✗", "h200")


def test_every_verdict_has_a_mark_and_no_two_tones_share_one() -> None:
    tones = {verdict: cells.tone(verdict) for verdict in cells.MARKS}
    for mark in set(cells.MARKS.values()):
        assert len({tones[verdict] for verdict, its in cells.MARKS.items() if its == mark}) == 1


def test_columns_that_say_nothing_are_left_out() -> None:
    table = Table("t", "T", COLUMNS, (Row("1", "one", {"base": Cell(1024)}),))
    view = cells.view(document(table), table)
    assert not view.has_paper and not view.has_verdict
    table = replace(table, rows=(replace(table.rows[0], paper="1"),))
    view = cells.view(document(table), table)
    assert view.has_paper and view.has_verdict
