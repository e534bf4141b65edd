"""Table 3: registers, CTAs per SM and active warps.

Without a GPU: registers and spills from the ptxas report of the build, occupancy by the CUDA occupancy rules. Active
warps need Nsight Compute. The paper's 1P2C and 1P3C are bound by registers to one CTA per SM; with fewer registers more
fit. These kernels have two rows, as built and at the paper's occupancy (the same programs, with a split of the SM's
memory in which one CTA fits).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reproduce import workloads
from reproduce.machine import Need
from reproduce.occupancy import Occupancy
from reproduce.results import MISSING, Record
from reproduce.step import Context, Measurement, Step
from reproduce.steps.builds import MODES, as_built, build_measurements, profile_measurement
from reproduce.steps.table2_xcomp import OUT_OF_BOUND
from reproduce.tables import DIFFERS, EQUAL, MEASURED, SHOWN, Cell, Column, Row, Scalar, Table

# One CTA of 1P2C and of 1P3C fits into this split of the SM's memory in either mode, two do not.
CARVEOUT_KIB = 132


def _register_bound(item: dict[str, Any]) -> bool:
    """Rows that the paper reports as bound by registers although their memory would allow more CTAs."""
    return item.get("paper_bound") == "registers" and item["kernel"].startswith("matmul")


def measurements(context: Context) -> list[Measurement]:
    items = context.claims["table3"]["rows"]
    found = build_measurements(item["kernel"] for item in items)
    for item in items:
        arguments = _arguments(context, item["kernel"])
        for mode in MODES:
            found.append(profile_measurement(item["kernel"], mode, arguments))
            if _register_bound(item) and context.choreo.own:
                found.append(profile_measurement(item["kernel"], mode, arguments, carveout_kib=CARVEOUT_KIB))
    return found


def _arguments(context: Context, kernel: str) -> list[str]:
    work = context.claims["table3"]["workloads"]
    if kernel.startswith("fa_"):
        return workloads.attention(*(work["attention"][name] for name in ("B", "H", "SEQ")))
    return workloads.gemm(work["gemm"])


COLUMNS = (
    Column("regs_base", "regs base", kind="toolchain"),
    Column("regs_sala", "regs SALA", kind="toolchain"),
    Column("spills", "spills", "B", kind="toolchain"),
    Column("ctas_base", "CTAs/SM base", kind="toolchain"),
    Column("ctas_sala", "CTAs/SM SALA", kind="toolchain"),
    Column("bound", "SALA bound by", kind="text"),
    Column("active_base", "Act. base", "%", kind="timing"),
    Column("active_sala", "Act. SALA", "%", kind="timing"),
)


def tables(records: Mapping[str, Record], context: Context) -> tuple[Table, ...]:
    rows = []
    for item in context.claims["table3"]["rows"]:
        rows.append(_row(item, records, at_paper=False))
        if _register_bound(item) and context.choreo.own:
            rows.append(_row(item, records, at_paper=True))
    notes = (
        "Registers are those of this project's code generator: shown beside the paper's, never above them; so are "
        "CTAs/SM beyond the paper's where its registers bound them. CTAs/SM by the CUDA occupancy rules from "
        "registers, threads and shared memory; where ncu ran, by its limits.",
    )
    return (Table("table3", "Table 3: registers, occupancy, active warps", COLUMNS, tuple(rows), notes),)


def _row(item: dict[str, Any], records: Mapping[str, Record], at_paper: bool) -> Row:
    kernel = item["kernel"]
    carveout = CARVEOUT_KIB if at_paper else None
    cells: dict[str, Cell] = {}
    limits: dict[str, Occupancy | None] = {}
    for mode in MODES:
        built = records.get(f"build.{kernel}.{mode}", MISSING)
        profiled = records.get(f"ncu.{kernel}.{mode}{'.carveout' if at_paper else ''}", MISSING)
        if "paper_base_star" in item and mode == "base" and built.values.get("out_of_bound"):
            star = Cell(OUT_OF_BOUND, paper=OUT_OF_BOUND, verdict=EQUAL, log=built.log)
            cells |= dict.fromkeys(("regs_base", "ctas_base", "active_base"), star)
            continue
        limits[mode] = as_built(built, carveout)
        cells[f"regs_{mode}"] = _registers(built, item.get(f"paper_regs_{mode}"))
        cells[f"ctas_{mode}"] = _ctas(built, profiled, limits[mode], item, mode, at_paper)
        cells[f"active_{mode}"] = profiled.cell("active", item.get(f"paper_active_{mode}"), verdict=SHOWN)
    cells["spills"] = _spills(records, kernel, "paper_base_star" in item)
    bound = limits["sala"].bound if limits["sala"] else "-"
    cells["bound"] = Cell(bound, paper=item.get("paper_bound"))
    name = f"{item['row']} at 1 CTA/SM" if at_paper else item["row"]
    notes = [item["paper_note"]] if "paper_note" in item and not at_paper else []
    if at_paper:
        notes.append(f"at the paper's occupancy: the same programs, with {carveout} KiB of shared memory per SM")
    return Row(name, name, cells, _printed(item), tuple(notes))


def _registers(built: Record, paper: int | None) -> Cell:
    cell = built.cell("registers", paper, verdict=SHOWN)
    if isinstance(cell.value, int) and paper is not None and cell.value > paper:
        return Cell(cell.value, paper=paper, verdict=DIFFERS, log=cell.log)
    return cell


def _spills(records: Mapping[str, Record], kernel: str, starred: bool) -> Cell:
    total = 0
    for mode in MODES[1:] if starred else MODES:
        cell = records.get(f"build.{kernel}.{mode}", MISSING).cell("spills")
        if not isinstance(cell.value, int):
            return cell
        total += cell.value
    return Cell(total, paper=0, verdict=EQUAL if total == 0 else DIFFERS)


def _ctas(
    built: Record, profiled: Record, limit: Occupancy | None, item: dict[str, Any], mode: str, at_paper: bool
) -> Cell:
    """CTAs per SM. More than the paper's is shown, not judged, where registers bound the paper's kernel."""
    paper = item.get(f"paper_ctas_{mode}")
    if profiled.status == MEASURED and isinstance(profiled.values.get("ctas"), int) and not at_paper:
        value: Scalar = profiled.values["ctas"]
    elif limit is not None:
        value = limit.ctas
    else:
        return built.cell("ctas", paper)
    if paper is None or not isinstance(value, int):
        return Cell(value, log=built.log)
    more = value > paper and item["paper_bound"] == "registers"
    return Cell(value, paper=paper, verdict=EQUAL if value == paper else SHOWN if more else DIFFERS, log=built.log)


def _printed(item: dict[str, Any]) -> str:
    def pair(name: str) -> str:
        values = [item.get(f"paper_{name}_{mode}") for mode in MODES]
        return "->".join("?" if value is None else str(value) for value in values)

    return f"regs {pair('regs')}, CTAs {pair('ctas')}, Act. {pair('active')}"


STEP = Step(
    name="table3",
    title="Table 3: registers, occupancy and active warps",
    minutes=1.0,
    claims=("table3",),
    measurements=measurements,
    tables=tables,
    needs=frozenset({Need.NVCC}),
    optional=frozenset({Need.GPU, Need.NCU}),
)
