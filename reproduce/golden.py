"""The references in ``expected/``: their difference to the results at hand, and the only way to rewrite them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reproduce.machine import profile_of
from reproduce.results import Document, write_atomically
from reproduce.tables import MEASURED, NOT_MEASURED, Scalar
from reproduce.verify import EXPECTED, cells, load_reference

# The paper's variability: gains repeat within 3 %, flat rows within 2 %. A wider spread of our own runs widens it.
GAIN_TOLERANCE, FLAT_TOLERANCE = 0.03, 0.02


def exact_reference(document: Document, previous: dict[str, Any] | None = None) -> dict[str, Any]:
    """The exact reference that ``document`` gives. Values of ``previous`` that it could not measure are kept, and with
    them, on a machine without nvcc, the nvcc that they come from."""
    before = previous or {}
    kept, values = before.get("values", {}), {}
    for claim, _, cell in cells(document, ("exact", "toolchain")):
        if cell.status == MEASURED:
            values[claim] = cell.value
        elif cell.status == NOT_MEASURED and claim in kept:
            values[claim] = kept[claim]
    origin = dict(document.provenance)
    origin["nvcc"] = origin.get("nvcc") or before.get("measured", {}).get("nvcc")
    return {
        "step": document.step,
        "measured": {name: origin.get(name) for name in ("commit", "dirty", "nvcc", "compiler", "python", "started")},
        "values": values,
    }


def timing_reference(runs: Sequence[Sequence[Document]], previous: dict[str, Any] | None) -> dict[str, Any]:
    """A machine profile from several runs (each a sequence of documents): median, tolerance from the spread.

    Only ratios and percentages become references. Values of ``previous`` for claims that no run has are kept.
    """
    found: dict[str, list[float]] = {}
    units: dict[str, str] = {}
    for documents in runs:
        for document in documents:
            by_column = {(table.id, column.key): column.unit for table in document.tables for column in table.columns}
            for claim, _, cell in cells(document, ("timing",)):
                table, column = claim.split("/")[1], claim.rsplit("/", 1)[1]  # a row's name may hold slashes
                unit = by_column[table, column]
                if (
                    isinstance(cell.value, (int, float))
                    and cell.status == MEASURED
                    and unit in ("x", "%")
                    and not cell.slowed_by
                ):
                    found.setdefault(claim, []).append(float(cell.value))
                    units[claim] = unit
    values = dict((previous or {}).get("values", {}))
    for claim, numbers in sorted(found.items()):
        middle = statistics.median(numbers)
        flat = units[claim] == "x" and abs(middle - 1) < 2 * FLAT_TOLERANCE
        least = FLAT_TOLERANCE if flat else GAIN_TOLERANCE
        spread = max(max(numbers) - middle, middle - min(numbers)) / middle if middle else 0.0
        tolerance = round(max(least, 2 * spread), 4)
        values[claim] = [round(middle, 4), -tolerance, tolerance, units[claim]]
    latest = runs[-1][-1].provenance
    measured = {name: latest.get(name) for name in ("commit", "dirty", "nvcc", "compiler", "gpu", "started")}
    commits = list(dict.fromkeys(run[-1].provenance.get("commit") for run in runs))
    if len(commits) > 1:
        measured["commits"] = commits
    return {"measured": {**measured, "runs": len(runs)}, "values": values}


def paper_profiles(claims: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The profiles that the paper's own figures give: h800 and h100, and ``any``, which only has the structure.

    Where the paper and its guide print two values of one figure, the interval holds both.
    """
    h800: dict[str, list[Any]] = {}
    structure: dict[str, list[Any]] = {}
    h100: dict[str, list[Any]] = {}
    for row in claims["figure3"]["rows"]:
        claim = f"figure3/figure3/{figure3_row(row['row'])}/ratio"
        tolerance = claims["figure3"]["paper_variability"]["gains" if row["gain"] else "flat"]
        printed = (row["paper_ratio"], row["paper_guide_ratio"])
        h800[claim] = _interval(row["paper_ratio"], min(printed), max(printed), tolerance, "x")
        h100[claim] = h800[claim]
        if "paper_h100_ratio" in row:
            low, high = row["paper_h100_ratio"]
            h100[claim] = _interval((low + high) / 2, low, high, tolerance, "x")
        is_gain, is_flat = [1.3, -0.1, None, "x"], [1.0, -0.05, 0.05, "x"]
        structure[claim] = is_gain if row["gain"] else [1.0, -0.05, None, "x"] if "3s 64" in row["row"] else is_flat
    for row in claims["table3"]["rows"]:
        for mode in ("base", "sala"):
            value = row.get(f"paper_active_{mode}")
            if value is not None:
                claim = f"table3/table3/{table3_row(row['row'])}/active_{mode}"
                h800[claim] = h100[claim] = [value, -0.05, 0.05, "%"]
                if f"paper_h100_active_{mode}" in row:
                    low, high = row[f"paper_h100_active_{mode}"]
                    h100[claim] = _interval((low + high) / 2, low, high, 0.02, "%")
    flat = claims["fa"]["paper_flat_within_pct"] / 100
    attention = [1.0, -flat, flat, "x"]
    h800[FA_CLAIM] = h100[FA_CLAIM] = structure[FA_CLAIM] = attention
    sources = {
        "h800": (h800, "the paper and its artifact guide, H800 PCIe"),
        "h100": (h100, "the paper's notes on the H100; its H800 values elsewhere"),
        "any": (structure, "structure only: which rows gain, which are flat"),
    }
    return {name: {"measured": {"by": by}, "values": values} for name, (values, by) in sources.items()}


FA_CLAIM = "fa/fa/FA tuned 1P2C, B=2 H=16 SEQ=16384/ratio"


def figure3_row(row: str) -> str:
    """The row that the paper's claim is about: at the paper's occupancy where registers bind its kernels."""
    return f"{row} at 1 CTA/SM" if row.startswith(("1P2C", "1P3C")) else row


table3_row = figure3_row


def _interval(value: float, low: float, high: float, tolerance: float, unit: str) -> list[Any]:
    lower, upper = low * (1 - tolerance) / value - 1, high * (1 + tolerance) / value - 1
    return [round(value, 4), round(lower, 4), round(upper, 4), unit]


def profile_path(documents: Sequence[Document], expected: Path = EXPECTED) -> Path:
    """Where the profile of the GPU of ``documents`` is kept. Raises ValueError if they have no profile."""
    for document in documents:
        gpu = document.provenance.get("gpu")
        profile = profile_of(gpu["name"]) if gpu else None
        if profile:
            return expected / "timing" / f"{profile}.json"
    raise ValueError("the results come from no GPU that has a profile (h800, h100, h200)")


def difference(path: Path, reference: dict[str, Any]) -> list[str]:
    """What writing ``reference`` to ``path`` would change, one line per claim; empty if nothing."""
    old: dict[str, Scalar] = load_reference(path)["values"] if path.exists() else {}
    new: dict[str, Scalar] = reference["values"]
    lines = []
    for claim in sorted({*old, *new}):
        if old.get(claim) != new.get(claim) or (claim in old) != (claim in new):
            before = json.dumps(old[claim]) if claim in old else "nothing"
            after = json.dumps(new[claim]) if claim in new else "nothing"
            lines.append(f"{path.name}: {claim}: {before} → {after}")
    return lines


def write(path: Path, reference: dict[str, Any]) -> None:
    """One claim per line, so that a difference shows in a commit as what it is."""
    claims = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in reference["values"].items()]
    head = json.dumps({**reference, "values": None}, indent=1, ensure_ascii=False)
    text = head.replace('"values": null', '"values": {\n' + ",\n".join(claims) + "\n }")
    write_atomically(path, text + "\n")
