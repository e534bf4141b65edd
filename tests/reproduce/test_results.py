from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from reproduce import results
from reproduce.results import Document, Record
from reproduce.tables import Cell, Column, Row, Table

PROVENANCE = {
    "commit": None,
    "dirty": None,
    "command": "python -m reproduce x",
    "started": "2026-01-01T00:00:00+00:00",
    "duration_s": 1.0,
    "python": "3.10",
    "platform": "x",
    "compiler": "choreo",
}


def document() -> Document:
    table = Table("t", "T", (Column("a", "A", "B"),), (Row("1", "one", {"a": Cell(5, paper=5, verdict="equal")}, "5"),))
    return Document("x", "X", "f", dict(PROVENANCE), {"k": Record("measured", {"v": 5})}, (table,), True)


def test_round_trip(tmp_path: Path) -> None:
    results.save(document(), tmp_path)
    assert results.load(tmp_path, "x") == document()
    assert results.load(tmp_path, "y") is None
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]  # nothing temporary is left


def test_a_file_of_another_format_is_refused_with_the_place(tmp_path: Path) -> None:
    path = results.save(document(), tmp_path)
    data = json.loads(path.read_text())
    data["records"]["k"]["status"] = "guessed"
    path.write_text(json.dumps(data))
    with pytest.raises(results.ResultsError, match="records/k/status: 'guessed' is not one of"):
        results.load(tmp_path, "x")
    path.write_text('{"format": 1')
    with pytest.raises(results.ResultsError, match="cannot be read"):
        results.load(tmp_path, "x")


def test_a_file_from_before_gpu_states_and_digests_is_read(tmp_path: Path) -> None:
    path = results.save(document(), tmp_path)
    data = json.loads(path.read_text())
    del data["digest"], data["records"]["k"]["gpu_state"], data["tables"][0]["rows"][0]["cells"]["a"]["slowed_by"]
    path.write_text(json.dumps(data))
    assert results.load(tmp_path, "x") == document()


def test_nothing_invalid_is_written(tmp_path: Path) -> None:
    path = results.save(document(), tmp_path)
    before = path.read_text()
    broken = document()
    broken.tables = (Table("t", "T", (Column("a", "A", kind="guess"),), ()),)
    with pytest.raises(results.ResultsError, match="kind"):
        results.save(broken, tmp_path)
    assert path.read_text() == before


def test_cells_of_a_record() -> None:
    record = Record("measured", {"a": 5, "b_reason": "no counter"}, log="l")
    assert record.cell("a", 5).verdict == "equal"
    assert record.cell("a", 6).verdict == "differs"
    assert record.cell("a", 6, verdict="shown").verdict == "shown"
    assert record.cell("b", 1) == Cell(None, "not measured", "no counter", 1, "", "l")
    assert results.no_run("hung").cell("a", 5) == Cell(None, "no run", "hung", 5)


def test_files_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        assert results.save(document(), tmp_path).stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


def test_a_full_disk_names_the_file_and_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = results.save(document(), tmp_path)
    before = path.read_text()

    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        results.save(document(), tmp_path)
    assert caught.value.filename == str(path) and path.read_text() == before
    assert [each.name for each in tmp_path.iterdir()] == ["x.json"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "[" * 100_000, '{"format": 99}', json.dumps(document().to_json())[:-20]]
)
def test_garbage_is_one_error_that_names_the_file(text: str, tmp_path: Path) -> None:
    results.path_of(tmp_path, "x").write_text(text)
    with pytest.raises(results.ResultsError, match=r"x\.json: "):
        results.load(tmp_path, "x")


@pytest.mark.parametrize("value", ["many", 6, None, True])
def test_what_was_changed_by_hand_is_no_measurement(value: object, tmp_path: Path) -> None:
    """Of the right type or not: a value is what the run wrote, and a table what was made from it."""
    path = results.save(document(), tmp_path)
    for place in (("records", "k", "values", "v"), ("tables", 0, "rows", 0, "cells", "a", "value")):
        data = part = json.loads(path.read_text())
        for key in place[:-1]:
            part = part[key]
        part[place[-1]] = value
        (tmp_path / "changed").mkdir(exist_ok=True)
        results.path_of(tmp_path / "changed", "x").write_text(json.dumps(data))
        with pytest.raises(results.ResultsError, match=r"x\.json: was changed after a run wrote it"):
            results.load(tmp_path / "changed", "x")


def test_a_message_about_a_long_value_is_short(tmp_path: Path) -> None:
    data = {**document().to_json(), "tables": "x" * 10_000}
    results.path_of(tmp_path, "x").write_text(json.dumps(data))
    with pytest.raises(results.ResultsError, match="xxx' is not of type 'array'") as caught:
        results.load(tmp_path, "x")
    assert len(str(caught.value)) < 300 + len(str(tmp_path))


def test_those_that_can_be_read_and_why_not_the_others(tmp_path: Path) -> None:
    results.save(document(), tmp_path)
    (tmp_path / "y.json").write_bytes(b"\xff\xfe")
    documents, problems = results.load_all(tmp_path, ["x", "y", "z"])
    assert (
        list(documents) == ["x"] and "y.json: cannot be read ('utf-8' codec" in str(problems.pop("y")) and not problems
    )


def test_a_file_of_another_step_is_refused(tmp_path: Path) -> None:
    results.save(document(), tmp_path).rename(tmp_path / "y.json")
    with pytest.raises(results.ResultsError, match=r"y.json: holds results of x"):
        results.load(tmp_path, "y")
