"""Verification, apart from measuring: results against ``expected/exact`` and ``expected/timing/<machine>.json``.

Exact values must be equal. A timing reference is ``[value, lower, upper, unit]``: ``lower`` and ``upper`` are relative
deviations, so that a result r passes iff value·(1 + lower) ≤ r ≤ value·(1 + upper); null leaves that side open.

    reference                  accepts
    [1.34, -0.03, 0.03, "x"]   1.2998 … 1.3802
    [1.00, -0.02, null, "x"]   0.98 and above
    [533, 0, null, "TFLOPS"]   533 and above

``lower`` is in [-1, 0], ``upper`` is at least 0. Machine profiles are h800 (the paper's values), h100 (the paper's
notes) and h200 (measured by this project); a GPU without a profile is compared to ``any.json``, which only says which
rows gain and which are flat.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproduce import ROOT
from reproduce.machine import profile_of
from reproduce.results import Document
from reproduce.tables import DIFFERS, MEASURED, NOT_MEASURED, Cell, Scalar

EXPECTED = ROOT / "expected"

OK, MISMATCH, OTHER_TOOLCHAIN, NOT_COMPARED = "ok", "MISMATCH", "other toolchain", "not compared"
NOT_HERE = "not measured here"  # neither equal nor different: the machine lacks what it takes


@dataclass(frozen=True)
class Finding:
    """One compared value; ``claim`` is ``step/table/row/column``."""

    claim: str
    status: str
    expected: str
    got: str
    log: str | None = None

    def __str__(self) -> str:
        log = f"; log: results/{self.log}" if self.log else ""
        return f"{self.status}: {self.claim}: expected {self.expected}, got {self.got}{log}"


def cells(document: Document, kinds: tuple[str, ...]) -> Iterator[tuple[str, str, Cell]]:
    """(claim, kind, cell) for every cell in a column of one of ``kinds``."""
    for table in document.tables:
        for row in table.rows:
            for column in table.columns:
                if column.kind in kinds and column.key in row.cells:
                    yield f"{document.step}/{table.id}/{row.id}/{column.key}", column.kind, row.cells[column.key]


def exact_steps(expected: Path = EXPECTED) -> list[str]:
    """Steps that have an exact reference."""
    return sorted(path.stem for path in (expected / "exact").glob("*.json"))


def load_reference(path: Path) -> dict[str, Any]:
    """A reference file of ``expected/``; a malformed one is a defect of the project and may raise."""
    reference: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return reference


def exact(document: Document, expected: Path = EXPECTED) -> list[Finding]:
    """Compares by equality. Values that depend on nvcc are compared for the reference's nvcc only, and none of a
    measurement that this machine could not make; a value that is missing in one that it made is a mismatch."""
    reference = load_reference(expected / "exact" / f"{document.step}.json")
    values: dict[str, Scalar] = reference["values"]
    nvcc, wanted = document.provenance.get("nvcc"), reference["measured"].get("nvcc")
    lacking = {record.reason for record in document.records.values() if record.status == NOT_MEASURED}
    findings, seen = [], set()
    for claim, kind, cell in cells(document, ("exact", "toolchain")):
        seen.add(claim)
        if cell.status == MEASURED and claim not in values:
            findings.append(
                Finding(claim, MISMATCH, "no reference (./ae golden shows it)", _text(cell.value), cell.log)
            )
        elif claim in values and cell.status == NOT_MEASURED and cell.reason in lacking:
            findings.append(Finding(claim, NOT_HERE, _text(values[claim]), cell.reason, cell.log))
        elif claim in values:
            findings.append(_exact_cell(claim, kind, cell, values[claim], nvcc, wanted))
    findings += [
        Finding(claim, MISMATCH, _text(values[claim]), "no such cell") for claim in values if claim not in seen
    ]
    return findings


def _exact_cell(claim: str, kind: str, cell: Cell, value: Scalar, nvcc: str | None, wanted: str | None) -> Finding:
    if cell.status != MEASURED:
        return Finding(claim, MISMATCH, _text(value), f"{cell.status}: {cell.reason}", cell.log)
    if kind == "toolchain" and nvcc != wanted:
        return Finding(claim, OTHER_TOOLCHAIN, f"{_text(value)} with nvcc {wanted}", f"{_text(cell.value)} with {nvcc}")
    if cell.verdict == DIFFERS:
        return Finding(claim, MISMATCH, f"the paper's {_text(cell.paper)}", _text(cell.value), cell.log)
    status = OK if cell.value == value and type(cell.value) is type(value) else MISMATCH
    return Finding(claim, status, _text(value), _text(cell.value), cell.log)


def timing(document: Document, expected: Path = EXPECTED) -> tuple[str, list[Finding]]:
    """Compares to the profile of the GPU that the results come from; returns the profile's name and the findings."""
    gpu = document.provenance.get("gpu")
    profile = (profile_of(gpu["name"]) if gpu else None) or "any"
    path = expected / "timing" / f"{profile}.json"
    if not path.exists():
        profile, path = "any", expected / "timing" / "any.json"
    references: dict[str, list[Any]] = load_reference(path)["values"]
    found = {claim: cell for claim, _, cell in cells(document, ("timing",))}
    findings = []
    for claim, reference in references.items():
        if claim.split("/")[0] != document.step:
            continue
        cell = found.get(claim)
        if cell is None or not isinstance(cell.value, (int, float)):
            why = "no such cell" if cell is None else f"{cell.status}: {cell.reason}"
            status = NOT_COMPARED if cell is not None and cell.status == "not measured" else MISMATCH
            findings.append(Finding(claim, status, interval_text(reference), why, cell.log if cell else None))
            continue
        if cell.slowed_by:
            why = f"{cell.value:.4g} {reference[3]}, timed while the GPU was slowed down ({cell.slowed_by}): repeat it"
            findings.append(Finding(claim, NOT_COMPARED, interval_text(reference), why, cell.log))
            continue
        status = OK if within(cell.value, reference) else MISMATCH
        findings.append(Finding(claim, status, interval_text(reference), f"{cell.value:.4g} {reference[3]}", cell.log))
    return profile, findings


def bounds(reference: list[Any]) -> tuple[float, float]:
    """The interval of a timing reference; raises ValueError for a tolerance outside its domain."""
    value, lower, upper, _ = reference
    if (lower is not None and not -1 <= lower <= 0) or (upper is not None and upper < 0):
        raise ValueError(f"tolerances of {reference} are not in [-1, 0] and [0, …)")
    low = float("-inf") if lower is None else value * (1 + lower)
    high = float("inf") if upper is None else value * (1 + upper)
    return low, high


def within(value: float, reference: list[Any]) -> bool:
    low, high = bounds(reference)
    return low <= value <= high


def interval_text(reference: list[Any]) -> str:
    low, high = bounds(reference)
    value, unit = reference[0], reference[3]
    if high == float("inf"):
        return f"{value} {unit} (at least {low:.4g})"
    return f"{value} {unit} ({low:.4g} … {high:.4g})"


def _text(value: Scalar) -> str:
    return json.dumps(value, ensure_ascii=False)
