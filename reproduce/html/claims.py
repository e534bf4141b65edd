"""The top of the page: one line per claim of the paper, and what was not measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from reproduce import verify
from reproduce.html.cells import IN_PART, IN_RANGE, MARKS, NEAR, OUT_OF_RANGE, timed_findings, tone, verdict_of
from reproduce.results import Document
from reproduce.step import Step
from reproduce.tables import DIFFERS, EQUAL, FAILED, NO_RUN, NOT_MEASURED, SHOWN, SLOWED

# How a reader is told what judged a timed value.
PROFILES = {
    "h800": "the paper's values (H800)",
    "h100": "the paper's notes (H100)",
    "h200": "this project's reference runs (H200)",
    "any": "the structure that any GPU shows (which rows gain, which stay flat)",
}


@dataclass(frozen=True)
class Claim:
    step: str
    title: str
    verdict: str
    details: tuple[str, ...]
    has_results: bool
    outside: tuple[str, ...] = ()  # timed values that are not in a range, with the range

    @property
    def mark(self) -> str:
        return MARKS.get(self.verdict, "")

    @property
    def tone(self) -> str:
        return tone(self.verdict)


@dataclass(frozen=True)
class Gap:
    """Something without a value: ``what`` (step and table), how many cells, and why."""

    what: str
    cells: int
    why: str


def claims(steps: Mapping[str, Step], documents: Mapping[str, Document], problems: Mapping[str, str]) -> list[Claim]:
    """One line per step, in the order of ``steps``; ``problems`` names results files that could not be read."""
    found = []
    for name, step in steps.items():
        if name in documents:
            found.append(_claim(documents[name], of_paper=bool(step.claims)))
        elif name in problems:
            found.append(Claim(name, step.title, FAILED, (problems[name],), False))
        else:
            found.append(Claim(name, step.title, NOT_MEASURED, (f"No results yet: ./ae {name} makes them.",), False))
    return found


def tally(documents: Sequence[Document]) -> Counter[str]:
    """How many cells have which verdict. Timed cells that a profile judges count as in or out of range."""
    counts: Counter[str] = Counter()
    for document in documents:
        _, findings = timed_findings(document)
        for table in document.tables:
            for row in table.rows:
                for column in table.columns:
                    if column.key not in row.cells:
                        continue
                    finding = findings.get(f"{document.step}/{table.id}/{row.id}/{column.key}")
                    verdict = verdict_of(row.cells[column.key], column)
                    if finding is not None and finding.status in (verify.OK, verify.MISMATCH):
                        verdict = IN_RANGE if finding.status == verify.OK else OUT_OF_RANGE
                    if verdict:
                        counts[verdict] += 1
    return counts


def _claim(document: Document, *, of_paper: bool) -> Claim:
    """``of_paper``: values are compared to the paper's; else to what they must be, such as no broken answer."""
    counts = tally([document])
    words = (
        (EQUAL, "equal to the paper's" if of_paper else "as they must be"),
        (NEAR, "near the paper's, within the table's tolerance"),
        (DIFFERS, "differ from the paper's" if of_paper else "not as they must be"),
        (NO_RUN, "did not run to the end"),
        (FAILED, "failed"),
        (SLOWED, "timed while the GPU was slowed down, not judged"),
        (SHOWN, "shown beside the paper's, not judged" if of_paper else "shown, not judged"),
        (NOT_MEASURED, "not measured"),
    )
    parts = [f"{counts[verdict]} {text}" for verdict, text in words if counts[verdict]]
    details = [f"Values: {', '.join(parts)}." if parts else "No value of it is judged."]
    timed, outside = _timed(document)
    details += timed
    details += _tried(document)
    if not document.complete:
        details.append("The step was interrupted: the same command goes on from there.")
    return Claim(document.step, document.title, _verdict(counts), tuple(details), True, tuple(outside))


def _tried(document: Document) -> list[str]:
    """What the evidence of soundness rests on: how much was tried for each claim, and how often it was broken."""
    if document.step != "soundness":
        return []
    rows = [row for table in document.tables if table.id == "soundness" for row in table.rows]
    lines = []
    for row in rows:
        tried, broken = row.cells.get("tried"), row.cells.get("broken")
        if tried and broken and tried.value and row.id in ("overlap", "executions", "mutants"):
            lines.append(f"{row.label[0].upper()}{row.label[1:]}: {broken.value} found in {tried.value}.")
    return lines


def _timed(document: Document) -> tuple[list[str], list[str]]:
    """Timed values against the profile of their GPU and, for comparison, the paper's machine and the bare structure:
    a sentence per profile, and the values that are outside of one.
    """
    lines: list[str] = []
    outside: list[str] = []
    seen: set[str] = set()
    present = {claim for claim, _, _ in verify.cells(document, ("timing",))}
    gpu = document.provenance.get("gpu")
    for name in (gpu["name"] if gpu else "", "H800", ""):
        origin = {**document.provenance, "gpu": {"name": name}}
        profile, findings = verify.timing(replace(document, provenance=origin))
        found = [finding for finding in findings if finding.status in (verify.OK, verify.MISMATCH)]
        compared = [finding for finding in found if finding.claim in present]
        if profile in seen or not compared:
            continue
        good = sum(finding.status == verify.OK for finding in compared)
        comparison = "For comparison: " if lines else ""
        meaning = PROFILES.get(profile, profile)
        missing = len(found) - len(compared)
        more = f" {missing} values of it are no row of these results." if missing else ""
        lines.append(f"{comparison}{good} of {len(compared)} timed values in the range of {meaning}.{more}")
        for finding in compared:
            if finding.status == verify.MISMATCH:
                value = finding.claim.split("/", 2)[2]
                outside.append(f"{value}: {finding.got}; {meaning}: {finding.expected}")
        seen.add(profile)
    return lines, outside


def _verdict(counts: Counter[str]) -> str:
    for bad in (DIFFERS, FAILED, NO_RUN, OUT_OF_RANGE):
        if counts[bad]:
            return bad
    if counts[SLOWED]:
        return SLOWED
    if counts[IN_RANGE]:
        return IN_RANGE
    if counts[EQUAL] or counts[NEAR]:
        if counts[NOT_MEASURED]:
            return IN_PART
        return NEAR if counts[NEAR] else EQUAL
    return SHOWN if counts[SHOWN] or not counts[NOT_MEASURED] else NOT_MEASURED


def gaps(steps: Mapping[str, Step], documents: Mapping[str, Document], problems: Mapping[str, str]) -> list[Gap]:
    """What has no value, and why: first the values that a step lacks, then the steps that have none at all."""
    found: Counter[tuple[str, str]] = Counter()
    for document in documents.values():
        for table in document.tables:
            for row in table.rows:
                for cell in row.cells.values():
                    if cell.status in (NOT_MEASURED, NO_RUN, FAILED):
                        why = cell.reason if cell.status == NOT_MEASURED else f"{cell.status}: {cell.reason}"
                        found[f"{document.step}: {table.title}", why] += 1
    missing = [
        Gap(step.title, 0, problems.get(name, "no results yet"))
        for name, step in steps.items()
        if name not in documents
    ]
    return [Gap(what, count, why) for (what, why), count in found.items()] + missing
