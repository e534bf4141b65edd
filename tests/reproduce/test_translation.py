"""Translation validation in the evidence of soundness."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from croqtile.validation.result import RoleRow, Validation
from reproduce import soundness
from reproduce.machine import Need
from reproduce.results import Record
from reproduce.running import context_for
from reproduce.step import Options
from reproduce.steps import soundness as step
from reproduce.steps import translation as rows
from reproduce.tables import MEASURED, Table
from reproduce.translation import nearest, text_of

NAMES = rows._names()
GOOD = {"builds": 2, "instructions": 100, "differing": 0, "mutants": 90, "refused": 90}


def tables(tmp_path: Path, **changes: int) -> tuple[Table, ...]:
    records = {f"translation.{name}": Record(MEASURED, {**GOOD}) for name in NAMES}
    records[f"translation.{NAMES[0]}"] = Record(MEASURED, {**GOOD, **changes})
    made = step.tables(records, context_for("soundness", tmp_path, Options(only=("translation",))))
    return (*made, Table("summary", "", (), tuple(rows.summary_rows(records))))


def test_every_kernel_is_measured_with_nvcc(tmp_path: Path) -> None:
    found = step.measurements(context_for("soundness", tmp_path, Options(only=("translation",))))
    assert [measurement.key for measurement in found] == [f"translation.{name}" for name in NAMES]
    assert len(NAMES) == 11 and all(measurement.needs == {Need.NVCC} for measurement in found)


def test_all_alike_is_good(tmp_path: Path) -> None:
    table, summary = tables(tmp_path)
    assert {row.verdict for row in (*table.rows, *summary.rows)} == {"equal"}
    assert summary.rows[0].cells["tried"].value == "22 builds, 1100 instructions"
    assert summary.rows[1].cells["tried"].value == "990 mutants"


@pytest.mark.parametrize(
    ("change", "row"), [({"differing": 1}, "translation"), ({"refused": 89}, "translation_mutants")]
)
def test_a_difference_shows(tmp_path: Path, change: dict[str, int], row: str) -> None:
    table, summary = tables(tmp_path, **change)
    assert table.rows[0].verdict == "differs" and {other.verdict for other in table.rows[1:]} == {"equal"}
    assert {found.id: found.verdict for found in summary.rows}[row] == "differs"


def test_nothing_measured_is_no_pass() -> None:
    assert not any(row.verdict == "equal" for row in (*rows.summary_rows({}), *rows.tables({})[0].rows))


def test_texts() -> None:
    data = {
        **GOOD,
        "steps": 9,
        "paths": 2,
        "kinds": {"wait dropped": 3},
        "problems": ["k: why"],
        "unnoticed": ["k: wait, line 3"],
    }
    text = text_of({"kernel/k": data})
    assert "wait dropped" in text and "DIFFERS k: why" in text and "NOT REFUSED k: wait, line 3" in text


def test_the_warpgroup_next_to_a_change_comes_first() -> None:
    rows = [RoleRow(str(number), number, 1, {}, lines) for number, lines in enumerate(((10, 300), (100, 180), ()))]
    validation = Validation("k", tuple(rows))
    assert [nearest(validation, line) for line in (12, 190, 290)] == [[0, 1, 2], [1, 0, 2], [0, 1, 2]]


def test_without_nvcc(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("NVCC", "/nowhere/nvcc")
    with pytest.raises(SystemExit) as ended:
        soundness.main(["translation", "--only", f"kernel/{NAMES[0]}"])
    assert ended.value.code == 2 and "there is no nvcc at /nowhere/nvcc" in capsys.readouterr().err


@pytest.mark.nvcc
def test_a_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    name = "kernel/matmul_f16_dyn_sm90_warpspec_1p1c_64x128_3s"
    assert soundness.main(["translation", "--only", name, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)[name]
    assert found["builds"] == 2 and found["differing"] == 0 and found["paths"] > 0 and found["instructions"] >= 80
    assert found["mutants"] == found["refused"] > 100 and not found["problems"] and not found["unnoticed"]
