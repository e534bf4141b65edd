"""The bars have the lengths of the values, the paper's and ours, in both layouts."""

from __future__ import annotations

import pytest

from reproduce.html import charts
from reproduce.results import Document
from reproduce.tables import Cell, Column, Row, Table


def document(step: str, *rows: Row) -> Document:
    columns = tuple(Column(key, key) for key in ("base", "sala", "saving", "ratio"))
    return Document(step, step, "", {}, {}, (Table(step, step, columns, rows),), True)


def pair(label: str, base: Cell, sala: Cell) -> Row:
    return Row(label, label, {"base": base, "sala": sala, "saving": Cell(14), "ratio": Cell(1.35, paper=1.34)})


FULL = pair("1 1P1C", Cell(114688, paper=114688), Cell(98304, paper=81920))
ABSENT = pair("2 1P2C", Cell(None, "not measured", "no GPU", 131072), Cell(None, "not measured", "no GPU", 98304))


@pytest.mark.parametrize("layout", [charts.WIDE, charts.NARROW])
def test_lengths_of_the_bars(layout: str) -> None:
    axes = charts.figure2(document("figure2", FULL), layout).axes[0]
    bars = [bar.get_height() if layout == charts.WIDE else bar.get_width() for bar in axes.patches]
    assert bars == [112, 112, 80, 96]  # base of the paper, ours; SALA of the paper, ours
    hatched = [bool(bar.get_hatch()) for bar in axes.patches]
    assert hatched == [True, False, True, False]


@pytest.mark.parametrize("layout", [charts.WIDE, charts.NARROW])
def test_a_value_that_is_missing_is_said_to_be(layout: str) -> None:
    figure = charts.figure2(document("figure2", FULL, ABSENT), layout)
    assert charts.svg_text(figure).count("no value") == 2


@pytest.mark.parametrize("layout", [charts.WIDE, charts.NARROW])
def test_figure_3_shows_the_ratio_too(layout: str) -> None:
    figure = charts.figure3(document("figure3", pair("4s", Cell(416.2, paper=226.9), Cell(561.3, paper=313.1))), layout)
    upper, lower = figure.axes
    lengths = [
        [bar.get_height() if layout == charts.WIDE else bar.get_width() for bar in axes.patches]
        for axes in (upper, lower)
    ]
    assert lengths == [[226.9, 416.2, 313.1, 561.3], [1.34, 1.35]]


def test_the_same_values_make_the_same_file() -> None:
    made = [charts.svg_text(charts.figure2(document("figure2", FULL), charts.WIDE)) for _ in range(2)]
    assert made[0] == made[1] and "<text" in made[0]


def test_other_steps_have_no_chart() -> None:
    assert not charts.charts(document("table4"))
