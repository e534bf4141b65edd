"""Rows that add up records: how much was tried, and how often it was broken."""

from __future__ import annotations

from reproduce.results import Record, not_measured
from reproduce.steps.sums import sum_row
from reproduce.tables import MEASURED


def record(builds: int, wrong: int) -> Record:
    return Record(MEASURED, {"builds": builds, "lines": 10, "wrong": wrong})


def test_a_sum_is_right_only_if_nothing_is_broken() -> None:
    row = sum_row("a", "label", [record(2, 0), record(1, 0)], "{builds} builds, {lines} lines", "wrong")
    assert row.cells["tried"].value == "3 builds, 20 lines"
    assert row.cells["broken"].value == 0 and row.verdict == "equal"
    row = sum_row("a", "label", [record(2, 0), record(1, 4)], "{builds} builds", "wrong")
    assert row.cells["broken"].value == 4 and row.verdict == "differs"


def test_there_is_no_sum_without_one_of_the_records() -> None:
    row = sum_row("a", "label", [record(2, 1), not_measured("no GPU")], "{builds} builds", "wrong")
    assert row.verdict == "not measured" and {cell.reason for cell in row.cells.values()} == {"no GPU"}
