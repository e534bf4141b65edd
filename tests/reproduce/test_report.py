"""What a person reads: every kind of cell, and plain text where colours do not belong."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from reproduce import report
from reproduce.tables import Cell, Column, Row, Table

TABLE = Table(
    "t",
    "Table T: an example",
    (Column("base", "base", "KiB"), Column("act", "Act.", "%", "timing"), Column("same", "same bits", kind="text")),
    (
        Row("1", "equal", {"base": Cell(114688, paper=114688, verdict="equal"), "same": Cell(True)}, "112"),
        Row("2", "differs", {"base": Cell(98304, paper=114688, verdict="differs"), "act": Cell(14.83)}, "112"),
        Row("3", "no GPU", {"base": Cell(98304, verdict="equal"), "act": Cell(None, "not measured", "no GPU")}, "96"),
        Row("4", "nothing", {"act": Cell(None, "not measured", "no GPU")}, "18"),
        Row("5", "hung", {"act": Cell(None, "no run", "no end after 120 s (ended)", log="logs/t/5.log")}, "18"),
        Row("6", "broken", {"base": Cell(None, "failed", "does not compile: error")}, "18", ("a note of the row",)),
        Row("7", "starred", {"base": Cell(262144, reason="does not compile", verdict="equal")}, "256*"),
        Row("9", "two reasons", {"act": Cell(None, "not measured", "no ncu"), "same": Cell("-")}, "1"),
        Row("8", "shown", {"act": Cell(7.5, paper=7.6, verdict="shown")}, "7.6"),
    ),
    ("A note of the table.",),
)


def text_of(table: Table) -> str:
    out = io.StringIO()
    report.show_table(table, Console(file=out, width=120, color_system=None))
    return out.getvalue()


def test_every_kind_of_cell(golden: Callable[[str], None]) -> None:
    golden(text_of(TABLE))


def test_what_was_not_measured_is_never_a_pass() -> None:
    assert [row.verdict for row in TABLE.rows] == [
        "equal",
        "differs",
        "equal, in part",
        "not measured",
        "no run",
        "failed",
        "equal",
        "not measured",
        "shown",
    ]


@pytest.mark.parametrize("name", ["NO_COLOR", "CI"])
def test_plain_text_where_asked_for(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv(name, "1")
    console = report.console()
    assert console.no_color and console.color_system is None


def test_reasons_stand_once_below_the_table() -> None:
    text = text_of(TABLE)
    assert text.count("(a) not measured here: no GPU") == 1 and text.count("(b) not measured here: no ncu") == 1
    assert text.count("(a)") == 3 and text.count("(b)") == 2


def test_columns_that_say_nothing_are_left_out() -> None:
    row = Row("1", "only shown", {"base": Cell(1024)})
    heading = text_of(Table("t", "T", TABLE.columns[:1], (row,))).splitlines()[1]
    assert heading.split() == ["base", "[KiB]"]


def test_a_pipe_has_a_fixed_width_or_that_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: False, raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    assert report.console().width == report.PLAIN_WIDTH
    monkeypatch.setenv("COLUMNS", "90")
    assert report.console().width == 90


def test_notes_wrap_on_a_terminal_and_stay_whole_on_a_pipe() -> None:
    note = " ".join(["word"] * 40)
    for terminal in (True, False):
        out = io.StringIO()
        table = Table("t", "T", (), (), (note,))
        report.show_table(table, Console(file=out, width=80, color_system=None, force_terminal=terminal))
        assert (f"  {note}" in out.getvalue()) != terminal
        assert not terminal or max(map(len, out.getvalue().splitlines())) <= 80
