"""The archive of an evaluation: everything that a reader needs, nothing that merely lies in the folder."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from reproduce import ROOT, bundle, cli


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    for name in ("figure2.json", "logs/figure2/1.log", ".lock-figure2", ".figure2.json.tmp", "notes.txt"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (folder / "logs" / "link.log").symlink_to(tmp_path)
    (folder / "logs" / "file.log").symlink_to(folder / "notes.txt")
    (folder / "report" / "figures").mkdir(parents=True)
    (folder / "report" / "report.html").write_text("page")
    return folder


def test_members(results: Path, tmp_path: Path) -> None:
    target = bundle.write(results, results / "report", tmp_path / "out" / "a.zip")
    with zipfile.ZipFile(target) as archive:
        names = set(archive.namelist())
        assert archive.testzip() is None
        assert archive.read("sala-reproduction/results/report/report.html") == b"page"
    expected = {f"sala-reproduction/{p.relative_to(ROOT).as_posix()}" for p in (ROOT / "expected").rglob("*.json")}
    ours = {f"sala-reproduction/results/{n}" for n in ("figure2.json", "logs/figure2/1.log", "report/report.html")}
    assert expected and names == expected | ours


def test_an_earlier_archive_is_replaced_and_nothing_else_is_left(results: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "a.zip"
    for _ in range(2):
        bundle.write(results, results / "report", target)
    assert [path.name for path in target.parent.iterdir()] == ["a.zip"]


def test_without_results_there_is_no_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "results"
    assert cli.main(["bundle", "--results", str(folder)]) == 2
    assert "no results in" in capsys.readouterr().err and not list(tmp_path.iterdir())
