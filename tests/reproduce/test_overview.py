from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from reproduce import overview
from reproduce.everything import Outcome
from reproduce.results import Document
from tests.reproduce.test_report import TABLE


def test_the_summary_counts_the_rows_of_every_step(tmp_path: Path) -> None:
    document = Document("t", "T", "", {}, tables=(TABLE,))
    out = io.StringIO()
    outcomes = [Outcome("t", 61.0, 1, document), Outcome("u", 2.0, 3, problem="in use by another run")]
    overview.show_summary(outcomes, 63.0, 4.23, tmp_path, Console(file=out, width=120, color_system=None))
    expected = "1 differs; 1 failed; 1 no run; 2 equal; 1 equal, in part; 1 shown; 2 not measured"
    assert expected in out.getvalue() and str(tmp_path) in out.getvalue()
    assert "in use by another run" in out.getvalue() and "1 min 1 s" in out.getvalue()
    assert "1 min 3 s in all; first verdicts after 4.2 s" in out.getvalue()
