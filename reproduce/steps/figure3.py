"""Figure 3: GEMM throughput at 4096³, base and SALA back to back; the claim is the ratio.

1P2C and 1P3C are flat in the paper because registers keep one CTA per SM there. Where this compiler's programs need
fewer registers they are measured twice: as built, and at the paper's occupancy (one CTA per SM, by the split of the
SM's memory, with the same programs).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from reproduce import programs, workloads
from reproduce.machine import Need
from reproduce.results import MISSING, Record
from reproduce.step import Context, Measurement, Step
from reproduce.steps.builds import MODES, build_measurements, program
from reproduce.steps.table3 import CARVEOUT_KIB
from reproduce.tables import SHOWN, Column, Row, Scalar, Table

_NEEDS = frozenset({Need.NVCC, Need.GPU})


def _pair(context: Context, *, kernel: str, key: str, carveout_kib: int | None) -> dict[str, Scalar]:
    claims = context.claims["figure3"]
    built = {mode: program(context, kernel, mode, f"{key}.{mode}") for mode in MODES}
    env = {} if carveout_kib is None else {"CHOREO_CARVEOUT_KIB": str(carveout_kib)}
    values: dict[str, Scalar] = {}
    for mode in MODES:
        timed = programs.timed(
            context,
            built[mode],
            workloads.gemm(claims["size"]),
            claims["warmup"],
            claims["repeat"],
            key=f"{key}.{mode}",
            **env,
        )
        values[mode], values[f"{mode}_checksum"] = timed["tflops"], timed["checksum"]
    base, sala = float(str(values["base"])), float(str(values["sala"]))
    values["ratio"] = round(sala / base, 4)
    values["identical"] = values["base_checksum"] == values["sala_checksum"]
    return values


def _rows(context: Context) -> list[tuple[dict[str, Any], str, int | None]]:
    """(claim, key, carveout) of every row."""
    found: list[tuple[dict[str, Any], str, int | None]] = []
    for number, item in enumerate(context.claims["figure3"]["rows"], 1):
        found.append((item, f"{number}", None))
        if context.choreo.own and item["row"].startswith(("1P2C", "1P3C")):
            found.append((item, f"{number}.one_cta", CARVEOUT_KIB))
    return found


def measurements(context: Context) -> list[Measurement]:
    found = build_measurements((item["kernel"] for item, _, _ in _rows(context)), needs=_NEEDS)
    for item, key, carveout in _rows(context):
        run: Any = partial(_pair, kernel=item["kernel"], key=key, carveout_kib=carveout)
        found.append(Measurement(key, run, needs=_NEEDS, seconds=8.0, timed=True))
    return found


def tables(records: Mapping[str, Record], context: Context) -> tuple[Table, ...]:
    columns = (
        Column("base", "base", "TFLOPS", "timing"),
        Column("sala", "SALA", "TFLOPS", "timing"),
        Column("ratio", "SALA/base", "x", "timing"),
        Column("identical", "same output", kind="text"),
    )
    rows = []
    for item, key, carveout in _rows(context):
        record = records.get(key, MISSING)
        cells = {
            "base": record.cell("base", item["paper_guide_base"], verdict=SHOWN),
            "sala": record.cell("sala", item["paper_guide_sala"], verdict=SHOWN),
            "ratio": record.cell("ratio", item["paper_ratio"], verdict=SHOWN),
            "identical": record.cell("identical", True),
        }
        name = item["row"] if carveout is None else f"{item['row']} at 1 CTA/SM"
        paper = f"{item['paper_ratio']:.2f}x ({item['paper_guide_base']} -> {item['paper_guide_sala']})"
        note = [] if carveout is None else [f"at the paper's occupancy, with {carveout} KiB of shared memory per SM"]
        rows.append(Row(name, name, cells, paper, tuple(note)))
    notes = ("The paper's figures are of an H800; `./ae test verify_timing` judges ratios by the machine's profile.",)
    return (Table("figure3", "Figure 3: GEMM throughput, M = N = K = 4096", columns, tuple(rows), notes),)


STEP = Step(
    name="figure3",
    title="Figure 3: GEMM throughput",
    minutes=0.5,
    claims=("figure3",),
    measurements=measurements,
    tables=tables,
    needs=_NEEDS,
)
