"""The ends of the logs that results name, for a page that is read without the logs themselves."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from reproduce.results import Document

_LINES, _COLUMNS, _TAIL_BYTES = 12, 240, 16_384


@dataclass(frozen=True)
class Excerpt:
    """The last lines of a log; ``link`` leads from the page to the whole of it."""

    name: str
    link: str
    text: str


def excerpts(document: Document, results: Path, page_folder: Path) -> list[Excerpt]:
    """Every log that the document's records and cells name, each once, in their order."""
    names = [record.log for record in document.records.values()]
    names += [cell.log for table in document.tables for row in table.rows for cell in row.cells.values()]
    made = []
    for name in dict.fromkeys(filter(None, names)):
        path = (results / name).resolve()
        if path.is_relative_to(results.resolve()):  # a results file from elsewhere never shows other files
            made.append(Excerpt(name, Path(os.path.relpath(path, page_folder)).as_posix(), _end(path)))
    return made


def _end(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return "(the log is not in the results folder)"
    lines = text.rstrip().splitlines()
    cut = [line if len(line) <= _COLUMNS else line[: _COLUMNS - 1] + "…" for line in lines[-_LINES:]]
    return "\n".join(["…", *cut] if len(lines) > _LINES or size > _TAIL_BYTES else cut)
