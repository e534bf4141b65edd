"""Results files: ``results/<step>.json``, checked against ``results.schema.json`` and written atomically.

A results document keeps the raw records (one per measurement, with status, log and duration) apart from the tables made
from them, so that a killed run resumes from its records and a table never outlives what it was made from.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from reproduce.tables import FAILED, MEASURED, NO_RUN, NOT_MEASURED, Cell, Scalar, Table

FORMAT = 1


class ResultsError(Exception):
    """A results file that cannot be read or does not have the format of this version."""


class NoResultsError(Exception):
    """A folder without results; the message says how to make some."""

    def __init__(self, folder: Path, step: str = "figure2") -> None:
        super().__init__(f"no results in {folder}: run a step first, for example ./ae {step}")


@dataclass(frozen=True)
class Record:
    """The outcome of one measurement: its values by name, or why there are none."""

    status: str
    values: dict[str, Scalar] = field(default_factory=dict)
    reason: str = ""
    log: str | None = None
    duration_s: float = 0.0
    when: str = ""
    gpu_state: dict[str, Any] | None = None  # of timed measurements: ``sampling.summarise``

    @property
    def slowed_by(self) -> str:
        """What slowed the GPU down while this was timed, "" if nothing did."""
        return ", ".join((self.gpu_state or {}).get("slowed_by", ()))

    def cell(self, name: str, paper: Scalar = None, verdict: str | None = None) -> Cell:
        """The value ``name`` as a table cell, judged by equality to ``paper`` unless ``verdict`` says otherwise."""
        if self.status != MEASURED:
            return Cell(None, self.status, self.reason, paper, "", self.log)
        value = self.values.get(name)
        if value is None:
            reason = str(self.values.get(f"{name}_reason") or "not reported")
            return Cell(None, NOT_MEASURED, reason, paper, "", self.log)
        if verdict is None:
            verdict = "" if paper is None else ("equal" if value == paper else "differs")
        return Cell(value, MEASURED, "", paper, verdict, self.log, self.slowed_by)


def not_measured(reason: str) -> Record:
    return Record(NOT_MEASURED, reason=reason)


# Stands for a record that no run has made yet.
MISSING = not_measured("not run yet")


def failed(reason: str) -> Record:
    return Record(FAILED, reason=reason)


def no_run(reason: str) -> Record:
    return Record(NO_RUN, reason=reason)


@dataclass
class Document:
    """One step's results; ``complete`` once every record has been attempted in the same state of the project."""

    step: str
    title: str
    fingerprint: str
    provenance: dict[str, Any]
    records: dict[str, Record] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    complete: bool = False

    @property
    def gpu_states(self) -> list[dict[str, Any]]:
        """The state of the GPU in each timed measurement."""
        return [record.gpu_state for record in self.records.values() if record.gpu_state]

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "step": self.step,
            "title": self.title,
            "complete": self.complete,
            "fingerprint": self.fingerprint,
            "provenance": self.provenance,
            "records": {key: asdict(record) for key, record in self.records.items()},
            "tables": [table.to_json() for table in self.tables],
        }


@cache
def _validator() -> Any:
    import jsonschema

    schema = json.loads((Path(__file__).parent / "results.schema.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


def check(data: Any, where: str) -> None:
    """Raises ResultsError naming the first place that does not have the format."""
    for error in sorted(_validator().iter_errors(data), key=lambda error: list(map(str, error.absolute_path))):
        place = "/".join(map(str, error.absolute_path)) or "the top level"
        message = error.message if len(error.message) <= 200 else f"…{error.message[-100:]}"  # it begins with the value
        raise ResultsError(f"{where}: {place}: {message}")


def _digest(data: dict[str, Any]) -> str:
    text = json.dumps({key: value for key, value in data.items() if key != "digest"})
    return hashlib.sha256(text.encode()).hexdigest()


def verdicts(document: Document) -> Counter[str]:
    """How many rows of the document's tables have which verdict."""
    return Counter(row.verdict for table in document.tables for row in table.rows)


def path_of(results: Path, step: str) -> Path:
    return results / f"{step}.json"


def save(document: Document, results: Path) -> Path:
    """Writes ``results/<step>.json``; a reader sees the old file or the new one, never a part."""
    data = document.to_json()
    path = path_of(results, document.step)
    check(data, path.name)
    data["digest"] = _digest(data)
    write_atomically(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    return path


def load(results: Path, step: str) -> Document | None:
    """The document of ``step``, or None if there is none; ResultsError if the file is not what this version writes."""
    path = path_of(results, step)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ResultsError(f"{path}: cannot be read ({error})") from None
    check(data, str(path))
    if data["step"] != step:
        raise ResultsError(f"{path}: holds results of {data['step']}")
    if data.get("digest") not in (None, _digest(data)):  # files of earlier versions have none
        raise ResultsError(f"{path}: was changed after a run wrote it, and is no measurement any more")
    return Document(
        data["step"],
        data["title"],
        data["fingerprint"],
        data["provenance"],
        {key: Record(**record) for key, record in data["records"].items()},
        tuple(Table.from_json(table) for table in data["tables"]),
        data["complete"],
    )


def load_all(results: Path, steps: Iterable[str]) -> tuple[dict[str, Document], dict[str, ResultsError]]:
    """By step: the documents that are there, and why the others that are there cannot be read."""
    documents, problems = {}, {}
    for step in steps:
        try:
            document = load(results, step)
        except ResultsError as error:
            problems[step] = error
            continue
        if document is not None:
            documents[step] = document
    return documents, problems


def set_aside(results: Path, step: str) -> str:
    """Renames a results file that :func:`load` refuses, since the run that asks will write a new one; returns what to
    tell a person, "" if there is no such file."""
    try:
        load(results, step)
        return ""
    except ResultsError as error:
        path = path_of(results, step)
        names = (path.with_name(f"{path.name}.unreadable{number or ''}") for number in count())
        aside = next(name for name in names if not name.exists())
        path.rename(aside)
        return f"{error}: measured again; the file is now {aside.name}"


def write_atomically(path: Path, text: str) -> None:
    """A reader sees the old file or the new one. Its mode follows the umask; an OSError names ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        with partial.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
