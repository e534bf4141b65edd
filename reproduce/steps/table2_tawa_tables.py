"""The tables of the Tawa rows: bytes beside the paper's, what the GPU says, and the kernels specialized by Triton."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reproduce.claims import ncu_digits, saving_percent
from reproduce.results import MISSING, Record
from reproduce.step import Context
from reproduce.steps.table2_tawa import wrong_modes
from reproduce.tables import DIFFERS, EQUAL, MEASURED, NOT_MEASURED, SHOWN, Cell, Column, Row, Table
from reproduce.tawa.rows import (
    ALL,
    CONTROL,
    INVALIDATE,
    NO_GUARD,
    OVERLAP,
    PAPER,
    REPAIR,
    SHARED_LIMIT,
    STOCK,
    UNCHECKED,
    Kernel,
)

WITHIN = 0.005  # of the paper's bytes: layouts of scratch and mbarriers differ between Triton versions
CANNOT_LAUNCH = "cannot launch"


def tables(records: Mapping[str, Record], context: Context) -> tuple[Table, ...]:
    claims = context.claims["table2_tawa"]
    found = records.get("bytes", MISSING)
    made = (_bytes_table(found, records, claims), _more_table(found))
    on_gpu = any(record.status != NOT_MEASURED for key, record in records.items() if key.startswith("run."))
    return (*made, _right_table(records), _speed_table(records)) if on_gpu else made


# --------------------------------------------------------------------------------------------------------------
# Bytes


def _bytes_table(found: Record, records: Mapping[str, Record], claims: dict[str, Any]) -> Table:
    columns = (
        Column("stock_bytes", "stock", "B"),
        Column("overlap_bytes", "overlap", "B"),
        Column("stock", "stock", "KB"),
        Column("overlap", "overlap", "KB"),
        Column("saving", "saving", "%"),
        Column("control_bytes", "control", "B"),
        Column("ncu_stock", "ncu, stock", "B", kind="text"),
        Column("ncu_overlap", "ncu, overlap", "B", kind="text"),
    )
    by_row = {kernel.row: kernel for kernel in PAPER}
    rows = tuple(_bytes_row(item, by_row[item["row"]], found, records) for item in claims["rows"])
    notes = (
        "Shared memory of the launch (metadata.shared); 1 KB = 1000 bytes. Equal: within 0.5 % of the paper, whose "
        "rows come from a fork of Triton with asynchronous references; these are stock Triton 3.6.0.",
        "FA, stock: shown, not judged. The paper's 198.74 KB are 5 tiles and an output tile padded to 136 columns "
        "(163840 + 34816 B) to 84 B; ours is not padded. Its 258.1 is that with 7 tiles in KiB, so that its 11 % "
        "mix units.",
        f"A launch of more than {SHARED_LIMIT} bytes is refused by the GPU; its bytes are the compiler's.",
        "control: the same GEMM with the epilogue outside of the specialized region, where stock Triton itself reuses "
        "the operands' memory. It is no less small: the saving is that of staging inside the region.",
    )
    return Table("tawa", "Table 2, Tawa rows: shared memory per CTA", columns, rows, notes)


def _bytes_row(item: dict[str, Any], kernel: Kernel, found: Record, records: Mapping[str, Record]) -> Row:
    cells = {f"{mode}_bytes": found.cell(f"{kernel.name}.{mode}") for mode in (STOCK, OVERLAP)}
    for mode, paper in ((STOCK, item["paper_base"]), (OVERLAP, item["paper_sala"])):
        judged = not (kernel.is_attention and mode == STOCK)
        cells[mode] = _near(cells[f"{mode}_bytes"], paper, judged)
    cells["saving"] = _saving(cells, item, judged=not kernel.is_attention)
    cells["control_bytes"] = found.cell(f"{kernel.name}.{CONTROL}") if CONTROL in kernel.modes else Cell("-")
    profiled = records.get("ncu", MISSING)
    for mode in (STOCK, OVERLAP):
        cells[f"ncu_{mode}"] = _confirmed(cells[f"{mode}_bytes"], profiled, f"{kernel.name}.{mode}.dynamic")
    return Row(kernel.name, item["row"], cells, item["paper"])


def _near(raw: Cell, paper: str, judged: bool) -> Cell:
    if not isinstance(raw.value, int):
        return Cell(None, raw.status, raw.reason, paper, "", raw.log)
    near = abs(raw.value / 1000 / float(paper) - 1) <= WITHIN
    verdict = (EQUAL if near else DIFFERS) if judged else SHOWN
    return Cell(ncu_digits(raw.value, "0.00"), paper=paper, verdict=verdict, log=raw.log)


def _saving(cells: Mapping[str, Cell], item: dict[str, Any], judged: bool) -> Cell:
    """From the bytes, rounded as the paper rounds; its own from the KB that it prints."""
    base, sala = cells["stock_bytes"], cells["overlap_bytes"]
    if not isinstance(base.value, int) or not isinstance(sala.value, int):
        return Cell(None, base.status, base.reason)
    value = saving_percent(base.value, sala.value)
    paper = saving_percent(float(item["paper_base"]), float(item["paper_sala"]))
    return Cell(value, paper=paper, verdict=(EQUAL if value == paper else DIFFERS) if judged else SHOWN)


def _confirmed(expected: Cell, profiled: Record, name: str) -> Cell:
    """What Nsight Compute saw; dynamic shared memory must be what the compiler says."""
    if isinstance(expected.value, int) and expected.value > SHARED_LIMIT:
        return Cell(CANNOT_LAUNCH)
    cell = profiled.cell(name)
    if cell.status != MEASURED or not isinstance(expected.value, int):
        return cell
    same = cell.value == expected.value
    return Cell(cell.value, paper=expected.value, verdict=EQUAL if same else DIFFERS, log=cell.log)


def _more_table(found: Record) -> Table:
    columns = (
        Column("stock", "stock", "B"),
        Column("overlap", "overlap", "B"),
        Column("guarded", "guard"),
        Column("placeholders", "placeholder arrays"),
        Column("violations", "data over mbarriers, stock"),
        Column("final", "with the overlap"),
    )
    rows = []
    for kernel in ALL:
        if not kernel.specialized_by_triton:
            continue
        cells = {mode: found.cell(f"{kernel.name}.{mode}") for mode in (STOCK, OVERLAP)}
        cells["guarded"] = _yes(found.cell(f"{kernel.name}.{OVERLAP}.guarded"))
        cells["placeholders"] = found.cell(f"{kernel.name}.{STOCK}.placeholders")
        cells["violations"] = found.cell(f"{kernel.name}.{STOCK}.violations")
        cells["final"] = _none(found.cell(f"{kernel.name}.{OVERLAP}.unsafe"))
        rows.append(Row(kernel.name, _label(kernel), cells))
    notes = (
        "Kernels that Triton's compiler specializes. It initialises mbarriers that nothing uses or invalidates, and "
        "puts tiles over them; the overlap drops them (docs/triton-barrier-reuse.md).",
        "guard: in a persistent kernel the producer waits for the consumer's store before it loads the next tile.",
    )
    return Table("tawa_specialized", "Kernels specialized by Triton", columns, tuple(rows), notes)


def _yes(cell: Cell) -> Cell:
    return cell if cell.value is None else Cell("yes" if cell.value else "no", log=cell.log)


def _none(cell: Cell) -> Cell:
    return cell if cell.value is None else Cell("some" if cell.value else "none", log=cell.log)


def _label(kernel: Kernel) -> str:
    kinds = {"auto": "GEMM", "persistent": "persistent GEMM", "attention": "attention", "gemm": "GEMM (Gluon)"}
    return f"{kinds[kernel.kind]} {kernel.block[0]}x{kernel.block[1]} {kernel.stages}s"


# --------------------------------------------------------------------------------------------------------------
# On the GPU

_MODES = (STOCK, OVERLAP, INVALIDATE, REPAIR, CONTROL, NO_GUARD, UNCHECKED)


def _right_table(records: Mapping[str, Record]) -> Table:
    columns = tuple(Column(mode.replace(" ", "_"), mode, kind="text") for mode in _MODES)
    columns += (Column("max_error", "largest error", kind="text"), Column("bits", "same bits", kind="text"))
    rows = tuple(_right_row(kernel, records.get(f"run.{kernel.name}", MISSING)) for kernel in ALL)
    notes = (
        "Wrong launches of how many, at 4096³ (attention: B=2 H=16 SEQ=4096, causal). GEMM: within 5 % of f32; "
        "attention: |o − ref| ≤ 2 % + 2 % · |ref|.",
        "invalidate: the other remedy. repair: no overlap, placeholder mbarriers dropped.",
        "no guard (SALA_NO_BARRIER=1) and unchecked (placeholder mbarriers kept) are wrong on purpose and not judged.",
        "same bits: every judged mode, in every launch.",
    )
    return Table("tawa_right", "Tawa rows on the GPU: wrong launches", columns, rows, notes)


def _right_row(kernel: Kernel, record: Record) -> Row:
    cells: dict[str, Cell] = {}
    if record.status != MEASURED:
        cells = {mode.replace(" ", "_"): record.cell(mode) for mode in kernel.modes}
        return Row(kernel.name, _label(kernel), cells)
    values = record.values
    judged = {problem.partition(":")[0] for problem in wrong_modes(kernel, dict(values))}
    errors = []
    for mode in kernel.modes:
        key = mode.replace(" ", "_")
        if f"{mode}.launches" not in values:
            cells[key] = Cell(_why_not(record, mode) or "not run")
            continue
        text = f"{values[f'{mode}.wrong_launches']} of {values[f'{mode}.launches']}"
        unjudged = mode in (NO_GUARD, UNCHECKED) or (mode == STOCK and kernel.specialized_by_triton)
        cells[key] = Cell(text, verdict=SHOWN if unjudged else DIFFERS if mode in judged else EQUAL)
        if not unjudged:
            errors.append(float(str(values[f"{mode}.max_error"])))
    same = [values[name] for name in values if name.endswith(".same_bits") and not name.startswith(STOCK)]
    cells["max_error"] = Cell(f"{max(errors):.2g}" if errors else "-")
    cells["bits"] = Cell("yes" if all(same) else "no", verdict=EQUAL if all(same) else DIFFERS)
    return Row(kernel.name, _label(kernel), cells)


def _speed_table(records: Mapping[str, Record]) -> Table:
    columns = (
        *(Column(mode, mode, "TFLOPS", kind="timing") for mode in (STOCK, OVERLAP, INVALIDATE, REPAIR)),
        Column("ratio", "overlap / stock", "x", kind="timing"),
        Column("cost", "overlap / repair", "x", kind="timing"),
        Column("long_stock", "stock, SEQ=16384", "TFLOPS", kind="timing"),
        Column("long_overlap", "overlap, SEQ=16384", "TFLOPS", kind="timing"),
    )
    rows = []
    for kernel in ALL:
        record = records.get(f"run.{kernel.name}", MISSING)
        cells = {mode: _speed(record, mode, "tflops") for mode in (STOCK, OVERLAP, INVALIDATE, REPAIR)}
        cells["ratio"] = _ratio(cells[OVERLAP], cells[STOCK])
        cells["cost"] = _ratio(cells[OVERLAP], cells[REPAIR])
        for mode in (STOCK, OVERLAP):
            cells[f"long_{mode}"] = _speed(record, mode, "long_tflops") if kernel.is_attention else Cell("-")
        rows.append(Row(kernel.name, _label(kernel), _only_possible(kernel, cells)))
    notes = (
        "M = N = K = 4096; attention B=2 H=16 SEQ=4096, causal. Medians of 5 rounds of 50 launches, modes in turns.",
        "overlap / repair is what overlap and guard cost or gain, repair / stock what dropping the mbarriers does.",
    )
    return Table("tawa_speed", "Tawa rows on the GPU: speed", columns, tuple(rows), notes)


def _speed(record: Record, mode: str, what: str) -> Cell:
    why_not = _why_not(record, mode)
    return Cell(why_not) if why_not else record.cell(f"{mode}.{what}")


def _why_not(record: Record, mode: str) -> str:
    """Why a mode did not run though the kernel did, in a word or two ("cannot launch"); empty if it ran."""
    return str(record.values.get(f"{mode}_reason") or "").partition(":")[0]


def _only_possible(kernel: Kernel, cells: dict[str, Cell]) -> dict[str, Cell]:
    """Modes that a kernel does not have are no missing measurement."""
    for mode in (INVALIDATE, REPAIR):
        if mode not in kernel.modes:
            cells[mode] = Cell("-")
    if REPAIR not in kernel.modes:
        cells["cost"] = Cell("-")
    return cells


def _ratio(upper: Cell, lower: Cell) -> Cell:
    if isinstance(upper.value, float) and isinstance(lower.value, float) and lower.value:
        return Cell(round(upper.value / lower.value, 3), slowed_by=upper.slowed_by)  # both are of one record
    missing = next(cell for cell in (upper, lower) if not isinstance(cell.value, float))
    return Cell("-") if missing.status == MEASURED else Cell(None, missing.status, missing.reason)
