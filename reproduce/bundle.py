"""The archive that an evaluator attaches: report, results, logs, and the references they were compared to."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from reproduce import ROOT

# Folders in the archive. The report lies inside the results, so that its links to logs and tables work there.
TOP = "sala-reproduction"
_RESULTS = ("*.json", "logs/**/*", "csv/**/*")


def write(results: Path, report: Path, target: Path) -> Path:
    """Writes ``target`` (.zip) from the results, the folder of the report and expected/; an old one is replaced.

    What is no result stays out: locks, unfinished files, links, anything else that lies in the folder.
    """
    partial = target.with_name(f".{target.name}.partial")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, name in _members(results, report):
                archive.write(path, f"{TOP}/{name}")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def _members(results: Path, report: Path) -> Iterator[tuple[Path, str]]:
    for pattern in _RESULTS:
        for path in _files(results, pattern):
            yield path, f"results/{path.relative_to(results).as_posix()}"
    for path in _files(report, "**/*"):
        yield path, f"results/report/{path.relative_to(report).as_posix()}"
    for path in _files(ROOT / "expected", "**/*.json"):
        yield path, path.relative_to(ROOT).as_posix()


def _files(folder: Path, pattern: str) -> list[Path]:
    found = (path for path in folder.glob(pattern) if path.is_file() and not path.is_symlink())
    return sorted(path for path in found if not path.name.startswith("."))
