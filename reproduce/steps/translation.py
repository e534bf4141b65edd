"""Part ``translation`` of the step ``soundness``: the PTX of every kernel against the analysed program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from reproduce import ROOT
from reproduce.machine import Need
from reproduce.results import MISSING, Record
from reproduce.step import Context, Measurement
from reproduce.steps.sums import sum_row
from reproduce.tables import DIFFERS, EQUAL, MEASURED, SHOWN, Cell, Column, Row, Scalar, Table

NEEDS = frozenset({Need.NVCC})
_COUNTS = ("builds", "instructions", "differing", "mutants", "refused")
Run = Callable[..., Any]


def _names() -> list[str]:
    return [path.stem for path in sorted((ROOT / "kernels").glob("*/*.co"))]


def measurements(run: Run) -> list[Measurement]:
    """``run``: as in ``steps/soundness.py``."""
    return [
        Measurement(
            f"translation.{name}",
            partial(_measure, run=run, name=name),
            NEEDS,
            seconds=20.0 if name.startswith("fa_") else 8.0,  # attention: three times the instructions of a GEMM
            parallel=True,
        )
        for name in _names()
    ]


def _measure(context: Context, *, run: Run, name: str) -> dict[str, Scalar]:
    data = run(context, f"translation.{name}", "translation", "--only", f"kernel/{name}")[f"kernel/{name}"]
    return {key: int(data[key]) for key in _COUNTS}


def summary_rows(records: Mapping[str, Record]) -> list[Row]:
    found = [records.get(f"translation.{name}", MISSING) for name in _names()]
    label, tried = "compiled code that is not the analysed program", "{builds} builds, {instructions} instructions"
    compiled = sum_row("translation", label, found, tried, "differing")
    label = "wrong PTX that is accepted"
    return [compiled, sum_row("translation_mutants", label, map(_accepted, found), "{mutants} mutants", "accepted")]


def _accepted(record: Record) -> Record:
    if record.status != MEASURED:
        return record
    mutants = int(str(record.values["mutants"]))
    return Record(MEASURED, {"mutants": mutants, "accepted": mutants - int(str(record.values["refused"]))})


def tables(records: Mapping[str, Record]) -> tuple[Table, ...]:
    columns = (
        Column("builds", "builds"),
        Column("instructions", "PTX instructions compared"),
        Column("differing", "builds that differ"),
        Column("mutants", "mutants"),
        Column("refused", "refused"),
    )
    rows = []
    for name in _names():
        record = records.get(f"translation.{name}", MISSING)
        cells = {column.key: record.cell(column.key, verdict=SHOWN) for column in columns}
        if record.status == MEASURED:
            good = {
                "differing": record.values["differing"] == 0,
                "refused": record.values["refused"] == record.values["mutants"],
            }
            cells |= {key: Cell(cells[key].value, verdict=EQUAL if fine else DIFFERS) for key, fine in good.items()}
        rows.append(Row(name, name, cells))
    note = "builds: with and without overlap, where the kernel fits; mutants: of the PTX with overlap"
    return (Table("translation", "Compiled kernels against the analysed programs", columns, tuple(rows), (note,)),)
