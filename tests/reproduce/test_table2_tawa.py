"""Tawa rows: bytes without a GPU, and how results of a GPU are judged (on records made by hand)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reproduce import claims, process, verify
from reproduce.results import Record, not_measured
from reproduce.step import Context, NoRunError, Options
from reproduce.steps import table2_tawa, table2_tawa_tables
from reproduce.steps.table2_tawa import wrong_modes
from reproduce.tables import DIFFERS, EQUAL, MEASURED, SHOWN, Table
from reproduce.tawa.rows import ALL, PAPER, WRONG_ON_PURPOSE, Kernel, find

GEMM, ATTENTION = find("gemm_128x128_3s"), find("attention_128x128_3s")


def context(tmp_path: Path) -> Context:
    return Context("table2", tmp_path, tmp_path, None, None, claims.load(), Options())  # type: ignore[arg-type]


def tables(tmp_path: Path, records: dict[str, Record]) -> dict[str, Table]:
    return {table.id: table for table in table2_tawa_tables.tables(records, context(tmp_path))}


def sizes() -> Record:
    reference = verify.load_reference(verify.EXPECTED / "exact" / "table2.json")["values"]
    values: dict[str, Any] = {}
    for claim, value in reference.items():
        _, table, row, column = claim.split("/")
        if table == "tawa" and column.endswith("_bytes"):
            values[f"{row}.{column.removesuffix('_bytes')}"] = value
    return Record(MEASURED, values)


def outcome(kernel: Kernel, **changed: Any) -> dict[str, Any]:
    """A run in which everything is right but what ``changed`` says ("overlap__wrong_launches")."""
    values: dict[str, Any] = {"bits_of": "repair"}
    for mode in kernel.modes:
        numbers = {"launches": 100, "wrong_launches": 0, "wrong_small": 0, "different_launches": 0, "max_error": 0.001}
        values |= {f"{mode}.{name}": number for name, number in numbers.items()}
        values |= {f"{mode}.tflops": 500.0, f"{mode}.same_bits": True}
    return values | {name.replace("__", "."): value for name, value in changed.items()}


def test_every_row_of_the_paper_is_there(tmp_path: Path) -> None:
    table = tables(tmp_path, {"bytes": sizes()})["tawa"]
    assert [row.label for row in table.rows] == [item["row"] for item in claims.load()["table2_tawa"]["rows"]]


def test_the_exact_bytes_are_near_the_papers(tmp_path: Path) -> None:
    for row in tables(tmp_path, {"bytes": sizes()})["tawa"].rows:
        attention = row.id.startswith("attention")
        assert row.cells["overlap"].verdict == EQUAL
        assert row.cells["stock"].verdict == (SHOWN if attention else EQUAL)
        assert row.cells["saving"].verdict == (SHOWN if attention else EQUAL)


def test_bytes_that_are_not_near_differ(tmp_path: Path) -> None:
    record = sizes()
    record.values["gemm_128x128_3s.overlap"] = 99500
    (row, *_) = tables(tmp_path, {"bytes": record})["tawa"].rows
    assert row.cells["overlap"].verdict == DIFFERS and row.cells["saving"].verdict == DIFFERS


def test_bytes_of_nsight_compute_must_be_the_compilers(tmp_path: Path) -> None:
    for seen, verdict in ((98476, EQUAL), (98480, DIFFERS)):
        ncu = Record(MEASURED, {f"{GEMM.name}.overlap.dynamic": seen})
        row = tables(tmp_path, {"bytes": sizes(), "ncu": ncu})["tawa"].rows[0]
        assert row.cells["ncu_overlap"].verdict == verdict


def test_no_tables_of_a_gpu_without_one(tmp_path: Path) -> None:
    run = {f"run.{kernel.name}": not_measured("no GPU") for kernel in ALL}
    assert list(tables(tmp_path, {"bytes": sizes(), **run})) == ["tawa", "tawa_specialized"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"overlap__wrong_launches": 1}, "overlap: 1 launches are wrong"),
        ({"overlap__wrong_small": 2}, "overlap: 2 launches are wrong"),
        ({"invalidate__different_launches": 3}, "invalidate: 3 launches differ from the first"),
        ({"repair__same_bits": False}, "repair: other bits than repair"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    values = outcome(ATTENTION, **change)
    assert wrong_modes(ATTENTION, values) == [message]
    records = {"bytes": sizes(), f"run.{ATTENTION.name}": Record(MEASURED, values)}
    row = next(row for row in tables(tmp_path, records)["tawa_right"].rows if row.id == ATTENTION.name)
    assert row.verdict == DIFFERS


def test_modes_that_are_wrong_on_purpose_are_not_judged(tmp_path: Path) -> None:
    kernel = find("persistent_128x128_3s")
    assert set(WRONG_ON_PURPOSE) < set(kernel.modes)
    values = outcome(kernel, unchecked__wrong_launches=20, **{"no guard__wrong_launches": 20})
    assert not wrong_modes(kernel, values)
    records = {"bytes": sizes(), f"run.{kernel.name}": Record(MEASURED, values)}
    row = next(row for row in tables(tmp_path, records)["tawa_right"].rows if row.id == kernel.name)
    assert row.cells["no_guard"].value == "20 of 100" and row.cells["no_guard"].verdict == SHOWN


def test_what_cannot_launch_is_no_missing_measurement(tmp_path: Path) -> None:
    values = {key: value for key, value in outcome(ATTENTION).items() if not key.startswith("stock.")}
    values |= {"stock_reason": "cannot launch: 262680 of 232448 bytes", "overlap.long_tflops": 480.0}
    records = {"bytes": sizes(), f"run.{ATTENTION.name}": Record(MEASURED, values)}
    found = tables(tmp_path, records)
    right, speed = (
        next(row for row in found[name].rows if row.id == ATTENTION.name) for name in ("tawa_right", "tawa_speed")
    )
    assert right.cells["stock"].value == "cannot launch"
    assert {name: speed.cells[name].value for name in ("stock", "overlap", "ratio", "long_stock", "long_overlap")} == {
        "stock": "cannot launch",
        "overlap": 500.0,
        "ratio": "-",
        "long_stock": "cannot launch",
        "long_overlap": 480.0,
    }
    assert {cell.status for cell in speed.cells.values()} == {MEASURED}


def test_stock_triton_is_judged_for_gluon_only() -> None:
    assert wrong_modes(GEMM, outcome(GEMM, stock__wrong_launches=1)) == ["stock: 1 launches are wrong"]
    assert not wrong_modes(ATTENTION, outcome(ATTENTION, stock__wrong_launches=1))


def test_a_wrong_run_is_a_failed_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = json.dumps(outcome(GEMM, overlap__wrong_launches=7))
    finished = process.Finished(("python",), 0, f"a line before\n{answer}\n", "", 1.0)
    made = replace(context(tmp_path))
    monkeypatch.setattr(Context, "run", lambda self, argv, **rest: finished)
    with pytest.raises(Exception, match="overlap: 7 launches are wrong"):
        table2_tawa._run(made, kernel=GEMM, key="run")


@pytest.mark.parametrize(
    ("finished", "message"),
    [
        (process.Finished(("python",), 1, "", "Traceback\nValueError: bad", 1.0), "exit status 1: ValueError: bad"),
        (process.Finished(("python",), 0, "no json", "", 1.0), "the child printed no result: no json"),
        (process.Finished(("python",), None, "", "", 1.0, timed_out=True), "no end after"),
    ],
)
def test_a_child_that_fails(
    finished: process.Finished, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Context, "run", lambda self, argv, **rest: finished)
    with pytest.raises(NoRunError, match=message):
        table2_tawa._run(context(tmp_path), kernel=GEMM, key="run")


def test_names_are_unique_and_found() -> None:
    assert len({kernel.name for kernel in ALL}) == len(ALL)
    assert all(find(kernel.name) is kernel for kernel in ALL)
    assert {kernel.row for kernel in PAPER} == {item["row"] for item in claims.load()["table2_tawa"]["rows"]}


def test_the_child_compiles_a_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("triton", reason="needs triton==3.6.0")
    from reproduce.tawa import child

    assert child.main(["bytes", "gemm_64x128_2s"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["gemm_64x128_2s.stock"], found["gemm_64x128_2s.overlap"]) == (65572, 49300)
    assert found["gemm_64x128_2s.control"] == 49300 and found["gemm_64x128_2s.overlap.unsafe"] is False
