"""Table 4: what each ingredient of the analysis contributes. Needs no GPU.

Two halves: shared memory of the 1P3C GEMM, and whether K_s and V_s of the attention pipeline may overlap. The ablation
"HB w/o acyclic" is unsound on purpose, and the table says which complete proof refutes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from reproduce import kernels
from reproduce.choreo import Choreo
from reproduce.results import MISSING, Record
from reproduce.step import Context, FailedError, Measurement, Step
from reproduce.steps.allocation import allocation, analyzer
from reproduce.tables import Column, Row, Scalar, Table

_PAIR = ["K_s", "V_s"]


def _kernel_bytes(context: Context, *, item: dict[str, Any], key: str) -> dict[str, Scalar]:
    if item["how"] in ("base", "sala"):
        values = allocation(context, item["kernel"], sala=item["how"] == "sala", key=key)
        if item["how"] == "sala":
            values["refusals"] = _refusals(context, item["kernel"], key)
        else:
            # Without SALA the compiler gives every buffer its own place: nothing overlaps, which is trivially sound.
            values |= {"overlap": False, "sound": True}
        return values
    report = analyzer(
        context, ["pattern", _emit_pattern(context, item["kernel"], key)], key=key, acyclic=item["how"] == "acyclic"
    )
    return {"bytes": report["smem_optimized"]}


def _emit_pattern(context: Context, kernel: str, key: str) -> str:
    """The kernel's synchronisation structure as a pattern file; always by this project's compiler."""
    out = context.build / "patterns" / f"{kernel}.{key}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    own = Choreo.project()
    finished = own.run(["--emit-pattern", out, kernels.source(kernel)], log=context.log(f"{key}.emit"))
    if not finished.ok:
        raise FailedError(finished.last_line())
    return str(out)


def _refusals(context: Context, kernel: str, key: str) -> str:
    """Why SALA keeps buffers of ``kernel`` apart, one refusal per line; "" for a compiler that cannot say."""
    if not context.choreo.own:
        return ""
    found = context.choreo.explain(kernels.source(kernel), log=context.log(f"{key}.explain"))
    return "\n".join(_reason(refusal) for refusal in found)


def _safety(context: Context, *, item: dict[str, Any], key: str) -> dict[str, Scalar]:
    """The pattern's verdict on K_s and V_s; ``sound`` if it is no, or if the complete analysis proves it too.

    ``refutation`` is the complete analysis's reason for refusing a pair that the ablation accepts.
    """
    path = kernels.pattern(item["pattern"])
    report = analyzer(context, ["pattern", path], key=key, acyclic=item["how"] != "no_acyclic")
    overlaps = {(a, b): verdict for a, b, verdict in report["overlaps"]}
    complete = analyzer(context, ["pattern", path], key=f"{key}.complete")
    refused = {tuple(refusal["pair"]): refusal for refusal in complete["refusals"]}
    pair = (_PAIR[0], _PAIR[1])
    accepted = bool(overlaps[pair])
    return {
        "safe_pairs": sum(bool(verdict) for verdict in overlaps.values()),
        "overlap": accepted,
        "sound": not accepted or pair not in refused,
        "refutation": _reason(refused[pair]) if accepted and pair in refused else "",
        "reason": _reason(refused[pair]) if not accepted and pair in refused else "",
    }


def _reason(refusal: dict[str, Any]) -> str:
    return f"{' and '.join(refusal['pair'])} stay apart ({refusal['kind']}): {refusal['why']}"


def measurements(context: Context) -> list[Measurement]:
    claims = context.claims["table4"]
    found = []
    for half in ("shared_memory", "safety"):
        for number, item in enumerate(claims[half], 1):
            key = f"{half}.{number}"
            run: Any = partial(_safety if "pattern" in item else _kernel_bytes, item=item, key=key)
            found.append(Measurement(key, run, seconds=0.6, parallel=True))
    return found


def tables(records: Mapping[str, Record], context: Context) -> tuple[Table, ...]:
    claims = context.claims["table4"]
    memory, safety = [], []
    for number, item in enumerate(claims["shared_memory"], 1):
        record = records.get(f"shared_memory.{number}", MISSING)
        cells = {"bytes": record.cell("bytes", item["paper_bytes"])}
        kernel = "1P3C, no barrier" if item["kernel"].endswith("_nobarrier") else "1P3C"
        notes = _told(record, without=records.get("shared_memory.3", MISSING)) if item["how"] == "sala" else ()
        memory.append(Row(str(number), f"{item['config']} ({kernel})", cells, str(item["paper_bytes"]), notes))
    for number, item in enumerate(claims["safety"], 1):
        record = records.get(f"safety.{number}", MISSING)
        names = ("bytes", "safe_pairs", "overlap", "sound")
        cells = {name: record.cell(name, item[f"paper_{name}"]) for name in names if f"paper_{name}" in item}
        told = [str(record.values["reason"])] if record.values.get("reason") else []
        if record.values.get("refutation"):
            told.append(f"refuted by the complete analysis: {record.values['refutation']}")
        safety.append(Row(str(number), item["config"], cells, _printed(item), tuple(told)))
    return (
        Table(
            "shared_memory",
            "Table 4: shared memory, 1P3C GEMM",
            (Column("bytes", "shared memory", "B"),),
            tuple(memory),
        ),
        Table(
            "safety",
            "Table 4: safety, may K_s and V_s of the attention pipeline overlap?",
            (
                Column("bytes", "shared memory", "B"),
                Column("safe_pairs", "safe pairs"),
                Column("overlap", "K_s/V_s overlap"),
                Column("sound", "sound"),
            ),
            tuple(safety),
        ),
    )


def _told(record: Record, without: Record) -> tuple[str, ...]:
    """Refusals of this kernel that the kernel with the barrier does not have: what the missing barrier costs."""

    def refusals(each: Record) -> dict[str, str]:
        lines = str(each.values.get("refusals") or "").splitlines()
        return {line.split(" stay apart ")[0]: line for line in lines}

    usual = refusals(without)
    return tuple(line for pair, line in refusals(record).items() if pair not in usual)


def _printed(item: dict[str, Any]) -> str:
    parts = [f"{item['paper_bytes']} B"] if "paper_bytes" in item else [f"{item['paper_safe_pairs']} pairs"]
    parts.append("overlap" if item["paper_overlap"] else "no overlap")
    parts.append("sound" if item["paper_sound"] else "UNSOUND")
    return ", ".join(parts)


STEP = Step(
    name="table4",
    title="Table 4: ablation of the analysis",
    minutes=0.1,
    claims=("table4",),
    measurements=measurements,
    tables=tables,
)
