"""``./ae verify``: what it prints of each step, and its exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from reproduce import cli, references, verify
from reproduce.verify import MISMATCH, NOT_HERE, OK, Finding


@pytest.mark.parametrize(
    ("findings", "printed", "status"),
    [
        ([Finding("s/a", OK, "1", "1")], "figure2: 1 of 1 exact values equal\n", 0),
        (
            [Finding("s/a", OK, "1", "1"), Finding("s/b", NOT_HERE, "2", "no triton")],
            "figure2: 1 of 2 exact values equal; 1 not measured here: no triton\n",
            0,
        ),
        (
            [Finding("s/a", MISMATCH, "1", "2"), Finding("s/b", NOT_HERE, "2", "no triton")],
            "figure2: 0 of 2 exact values equal; 1 not measured here: no triton\nMISMATCH: s/a: expected 1, got 2\n",
            1,
        ),
    ],
)
def test_what_this_machine_lacks_is_said_and_stops_nothing(
    findings: list[Finding],
    printed: str,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(verify, "exact_steps", lambda: ["figure2"])
    monkeypatch.setattr(verify, "exact", lambda document: findings)
    monkeypatch.setattr(references, "run_step", lambda step, context: None)
    assert cli.main(["verify", "exact", "--results", str(tmp_path)]) == status
    assert capsys.readouterr().out == printed
