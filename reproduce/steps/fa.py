"""Attention end to end: throughput without and with SALA; the claim is that both modes are within about 2 %."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from reproduce import programs, workloads
from reproduce.machine import Need
from reproduce.results import MISSING, Record
from reproduce.step import Context, Measurement, Step
from reproduce.steps.builds import MODES, build_measurements, program
from reproduce.tables import SHOWN, Cell, Column, Row, Scalar, Table

_NEEDS = frozenset({Need.NVCC, Need.GPU})


@dataclass(frozen=True)
class _Case:
    label: str
    kernel: str
    batch: int
    heads: int
    seq: int
    paper: str = ""
    base: bool = True  # the 3-stage kernel has no baseline: it does not fit a block


_CASES = (
    _Case("FA tuned 1P2C, B=2 H=16 SEQ=16384", "fa_tuned_1p2c", 2, 16, 16384, "358.5 -> 360.6, within 2 %"),
    _Case("FA tuned 1P2C, B=1 H=16 SEQ=16384", "fa_tuned_1p2c", 1, 16, 16384, "305"),
    _Case("FA tuned 1P2C, B=2 H=16 SEQ=4096", "fa_tuned_1p2c", 2, 16, 4096),
    _Case("FA 3s, B=2 H=16 SEQ=16384", "fa_3s", 2, 16, 16384, base=False),
    _Case("FA 3s, B=2 H=16 SEQ=4096", "fa_3s", 2, 16, 4096, base=False),
    _Case("FA 1P1C 2s, B=1 H=1 SEQ=8192", "fa_1p1c_2s", 1, 1, 8192),
)


def _measure(context: Context, *, case: _Case, key: str) -> dict[str, Scalar]:
    claims = context.claims["fa"]
    arguments = workloads.attention(case.batch, case.heads, case.seq)
    modes = MODES if case.base else MODES[1:]
    built = {mode: program(context, case.kernel, mode, f"{key}.{mode}") for mode in modes}
    values: dict[str, Scalar] = {}
    for mode in modes:
        timed = programs.timed(context, built[mode], arguments, claims["warmup"], claims["repeat"], key=f"{key}.{mode}")
        values[mode], values[f"{mode}_checksum"] = timed["tflops"], timed["checksum"]
    if case.base:
        values["ratio"] = round(float(str(values["sala"])) / float(str(values["base"])), 4)
        values["identical"] = values["base_checksum"] == values["sala_checksum"]
    return values


def measurements(context: Context) -> list[Measurement]:
    found = build_measurements((case.kernel for case in _CASES), needs=_NEEDS)
    for number, case in enumerate(_CASES, 1):
        run: Any = partial(_measure, case=case, key=str(number))
        found.append(Measurement(str(number), run, needs=_NEEDS, seconds=10.0, timed=True))
    return found


def tables(records: Mapping[str, Record], context: Context) -> tuple[Table, ...]:
    columns = (
        Column("base", "base", "TFLOPS", "timing"),
        Column("sala", "SALA", "TFLOPS", "timing"),
        Column("ratio", "SALA/base", "x", "timing"),
        Column("identical", "same output", kind="text"),
    )
    rows = []
    for number, case in enumerate(_CASES, 1):
        record = records.get(str(number), MISSING)
        first = number == 1
        cells = {"sala": record.cell("sala", context.claims["fa"]["paper_sala"] if first else None, verdict=SHOWN)}
        if case.base:
            cells["base"] = record.cell("base", context.claims["fa"]["paper_base"] if first else None, verdict=SHOWN)
            cells["ratio"] = record.cell("ratio", verdict=SHOWN)
            cells["identical"] = record.cell("identical", True)
        else:
            cells |= {name: Cell("-") for name in ("base", "ratio", "identical")}
        rows.append(Row(case.label, case.label, cells, case.paper))
    notes = ("FA 3s has no baseline: without SALA it does not fit a block.",)
    return (Table("fa", "Attention end to end", columns, tuple(rows), notes),)


STEP = Step(
    name="fa",
    title="Attention end to end",
    minutes=0.5,
    claims=("fa",),
    measurements=measurements,
    tables=tables,
    needs=_NEEDS,
)
