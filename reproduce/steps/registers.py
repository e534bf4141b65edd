"""Registers, spills, bytes and occupancy of every kernel under several CUDA 13 minors. Needs nvcc, no GPU.

Shows that bytes and occupancy do not move with the toolchain, and how registers do. Without ``--cuda`` it uses the nvcc
at hand; ``--cuda 13.0,13.1`` takes each minor from its PyPI wheels, kept in build/cuda.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from reproduce import programs
from reproduce.machine import Need
from reproduce.programs import OutOfBoundError
from reproduce.provision import find_minor, nvcc_of_minor
from reproduce.results import MISSING, Record
from reproduce.step import Context, Measurement, Step
from reproduce.steps.builds import MODES, as_built
from reproduce.tables import MEASURED, Cell, Column, Row, Scalar, Table

KERNELS = (
    "matmul_f16_dyn_sm90_warpspec_1p1c_64x128_4s",
    "matmul_f16_dyn_sm90_warpspec_1p1c_64x128_3s",
    "matmul_e4m3_dyn_sm90_warpspec_1p1c",
    "matmul_f16_dyn_sm90_warpspec_1p2c",
    "matmul_f16_dyn_sm90_warpspec_1p3c",
    "fa_1p1c_2s",
    "fa_tuned_1p2c",
    "fa_3s",
    "conv2d_fprop_ws_1p1c",
)


def _minors(context: Context) -> tuple[str, ...]:
    """ "" stands for the nvcc at hand."""
    return context.options.cuda or ("",)


def _kept_minors(context: Context) -> Path:
    return context.build.parent / "cuda"


def _build(context: Context, *, kernel: str, mode: str, minor: str, key: str) -> dict[str, Scalar]:
    nvcc = nvcc_of_minor(minor, _kept_minors(context)) if minor else None
    try:
        built = programs.build(context, kernel, sala=mode == "sala", key=key, nvcc=nvcc)
    except OutOfBoundError as error:
        return {"out_of_bound": True, "message": str(error)}
    names = ("placement", "registers", "spills", "static", "launch", "threads", "compile_s")
    return {"out_of_bound": False, **{name: getattr(built, name) for name in names}}


def measurements(context: Context) -> list[Measurement]:
    found = []
    for minor in _minors(context):
        if minor:
            find_minor(minor, _kept_minors(context))  # refuses what is none
        for kernel in KERNELS:
            for mode in MODES:
                key = f"{kernel}.{mode}{f'.{minor}' if minor else ''}"
                run: Any = partial(_build, kernel=kernel, mode=mode, minor=minor, key=key)
                needs = frozenset() if minor else frozenset({Need.NVCC})
                found.append(Measurement(key, run, needs=needs, seconds=8.0, parallel=True))
    return found


def tables(records: Mapping[str, Record], context: Context) -> tuple[Table, ...]:
    made = [_table(records, minor) for minor in _minors(context)]
    if len(made) > 1:
        made[-1] = replace(made[-1], notes=(_moves(made),))
    return tuple(made)


def _moves(made: list[Table]) -> str:
    """Which columns differ between the minors, and for which kernels."""
    moved = []
    for first, *others in zip(*(table.rows for table in made), strict=True):
        names = [
            name for name, cell in first.cells.items() if any(row.cells[name].value != cell.value for row in others)
        ]
        if names:
            moved.append(f"{first.label} ({', '.join(names)})")
    return "Moved between these CUDA minors: " + ("; ".join(moved) if moved else "nothing.")


def _table(records: Mapping[str, Record], minor: str) -> Table:
    columns = tuple(
        Column(f"{name}_{mode}", f"{title} {mode if mode == 'base' else 'SALA'}", unit, kind)
        for name, title, unit, kind in (
            ("placement", "bytes", "B", "exact"),
            ("registers", "regs", "", "toolchain"),
            ("spills", "spills", "B", "toolchain"),
            ("ctas", "CTAs/SM", "", "toolchain"),
        )
        for mode in MODES
    )
    rows = []
    for kernel in KERNELS:
        cells: dict[str, Cell] = {}
        for mode in MODES:
            record = records.get(f"{kernel}.{mode}{f'.{minor}' if minor else ''}", MISSING)
            cells |= _cells(record, mode)
        rows.append(Row(kernel, kernel, cells))
    title = f"Registers, spills and occupancy, CUDA {minor}" if minor else "Registers, spills and occupancy"
    return Table(f"cuda_{minor}" if minor else "registers", title, columns, tuple(rows))


def _cells(record: Record, mode: str) -> dict[str, Cell]:
    names = ("placement", "registers", "spills", "ctas")
    if record.status == MEASURED and record.values.get("out_of_bound"):
        return {f"{name}_{mode}": Cell("does not compile", log=record.log) for name in names}
    cells = {f"{name}_{mode}": record.cell(name) for name in names[:3]}
    limit = as_built(record)
    cells[f"ctas_{mode}"] = Cell(limit.ctas, log=record.log) if limit else record.cell("ctas")
    return cells


STEP = Step(
    name="registers",
    title="Registers, spills and occupancy of every kernel",
    minutes=0.5,
    claims=("table3",),
    measurements=measurements,
    tables=tables,
    needs=frozenset({Need.NVCC}),
)
