"""`all`: what a step leaves behind, however it ends, is in the summary and in the exit status."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from reproduce.everything import Campaign, one_after_another, side_by_side
from reproduce.results import Document, save
from reproduce.schedule import Job
from tests.reproduce.test_results import document


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Runs steps given as Python text, with an old results file of step x in the folder."""
    save(document(), tmp_path)

    def execute(**steps: str) -> tuple[int, str]:
        out = io.StringIO()
        campaign = Campaign(tmp_path, Console(file=out, width=120, color_system=None))
        jobs = [Job(name, (sys.executable, "-c", text), uses_gpu=False) for name, text in steps.items()]
        status = side_by_side(jobs, [], campaign, tables=True, expected_statuses=(0, 1))
        return status, out.getvalue()

    return execute


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("raise SystemExit('no such thing')", 1, "no such thing"),
        ("raise KeyError('a defect')", 1, "KeyError: 'a defect'"),
        ("import os; os.kill(os.getpid(), 9)", 137, "exit status -9"),
        ("import sys; print('x is in use by another run'); sys.exit(3)", 3, "x is in use by another run"),
    ],
)
def test_a_step_that_breaks_is_told_and_its_old_results_are_not_shown(run, text: str, status: int, said: str) -> None:  # type: ignore[no-untyped-def]
    found, out = run(x=text)
    summary = out[out.index("Summary") :]
    assert found == status and said in summary and "1 equal" not in summary


def test_the_results_of_this_run_are_shown(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    change = f"""
import pathlib
from reproduce import provenance, results
folder = pathlib.Path({str(tmp_path)!r})
document = results.load(folder, "x")
document.provenance["started"] = provenance.now()
results.save(document, folder)
print("a line")
"""
    status, out = run(x=change)
    assert status == 0 and "x           | a line" in out and "x           | ended after" in out
    assert "1 equal" in out[out.index("Summary") :] and "first verdicts after" in out


def test_an_interrupt_shows_what_there_is(tmp_path: Path) -> None:
    def work(name: str) -> Document:
        if name == "second":
            raise KeyboardInterrupt
        return document()

    out = io.StringIO()
    campaign = Campaign(tmp_path, Console(file=out, width=120, color_system=None))
    with pytest.raises(KeyboardInterrupt):
        one_after_another(["first", "second"], work, lambda _: 0, lambda _: ("", 1), campaign)
    assert "first verdicts after" in out.getvalue() and "first " in out.getvalue()
    assert "second" not in out.getvalue()
