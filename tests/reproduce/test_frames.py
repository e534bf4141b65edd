from __future__ import annotations

import csv
from pathlib import Path

from reproduce import frames
from reproduce.tables import Cell, Column, Row, Table
from tests.reproduce.test_report import TABLE
from tests.reproduce.test_results import document


def test_values_keep_their_unit_and_what_is_missing_says_why() -> None:
    made = frames.frame(TABLE)
    assert made.loc["equal", "base [B]"] == 114688 and made.loc["equal", "verdict"] == "equal"
    assert made.loc["nothing", "Act. status"] == "not measured: no GPU" and made["Act. [%]"].isna()["nothing"]
    assert made.loc["differs", "base paper"] == 114688


def test_what_was_timed_on_a_slowed_gpu_says_so() -> None:
    cell = Cell(1.36, paper=1.34, verdict="shown", slowed_by="hardware power brake")
    table = Table("t", "T", (Column("ratio", "ratio", "x", "timing"),), (Row("1", "one", {"ratio": cell}),))
    made = frames.frame(table)
    assert made.loc["one", "ratio status"] == "slowed down: hardware power brake"
    assert made.loc["one", "verdict"] == "slowed down"


def test_csv_files(tmp_path: Path) -> None:
    paths = frames.write_csv([document()], tmp_path / "csv")
    assert [path.name for path in paths] == ["x-t.csv"]
    with paths[0].open() as file:
        rows = list(csv.DictReader(file))
    assert rows == [{"row": "one", "A [B]": "5", "A paper": "5", "A status": "equal", "paper": "5", "verdict": "equal"}]
