"""The tables of the CUTLASS rows: bytes, the non-persistent kernel, and the engine's verdicts beside the GPU's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reproduce.claims import ncu_digits, saving_percent
from reproduce.cutlass.configurations import ALL, CHECKED, NON_PERSISTENT, SIZES, TABLE2, Configuration, Storage
from reproduce.cutlass.verdict import ACCEPTED, REFUSED
from reproduce.results import MISSING, Record
from reproduce.step import Context
from reproduce.steps.table2_cutlass import ANY, ONE, TWO, builds
from reproduce.tables import DIFFERS, EQUAL, MEASURED, SHOWN, Cell, Column, Row, Table

ASSUMED_SMS = 132  # of H100, H200 and H800 as SXM modules; used where no GPU says how many it has
NOT_CHECKED = "NOT CHECKED"
_STRUCT, _UNION = Storage.STRUCT.value, Storage.UNION.value


def tables(records: Mapping[str, Record], context: Context) -> tuple[Table, ...]:
    claims = context.claims["table2_cutlass"]
    made = [_bytes_table(records, claims), _non_persistent_table(records, claims)]
    made += [_engine_table(records), _verdict_table(records)]
    details = _details_table(records)
    return (*made, details) if details.rows else tuple(made)


# --------------------------------------------------------------------------------------------------------------
# Bytes


def _bytes_table(records: Mapping[str, Record], claims: dict[str, Any]) -> Table:
    columns = (
        Column("struct_bytes", "struct", "B"),
        Column("union_bytes", "union", "B"),
        Column("struct", "struct", "KB"),
        Column("union", "union", "KB"),
        Column("saving", "saving", "%"),
        Column("ncu_struct", "ncu, struct", "KB", kind="text"),
        Column("ncu_union", "ncu, union", "KB", kind="text"),
        Column("registers", "registers", kind="text"),
    )
    sizes = records.get("sizes", MISSING)
    by_row = {configuration.row: configuration for configuration in TABLE2}
    rows = tuple(_bytes_row(item, by_row[item["row"]], sizes, records) for item in claims["rows"])
    notes = [
        "struct, union: sizeof(SharedStorage), which the launch requests as dynamic shared memory. 1 KB = 1000 bytes."
    ]
    if sizes.status == MEASURED:
        notes.append(f"Headers: {sizes.values['headers']}.")
    return Table("cutlass", "Table 2, CUTLASS rows: dynamic shared memory per CTA", columns, rows, tuple(notes))


def _bytes_row(item: dict[str, Any], configuration: Configuration, sizes: Record, records: Mapping[str, Record]) -> Row:
    cells: dict[str, Cell] = {}
    papers = {_STRUCT: item["paper_base"], _UNION: item["paper_union"]}
    for storage, paper in papers.items():
        raw = sizes.cell(f"{storage}.{configuration.name}.total")
        cells[f"{storage}_bytes"] = raw
        cells[storage] = _digits(raw, paper)
        profiled = records.get(f"ncu.{storage}.{configuration.name}", MISSING)
        cells[f"ncu_{storage}"] = _digits(profiled.cell("dynamic"), paper)
    struct, union = cells["struct_bytes"].value, cells["union_bytes"].value
    if isinstance(struct, int) and isinstance(union, int):
        saving = saving_percent(struct, union)
        paper_saving = saving_percent(float(papers[_STRUCT]), float(papers[_UNION]))
        cells["saving"] = Cell(saving, paper=paper_saving, verdict=_judge(saving == paper_saving))
    else:
        cells["saving"] = sizes.cell("saving")
    cells["registers"] = records.get(f"build.{_STRUCT}.{configuration.name}", MISSING).cell("registers")
    return Row(configuration.name, configuration.row, cells, item["paper"])


def _digits(raw: Cell, paper: str) -> Cell:
    """``raw`` bytes as the paper prints them, judged by those digits."""
    if not isinstance(raw.value, int):
        return raw
    digits = ncu_digits(raw.value, paper)
    return Cell(digits, paper=paper, verdict=_judge(digits == paper), log=raw.log)


def _non_persistent_table(records: Mapping[str, Record], claims: dict[str, Any]) -> Table:
    """CUTLASS' own union: what a kernel of one tile per CTA saves, as the paper states it."""
    columns = (
        Column("mainloop", "main loop", "KiB"),
        Column("epilogue", "epilogue", "KiB"),
        Column("union", "union", "KiB"),
        Column("separate", "separate", "KiB"),
        Column("wrong", "wrong of 4096", kind="text"),
    )
    paper = claims["checks"]["paper_nonpersistent"]
    sizes, name = records.get("sizes", MISSING), NON_PERSISTENT.name
    parts = {"mainloop": "mainloop", "epilogue": "epilogue", "union": "total"}
    # The paper's "separate" is the two parts alone, without the barriers that "union" includes.
    cells = {
        column: _kib(sizes.cell(f"{_STRUCT}.{name}.{part}"), paper[f"{column}_KiB"]) for column, part in parts.items()
    }
    main, epilogue = cells["mainloop"], cells["epilogue"]
    both = (
        Cell(main.value + epilogue.value) if isinstance(main.value, int) and isinstance(epilogue.value, int) else main
    )
    cells["separate"] = _kib(both, paper["separate_KiB"])
    run = records.get(f"run.{_UNION}.{name}.{paper['at']}", MISSING)
    cells["wrong"] = run.cell("sampled_wrong", paper["bad"])
    row = Row(name, NON_PERSISTENT.label, cells, "96.0 + 17.0 -> 97.0 (113.0 separate)")
    return Table("cutlass_nonpersistent", "CUTLASS' own union: the non-persistent kernel", columns, (row,))


def _kib(raw: Cell, paper: float) -> Cell:
    if not isinstance(raw.value, int):
        return raw
    return Cell(raw.value, paper=paper, verdict=_judge(raw.value == paper * 1024), log=raw.log)


# --------------------------------------------------------------------------------------------------------------
# Verdicts


def _engine_table(records: Mapping[str, Record]) -> Table:
    """The engine's verdicts by themselves: they hold on every machine."""
    columns = (Column(ONE, "one tile per CTA"), Column(ANY, "any number of tiles"))
    verdicts = records.get("verdicts", MISSING)
    rows: list[Row] = []
    reasons: dict[str, str] = {}
    for name, configuration, storage in builds():
        # The kernel with C = D stands for one finding, at one tile per CTA.
        labels = (ONE, ANY) if configuration in CHECKED else (ONE,)
        label = f"{configuration.label}, {storage.value}"
        rows.append(Row(name, label, {tiles: verdicts.cell(f"{name}.{tiles}") for tiles in labels}))
        for tiles in labels:
            if verdicts.values.get(f"{name}.{tiles}") == REFUSED:
                why = str(verdicts.values[f"{name}.{tiles}.why"])
                reasons.setdefault(why, f"{label}, refused: {why}")
    title = "CUTLASS: may main loop and epilogue storage lie as they do?"
    return Table("cutlass_engine", title, columns, tuple(rows), tuple(reasons.values()))


def _verdict_table(records: Mapping[str, Record]) -> Table:
    """The engine's verdict on each kernel and size beside the number of wrong elements."""
    columns: list[Column] = []
    for size in SIZES:
        columns.append(Column(f"engine_{size}", f"{size}³", kind="text"))
        columns.append(Column(f"wrong_{size}", "wrong", kind="text"))
    verdicts = records.get("verdicts", MISSING)
    rows = []
    for name, configuration, storage in builds():
        cells: dict[str, Cell] = {}
        for size in SIZES:
            record = best_run(records, name, size)
            engine, tiles = _engine_at(configuration, size, name, verdicts, record)
            cells[f"engine_{size}"] = engine if engine.value is None else Cell(f"{engine.value} ({tiles})")
            cells[f"wrong_{size}"] = _wrong(record, str(engine.value), judged=configuration in CHECKED)
        rows.append(Row(name, f"{configuration.label}, {storage.value}", cells))
    notes = (
        "At each size: the engine's verdict for the tiles of a CTA in brackets (of the grid that was launched, or for "
        f"{ASSUMED_SMS} SMs), and wrong elements of the 4096 sampled. They agree if accepted means that none is wrong.",
        f"{NOT_CHECKED}: the engine refuses it; --show-race runs it and counts what is wrong.",
    )
    title = "CUTLASS: what the engine says, and what the GPU shows"
    return Table("cutlass_verdicts", title, tuple(columns), tuple(rows), notes)


def best_run(records: Mapping[str, Record], name: str, size: int) -> Record:
    """The run of a program at a size: the one with --show-race, where there is one."""
    race, run = (records.get(f"{kind}.{name}.{size}", MISSING) for kind in ("race", "run"))
    return race if race.status == MEASURED else run


def _engine_at(
    configuration: Configuration, size: int, name: str, verdicts: Record, record: Record
) -> tuple[Cell, int]:
    """The verdict at a size and the tiles per CTA there."""
    measured = record.values.get("tiles_per_cta")
    tiles = measured if isinstance(measured, int) else configuration.tiles_per_cta(size, ASSUMED_SMS)
    if tiles == 1:
        return verdicts.cell(f"{name}.{ONE}"), tiles
    # What is refused at two tiles is refused at more: those executions are among the others.
    more = TWO if tiles == 2 or verdicts.values.get(f"{name}.{TWO}") == REFUSED else ANY
    return verdicts.cell(f"{name}.{more}"), tiles


def _wrong(record: Record, engine: str, *, judged: bool) -> Cell:
    """Wrong elements of the sample. Judged: none is wrong, in the whole matrix, iff the engine accepts."""
    if record.status != MEASURED:
        return record.cell("sampled_wrong")
    if not record.values["checked"]:
        return Cell(NOT_CHECKED, paper=NOT_CHECKED, verdict=SHOWN, log=record.log)
    right = not (record.values["sampled_wrong"] or record.values["full_wrong"])
    verdict = _judge(right == (engine == ACCEPTED)) if judged else SHOWN
    return Cell(record.values["sampled_wrong"], verdict=verdict, log=record.log)


def _details_table(records: Mapping[str, Record]) -> Table:
    """Every run in full; empty where nothing was run."""
    columns = (
        Column("tiles_per_cta", "tiles per CTA", kind="text"),
        Column("verdict", "engine", kind="text"),
        Column("sampled_wrong", "wrong of 4096", kind="text"),
        Column("sampled_max_error", "max |D-ref|", kind="text"),
        Column("full_wrong", "wrong of all", kind="text"),
        Column("wrong_launches", "wrong launches", kind="text"),
        Column("launches", "of", kind="text"),
    )
    rows = []
    for configuration in ALL:
        for storage in configuration.storages:
            for size in SIZES:
                name = f"{storage.value}.{configuration.name}"
                record = best_run(records, name, size)
                if record.status == MEASURED and record.values["checked"]:
                    cells = {column.key: record.cell(column.key) for column in columns}
                    rows.append(Row(f"{name}.{size}", f"{configuration.label}, {storage.value}, {size}³", cells))
    return Table("cutlass_runs", "CUTLASS: every run", columns, tuple(rows))


def _judge(equal: bool) -> str:
    return EQUAL if equal else DIFFERS
