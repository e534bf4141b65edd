"""Tables as data: what a step found, cell by cell, beside what the paper prints. Rendering is ``report.py``'s.

Columns have a kind that says how they are judged: ``exact`` by equality, ``toolchain`` by equality for the same nvcc,
``timing`` within a tolerance per machine (``verify.py``), ``text`` not at all.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Union

Scalar = Union[str, int, float, bool, None]

MEASURED, NOT_MEASURED, NO_RUN, FAILED = "measured", "not measured", "no run", "failed"
EQUAL, EQUAL_IN_PART, DIFFERS, SHOWN = "equal", "equal, in part", "differs", "shown"
SLOWED = "slowed down"  # of a row with a value that was timed while heat or power slowed the GPU down: not judged
NOTHING = "-"  # the value of a cell that has none, on any machine


@dataclass(frozen=True)
class Column:
    key: str
    title: str
    unit: str = ""
    kind: str = "exact"


@dataclass(frozen=True)
class Cell:
    """One value. ``verdict`` compares it to ``paper``: equal, differs, shown (both stand there, not judged), or "".

    ``slowed_by``: what slowed the GPU down while the value was timed, "" if nothing did or it is not a timed value.
    """

    value: Scalar
    status: str = MEASURED
    reason: str = ""
    paper: Scalar = None
    verdict: str = ""
    log: str | None = None
    slowed_by: str = ""


@dataclass(frozen=True)
class Row:
    """``paper`` is the row as the paper prints it, e.g. ``112->96 (-14%)``."""

    id: str
    label: str
    cells: dict[str, Cell]
    paper: str = ""
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The row's verdict in words: the worst of its cells; what was not measured is never a pass."""
        cells = self.cells.values()
        if any(cell.verdict == DIFFERS for cell in cells):
            return DIFFERS
        for status in (NO_RUN, FAILED):
            if any(cell.status == status for cell in cells):
                return status
        if any(cell.slowed_by for cell in cells):
            return SLOWED
        judged = [cell for cell in cells if cell.verdict == EQUAL]
        unmeasured = [cell for cell in cells if cell.status == NOT_MEASURED]
        if judged:
            return EQUAL_IN_PART if unmeasured else EQUAL
        measured = [cell for cell in cells if cell.status == MEASURED and cell.value not in (None, NOTHING)]
        return NOT_MEASURED if unmeasured and not measured else SHOWN


@dataclass(frozen=True)
class Table:
    id: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = field(default=())

    def only_timed_slowed(self) -> Table:
        """The table without marks of a slowed GPU on what does not depend on time, such as "same output"."""
        timed = {column.key for column in self.columns if column.kind == "timing"}

        def cells(row: Row) -> dict[str, Cell]:
            return {key: cell if key in timed else replace(cell, slowed_by="") for key, cell in row.cells.items()}

        return replace(self, rows=tuple(replace(row, cells=cells(row)) for row in self.rows))

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = asdict(self)
        data["columns"] = list(data["columns"])
        data["rows"] = [{**row, "notes": list(row["notes"])} for row in data["rows"]]
        data["notes"] = list(self.notes)
        return data

    @staticmethod
    def from_json(data: dict[str, Any]) -> Table:
        rows = tuple(
            Row(
                row["id"],
                row["label"],
                {key: Cell(**cell) for key, cell in row["cells"].items()},
                row["paper"],
                tuple(row["notes"]),
            )
            for row in data["rows"]
        )
        columns = tuple(Column(**column) for column in data["columns"])
        return Table(data["id"], data["title"], columns, rows, tuple(data["notes"]))
