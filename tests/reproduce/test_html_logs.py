"""Ends of logs: bounded, and never of a file outside of the results."""

from __future__ import annotations

from pathlib import Path

from reproduce.html.logs import excerpts
from reproduce.results import Document, Record


def document(*logs: str) -> Document:
    return Document("t", "T", "", {}, {log: Record("measured", log=log) for log in logs})


def test_the_last_lines_with_a_link_from_the_page(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text("\n".join(f"line {i} {'x' * 300}" for i in range(100)))
    (found,) = excerpts(document("logs/a.log"), tmp_path, tmp_path / "report")
    lines = found.text.splitlines()
    assert found.link == "../logs/a.log" and lines[0] == "…" and lines[-1].startswith("line 99 ")
    assert len(lines) == 13 and max(map(len, lines)) == 240


def test_a_log_that_is_gone_says_so(tmp_path: Path) -> None:
    (found,) = excerpts(document("logs/gone.log"), tmp_path, tmp_path)
    assert "not in the results folder" in found.text


def test_files_outside_of_the_results_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    results = tmp_path / "results"
    results.mkdir()
    (results / "link.log").symlink_to(tmp_path / "secret")
    assert not excerpts(document("../secret", "link.log", str(tmp_path / "secret")), results, results)
