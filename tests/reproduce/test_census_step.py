"""The census step: judged for the pinned CUTLASS, shown for another."""

from __future__ import annotations

from pathlib import Path

import pytest

from reproduce.results import Record
from reproduce.running import context_for
from reproduce.step import Options
from reproduce.steps import census
from reproduce.tables import MEASURED, Row


def summary(tmp_path: Path, **values: object) -> Row:
    counts = {
        "headers": "CUTLASS",
        "summary": "",
        "files": 21,
        "pinned": True,
        "union_nonpersistent": 2,
        "struct_persistent": 19,
        "union_persistent": 0,
        "struct_nonpersistent": 0,
    }
    record = Record(MEASURED, {**counts, **values})  # type: ignore[dict-item]
    return census.tables({"census": record}, context_for("census", tmp_path, Options()))[0].rows[0]


def test_the_papers_counts_are_equal(tmp_path: Path) -> None:
    assert summary(tmp_path).verdict == "equal"


@pytest.mark.parametrize("change", [{"files": 22}, {"struct_persistent": 18}, {"union_persistent": 1}])
def test_other_counts_differ(tmp_path: Path, change: dict[str, int]) -> None:
    assert summary(tmp_path, **change).verdict == "differs"


def test_another_release_is_shown(tmp_path: Path) -> None:
    assert summary(tmp_path, pinned=False, files=30, struct_persistent=28).verdict == "shown"


def test_kernels_are_listed(tmp_path: Path) -> None:
    record = Record(MEASURED, {"kernel.sm90_a_warpspecialized.hpp": "sm90 2 struct"})
    row = census._kernels(record).rows[0]
    assert row.label == "sm90_a_warpspecialized.hpp"
    assert [cell.value for cell in row.cells.values()] == ["sm90", 2, True, "struct"]
