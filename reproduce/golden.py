"""The references in ``expected/``: their difference to the results at hand, and the only way to rewrite them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reproduce.machine import profile_of
from reproduce.results import Document, write_atomically
from reproduce.tables import MEASURED, Scalar
from reproduce.verify import EXPECTED, cells, load_reference

# The paper's variability: gains repeat within 3 %, flat rows within 2 %. A wider spread of our own runs widens it.
GAIN_TOLERANCE, FLAT_TOLERANCE = 0.03, 0.02


def exact_reference(document: Document) -> dict[str, Any]:
    """The exact reference that ``document`` gives."""
    values = {
        claim: cell.value for claim, _, cell in cells(document, ("exact", "toolchain")) if cell.status == MEASURED
    }
    origin = document.provenance
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
                _, table, _, column = claim.split("/")
                unit = by_column[table, column]
                if isinstance(cell.value, (int, float)) and cell.status == MEASURED and unit in ("x", "%"):
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
    return {"measured": {**measured, "runs": len(runs)}, "values": values}


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
    write_atomically(path, json.dumps(reference, indent=1, ensure_ascii=False) + "\n")
