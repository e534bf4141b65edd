"""Table 2, the rows of this project's compiler: dynamic shared memory of each launch, as Nsight Compute prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reproduce import workloads
from reproduce.claims import ncu_digits, saving_percent
from reproduce.results import Record
from reproduce.step import Context, Measurement
from reproduce.steps.builds import MODES, build_measurements, launch_bytes, profile_measurement
from reproduce.tables import DIFFERS, EQUAL, MEASURED, Cell, Column, Row, Table

OUT_OF_BOUND = "does not compile"


def _arguments(context: Context, kernel: str) -> list[str]:
    if kernel.startswith("fa_1p1c"):
        return workloads.attention(1, 1, 8192)
    if kernel.startswith("fa_"):
        shape = context.claims["table3"]["workloads"]["attention"]
        return workloads.attention(shape["B"], shape["H"], shape["SEQ"])
    return workloads.gemm(context.claims["table3"]["workloads"]["gemm"])


def measurements(context: Context) -> list[Measurement]:
    kernels = [row["kernel"] for row in context.claims["table2_xcomp"]["rows"]]
    profiles = [profile_measurement(kernel, mode, _arguments(context, kernel)) for kernel in kernels for mode in MODES]
    return [*build_measurements(kernels), *profiles]


def tables(records: Mapping[str, Record], context: Context) -> tuple[Table, ...]:
    columns = (
        Column("base", "base", "KB"),
        Column("sala", "SALA", "KB"),
        Column("saving", "saving", "%"),
        Column("source", "measured by", kind="text"),
    )
    rows = tuple(_row(item, records) for item in context.claims["table2_xcomp"]["rows"])
    notes = ["1 KB = 1000 bytes, the digits that the paper prints; dynamic shared memory of one launch."]
    why = {record.reason for key, record in records.items() if key.startswith("ncu.") and record.reason}
    if any(row.cells["source"].value == "launch request" for row in rows):
        notes.append(f"Taken from what the programs request, without Nsight Compute: {', '.join(sorted(why))}.")
    title = "Table 2, XComp rows: dynamic shared memory per CTA"
    return (Table("xcomp", title, columns, rows, tuple(notes)),)


def _row(item: dict[str, Any], records: Mapping[str, Record]) -> Row:
    cells, sources = {}, []
    for mode in MODES:
        record, name, source = launch_bytes(records, item["kernel"], mode)
        starred = mode == "base" and "paper_base_star" in item
        cells[mode] = _cell(record, name, item[f"paper_{mode}"], starred)
        sources.append(source)
    cells["saving"] = _saving(item, cells)
    cells["source"] = Cell(sources[1])
    return Row(item["row"], item["row"], cells, item["paper"])


def _cell(record: Record, name: str, paper: str | None, starred: bool) -> Cell:
    if record.status == MEASURED and record.values.get("out_of_bound"):
        paper = OUT_OF_BOUND if starred else paper
        return Cell(OUT_OF_BOUND, paper=paper, verdict=EQUAL if starred else DIFFERS, log=record.log)
    raw = record.cell(name)
    if not isinstance(raw.value, int):
        return raw
    if paper is None:
        return Cell(raw.value / 1000, paper=OUT_OF_BOUND, verdict=DIFFERS, log=raw.log)
    digits = ncu_digits(raw.value, paper)
    return Cell(digits, paper=paper, verdict=EQUAL if digits == paper else DIFFERS, log=raw.log)


def _saving(item: dict[str, Any], cells: Mapping[str, Cell]) -> Cell:
    """From the whole KB, as the paper computes it (99 of 116 is 15 %)."""
    values = [cells[mode].value for mode in MODES]
    if item["paper_base"] is None or OUT_OF_BOUND in values:
        return Cell("-")
    if None in values:
        worse = next(cells[mode] for mode in MODES if cells[mode].value is None)
        return Cell(None, worse.status, worse.reason)
    base, sala = (round(float(str(value))) for value in values)
    value = saving_percent(base, sala)
    paper = saving_percent(round(float(item["paper_base"])), round(float(item["paper_sala"])))
    return Cell(value, paper=paper, verdict=EQUAL if value == paper else DIFFERS)
