"""Figure 2: shared memory of nine kernels and models, every buffer in its own place against SALA. Needs no GPU."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from reproduce import kernels
from reproduce.claims import saving_percent
from reproduce.results import MISSING, Record
from reproduce.step import Context, Measurement, Step
from reproduce.steps.allocation import allocation, analyzer
from reproduce.tables import DIFFERS, EQUAL, MEASURED, Cell, Column, Row, Scalar, Table


def _model(context: Context, *, pattern: str, key: str) -> dict[str, Scalar]:
    report = analyzer(context, ["pattern", kernels.pattern(pattern)], key=key)
    return {"base": report["smem_baseline"], "sala": report["smem_optimized"], "lower_bound": report["lower_bound"]}


def measurements(context: Context) -> list[Measurement]:
    found = []
    for item in context.claims["figure2"]["items"]:
        if "pattern" in item:
            run: Any = partial(_model, pattern=item["pattern"], key=str(item["item"]))
            found.append(Measurement(str(item["item"]), run, seconds=0.3, parallel=True))
            continue
        for mode in ("base", "sala"):
            key = f"{item['item']}.{mode}"
            run = partial(allocation, kernel=item["kernel"], sala=mode == "sala", key=key)
            found.append(Measurement(key, run, seconds=0.5, parallel=True))
    return found


def tables(records: Mapping[str, Record], context: Context) -> tuple[Table, ...]:
    columns = (
        Column("base", "base", "KiB"),
        Column("sala", "SALA", "KiB"),
        Column("saving", "saving", "%"),
    )
    rows = tuple(_row(item, records) for item in context.claims["figure2"]["items"])
    star = "* does not compile: the compiler refuses the allocation, and the figure is what it says would be needed."
    starred = any(cell.reason for row in rows for cell in row.cells.values() if cell.status == MEASURED)
    return (Table("figure2", "Figure 2: shared memory per CTA", columns, rows, (star,) if starred else ()),)


def _row(item: dict[str, Any], records: Mapping[str, Record]) -> Row:
    key = str(item["item"])
    if "pattern" in item:
        record = records.get(key, MISSING)
        base, sala = record.cell("base", item["paper_base"]), record.cell("sala", item["paper_sala"])
        notes: tuple[str, ...] = ()
    else:
        base_record, sala_record = records.get(f"{key}.base", MISSING), records.get(f"{key}.sala", MISSING)
        base = base_record.cell("bytes", item["paper_base"])
        sala = sala_record.cell("bytes", item["paper_sala"])
        base, notes = _star(base, base_record, "paper_base_star" in item)
        if sala_record.values.get("out_of_bound"):
            sala = Cell(sala.value, reason="does not compile", paper=sala.paper, verdict=DIFFERS, log=sala.log)
    cells = {"base": base, "sala": sala, "saving": _saving(base, sala, item)}
    return Row(key, f"{key} {item['name']}", cells, item["paper"], notes)


def _star(base: Cell, record: Record, expected: bool) -> tuple[Cell, tuple[str, ...]]:
    """Where the paper stars a baseline, and only there, it must not compile: that is a claim of its own."""
    if record.status != MEASURED:
        return base, ()
    refused = bool(record.values["out_of_bound"])
    verdict = base.verdict if refused == expected else DIFFERS
    reason = "does not compile" if refused else ""
    message = str(record.values["message"]).splitlines()
    notes = (f"without SALA: {message[0]}",) if refused and message else ()
    return Cell(base.value, base.status, base.reason or reason, base.paper, verdict, base.log), notes


def _saving(base: Cell, sala: Cell, item: dict[str, Any]) -> Cell:
    if not (isinstance(base.value, int) and isinstance(sala.value, int)):
        worse = base if base.status != MEASURED else sala
        return Cell(None, worse.status, worse.reason)
    value = saving_percent(base.value, sala.value)
    paper = saving_percent(item["paper_base"], item["paper_sala"])
    return Cell(value, paper=paper, verdict=EQUAL if value == paper else DIFFERS)


STEP = Step(
    name="figure2",
    title="Figure 2: shared memory per CTA, without and with SALA",
    minutes=0.1,
    claims=("figure2",),
    measurements=measurements,
    tables=tables,
)
