"""Tables as pandas data frames: for every column its value, the paper's value, and the verdict or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from reproduce.results import Document
from reproduce.tables import MEASURED, SLOWED, Cell, Table


def frame(table: Table) -> pd.DataFrame:
    """Indexed by the rows' labels. Cells without a value are missing values, and their column `… status` says why."""
    records = []
    for row in table.rows:
        record: dict[str, object] = {"row": row.label}
        for column in table.columns:
            cell = row.cells.get(column.key)
            name = f"{column.title} [{column.unit}]" if column.unit not in ("", "KiB") else column.title
            if column.unit == "KiB":  # stored in bytes, and tables for machines keep the unit
                name = f"{column.title} [B]"
            record[name] = cell.value if cell else None
            record[f"{column.title} paper"] = cell.paper if cell else None
            record[f"{column.title} status"] = _status(cell) if cell else ""
        record |= {"paper": row.paper, "verdict": row.verdict}
        records.append(record)
    made: pd.DataFrame = pd.DataFrame.from_records(records).set_index("row")
    return made


def _status(cell: Cell) -> str:
    if cell.slowed_by:
        return f"{SLOWED}: {cell.slowed_by}"
    if cell.status == MEASURED:
        return cell.verdict
    return f"{cell.status}: {cell.reason}" if cell.reason else cell.status


def write_csv(documents: Sequence[Document], folder: Path) -> list[Path]:
    """One file per table: ``<step>-<table>.csv``."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for document in documents:
        for table in document.tables:
            path = folder / f"{document.step}-{table.id}.csv"
            frame(table).to_csv(path)
            written.append(path)
    return written
