"""Correctness: every kernel in both modes checks its output, and both modes give the same bits.

Each program compares sampled elements with a CPU reference and the whole output with a plain GPU computation, then
launches again into a poisoned output with shared memory full of NaN; every launch must give the same bits. Sizes are
the paper's, and sizes that do not divide into tiles.
"""

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
from reproduce.tables import DIFFERS, EQUAL, MEASURED, Cell, Column, Row, Scalar, Table

_NEEDS = frozenset({Need.NVCC, Need.GPU})
_LAUNCHES = 20  # of every case; the cases of the group `launches` have 1000
_GEMMS = {
    "1P1C 64x128 4s": "matmul_f16_dyn_sm90_warpspec_1p1c_64x128_4s",
    "1P1C 64x128 3s": "matmul_f16_dyn_sm90_warpspec_1p1c_64x128_3s",
    "1P1C e4m3": "matmul_e4m3_dyn_sm90_warpspec_1p1c",
    "1P2C": "matmul_f16_dyn_sm90_warpspec_1p2c",
    "1P3C": "matmul_f16_dyn_sm90_warpspec_1p3c",
    "1P3C, no barrier": "matmul_f16_dyn_sm90_warpspec_1p3c_nobarrier",
}
_SIZES = (512, 1024, 2048, 4096, 8192, 16384)


@dataclass(frozen=True)
class _Case:
    """One program on one problem; ``group`` is what ``--only`` selects."""

    key: str
    group: str
    label: str
    kernel: str
    arguments: tuple[str, ...]
    launches: int = _LAUNCHES
    base: bool = True


def _cases() -> list[_Case]:
    found: list[_Case] = []

    def add(
        group: str, label: str, kernel: str, arguments: list[str], base: bool = True, launches: int = _LAUNCHES
    ) -> None:
        found.append(_Case(f"{group}.{len(found) + 1}", group, label, kernel, tuple(arguments), launches, base))

    for name, kernel in _GEMMS.items():
        step = 128 if "e4m3" in kernel else 64
        add("gemm", f"{name}, 2048^3", kernel, workloads.gemm(2048))
        add("gemm", f"{name}, 1000 x 1032 x 528", kernel, workloads.gemm_shape(1000, 1032, 528))
        add("gemm", f"{name}, one tile, K = {step}", kernel, workloads.gemm_shape(64, 128, step))
    for size in _SIZES:
        add("attention", f"FA tuned, B=2 H=16 SEQ={size}", "fa_tuned_1p2c", workloads.attention(2, 16, size))
    add(
        "attention",
        "FA tuned, no barrier, B=2 H=16 SEQ=2048",
        "fa_tuned_1p2c_nobarrier",
        workloads.attention(2, 16, 2048),
    )
    for size in _SIZES:
        add("attention", f"FA 3s, B=2 H=16 SEQ={size}", "fa_3s", workloads.attention(2, 16, size), base=False)
    for size in _SIZES[:5]:
        add("attention", f"FA 1P1C 2s, SEQ={size}", "fa_1p1c_2s", workloads.attention(1, 1, size))
    add("conv", "Conv2d, N=8 64x64x256, 256 filters 3x3", "conv2d_fprop_ws_1p1c", [])
    odd = ["--batch", "3", "--height", "17", "--width", "19", "--channels", "64", "--filters", "72"]
    add("conv", "Conv2d, N=3 17x19x64, 72 filters 3x3", "conv2d_fprop_ws_1p1c", odd)
    for name, kernel in _GEMMS.items():
        add("launches", f"{name}, 1024^3, 1000 launches", kernel, workloads.gemm(1024), launches=1000)
    for name, kernel in (("FA tuned", "fa_tuned_1p2c"), ("FA 3s", "fa_3s"), ("FA 1P1C 2s", "fa_1p1c_2s")):
        label = f"{name}, B=1 H=4 SEQ=1024, 1000 launches"
        add("launches", label, kernel, workloads.attention(1, 4, 1024), base=kernel != "fa_3s", launches=1000)
    small = ["--batch", "2", "--height", "32", "--width", "32", "--channels", "128", "--filters", "128"]
    add("launches", "Conv2d, N=2 32x32x128, 1000 launches", "conv2d_fprop_ws_1p1c", small, launches=1000)
    return found


def _chosen(context: Context) -> list[_Case]:
    cases, only = _cases(), context.options.only
    groups = sorted({case.group for case in cases})
    unknown = [name for name in only if name not in groups]
    if unknown:
        raise ValueError(f"correctness has no cases `{unknown[0]}`: it has {', '.join(groups)}")
    return [case for case in cases if not only or case.group in only]


def _run(context: Context, *, case: _Case, mode: str, key: str) -> dict[str, Scalar]:
    built = program(context, case.kernel, mode, key)
    arguments = [*case.arguments, "--repeat-check", str(case.launches)]
    limit = 300.0
    return programs.run(context, built, arguments, timeout_s=limit, key=key, CHOREO_DISABLE_TIMING="1")


def measurements(context: Context) -> list[Measurement]:
    cases = _chosen(context)
    found = build_measurements((case.kernel for case in cases), needs=_NEEDS)
    for case in cases:
        for mode in MODES if case.base else MODES[1:]:
            key = f"{case.key}.{mode}"
            run: Any = partial(_run, case=case, mode=mode, key=key)
            found.append(Measurement(key, run, needs=_NEEDS, seconds=4.0))
    return found


def tables(records: Mapping[str, Record], context: Context) -> tuple[Table, ...]:
    columns = (
        Column("base", "base", kind="text"),
        Column("sala", "SALA", kind="text"),
        Column("identical", "same bits", kind="text"),
    )
    rows = []
    for case in _chosen(context):
        found = {mode: records.get(f"{case.key}.{mode}", MISSING) for mode in MODES}
        cells = {mode: _verdict(found[mode]) for mode in MODES}
        cells["identical"] = _identical(found["base"], found["sala"])
        if not case.base:
            cells |= {"base": Cell("-"), "identical": Cell("-")}
        rows.append(Row(case.key, case.label, cells, programs.PASSED))
    notes = (
        "Every program: CPU reference on samples, whole output against a plain GPU computation, then "
        f"{_LAUNCHES} launches (1000 where the row says so) into poisoned memory, all with the same bits.",
        "FA 3s has no baseline: without SALA it does not fit a block.",
    )
    return (Table("correctness", "Correctness of every kernel, both modes", columns, tuple(rows), notes),)


def _verdict(record: Record) -> Cell:
    """The program's own verdict line. A record of a run that ended without `Test Passed` is a failure or a [NO-RUN]."""
    if record.status != MEASURED:
        return Cell(None, record.status, record.reason, programs.PASSED, "", record.log)
    return Cell(programs.PASSED, paper=programs.PASSED, verdict=EQUAL, log=record.log)


def _identical(base: Record, sala: Record) -> Cell:
    for record in (base, sala):
        if record.status != MEASURED:
            return Cell(None, record.status, record.reason)
    checksums = base.values.get("checksum"), sala.values.get("checksum")
    if None in checksums:
        return Cell("not printed")
    same = checksums[0] == checksums[1]
    return Cell(same, paper=True, verdict=EQUAL if same else DIFFERS, log=sala.log)


STEP = Step(
    name="correctness",
    title="Correctness of every kernel in both modes",
    minutes=3.0,
    claims=("correctness",),
    measurements=measurements,
    tables=tables,
    needs=_NEEDS,
)
