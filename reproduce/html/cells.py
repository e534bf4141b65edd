"""Tables as the page shows them: texts, and marks that say the verdict without colour."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reproduce import report, verify
from reproduce.results import Document
from reproduce.tables import (
    DIFFERS,
    EQUAL,
    FAILED,
    MEASURED,
    NO_RUN,
    NOT_MEASURED,
    SHOWN,
    SLOWED,
    Cell,
    Column,
    Row,
    Table,
)

NEAR, IN_PART = "near", "equal, in part"
IN_RANGE, OUT_OF_RANGE = "in range", "out of range"

# Shape tells the verdicts apart where colour cannot: in greyscale, on paper, to colour-blind readers.
MARKS = {
    EQUAL: "✓",
    NEAR: "≈",
    IN_RANGE: "✓",
    IN_PART: "◐",
    SHOWN: "◇",
    NOT_MEASURED: "○",
    OUT_OF_RANGE: "✗",
    DIFFERS: "✗",
    NO_RUN: "✗",
    FAILED: "✗",
    SLOWED: "†",
}


def tone(verdict: str) -> str:
    """The CSS class of a verdict: good, part, bad, none or plain."""
    if verdict in (EQUAL, NEAR, IN_RANGE):
        return "good"
    if verdict in (DIFFERS, NO_RUN, FAILED, OUT_OF_RANGE):
        return "bad"
    return {IN_PART: "part", SLOWED: "part", NOT_MEASURED: "none"}.get(verdict, "plain")


@dataclass(frozen=True)
class CellView:
    """``paper`` is set where the paper's value is another one; ``mark`` only where a reader must look."""

    text: str
    verdict: str = ""
    paper: str = ""
    mark: str = ""
    numeric: bool = False

    @property
    def tone(self) -> str:
        return tone(self.verdict) if self.verdict else ""


@dataclass(frozen=True)
class RowView:
    label: str
    cells: tuple[CellView, ...]
    paper: str
    verdict: str

    @property
    def mark(self) -> str:
        return MARKS.get(self.verdict, "")

    @property
    def tone(self) -> str:
        return tone(self.verdict)


@dataclass(frozen=True)
class Heading:
    text: str
    numeric: bool  # the column has numbers: it is aligned at the right


@dataclass(frozen=True)
class TableView:
    """``has_paper`` and ``has_verdict``: whether these columns would say anything."""

    id: str
    title: str
    headings: tuple[Heading, ...]
    rows: tuple[RowView, ...]
    notes: tuple[str, ...]
    timed: str  # what the timed values were judged by, "" where none is timed
    has_paper: bool
    has_verdict: bool


def verdict_of(cell: Cell, column: Column) -> str:
    """The cell's verdict in the page's words: equal by a tolerance of the table is ``near``, not equal."""
    if cell.status != MEASURED:
        return cell.status
    if cell.slowed_by:
        return SLOWED
    if cell.verdict == EQUAL and not _same(cell, column):
        return NEAR
    return cell.verdict


def _same(cell: Cell, column: Column) -> bool:
    ours, paper = _plain(cell.value, column), _plain(cell.paper, column)
    return cell.paper is None or ours == paper


def _is_number(text: str) -> bool:
    try:
        float(text.rstrip("*"))
    except ValueError:
        return False
    return True


def _plain(value: object, column: Column) -> object:
    """A value as printed, so that 98304 B, 96 KiB and "96.0" in one column are the same."""
    text = report.value_format(Cell(value), column)  # type: ignore[arg-type]
    try:
        return float(text)
    except ValueError:
        return text


def timed_findings(document: Document) -> tuple[str, dict[str, verify.Finding]]:
    """The profile that judges the document's timed values, and its finding per claim."""
    profile, findings = verify.timing(document)
    return profile, {finding.claim: finding for finding in findings}


def view(document: Document, table: Table) -> TableView:
    profile, findings = timed_findings(document)
    rows = []
    for row in table.rows:
        made = []
        for column in table.columns:
            cell = row.cells.get(column.key)
            finding = findings.get(f"{document.step}/{table.id}/{row.id}/{column.key}")
            made.append(_cell(cell, column, finding) if cell else CellView(""))
        rows.append(RowView(row.label, tuple(made), row.paper.replace("->", "→"), _row_verdict(row, made)))
    timed = any(finding.claim.startswith(f"{document.step}/{table.id}/") for finding in findings.values())
    notes = [f"{row.label}: {note}" for row in table.rows for note in (*row.notes, *report.failures(row))]
    headings = tuple(
        Heading(report.heading(column), any(row.cells[number].numeric for row in rows))
        for number, column in enumerate(table.columns)
    )
    if any(cell.verdict == NOT_MEASURED for row in rows for cell in row.cells):
        notes.insert(0, f"{MARKS[NOT_MEASURED]} not measured, and why.")
    return TableView(
        table.id,
        table.title,
        headings,
        tuple(rows),
        (*notes, *table.notes),
        profile if timed else "",
        has_paper=any(row.paper for row in rows),
        has_verdict=any(row.paper or row.verdict != SHOWN for row in rows),
    )


def _cell(cell: Cell, column: Column, finding: verify.Finding | None) -> CellView:
    if cell.status != MEASURED:
        text = cell.reason if cell.status == NOT_MEASURED and cell.reason else cell.status
        return CellView(text, cell.status, mark=MARKS[cell.status])
    verdict = verdict_of(cell, column)
    if finding is not None and finding.status in (verify.OK, verify.MISMATCH):
        verdict = IN_RANGE if finding.status == verify.OK else OUT_OF_RANGE
    shown = cell.paper is not None and not _same(cell, column)
    paper = report.value_format(replace(cell, value=cell.paper, reason="", slowed_by=""), column) if shown else ""
    mark = MARKS[verdict] if verdict in (DIFFERS, NEAR, IN_RANGE, OUT_OF_RANGE) else ""
    text = report.value_format(cell, column)
    return CellView(text, verdict, paper, mark, _is_number(text))


def _row_verdict(row: Row, cells: list[CellView]) -> str:
    """The row's verdict; a timed row is judged by its timed values, never by "same output" alone."""
    verdicts = [cell.verdict for cell in cells]
    if row.verdict in (DIFFERS, NO_RUN, FAILED, SLOWED):
        return row.verdict
    if OUT_OF_RANGE in verdicts:
        return OUT_OF_RANGE
    if IN_RANGE in verdicts:
        return IN_RANGE
    if row.verdict == EQUAL and NEAR in verdicts:
        return NEAR
    return row.verdict
