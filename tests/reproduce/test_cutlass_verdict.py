"""Verdicts per kernel and number of tiles."""

from __future__ import annotations

import pytest

import hb_analyzer
from hb_analyzer.report import Placement, Report, Verdict
from reproduce.cutlass.configurations import HALF_CD, NON_PERSISTENT, PING_PONG, TABLE2, Configuration, Storage
from reproduce.cutlass.verdict import decide


@pytest.mark.parametrize(
    ("kernel", "storage", "tiles", "expected"),
    [
        (TABLE2[0], Storage.UNION, None, "refused"),
        (TABLE2[0], Storage.UNION, 8, "refused"),
        (TABLE2[0], Storage.UNION, 1, "accepted"),
        (TABLE2[0], Storage.STRUCT, None, "accepted"),
        (PING_PONG, Storage.UNION, None, "refused"),
        (PING_PONG, Storage.UNION, 1, "accepted"),
        (NON_PERSISTENT, Storage.UNION, None, "accepted"),
        (HALF_CD, Storage.UNION, 1, "refused"),
        (HALF_CD, Storage.STRUCT, 1, "accepted"),
    ],
)
def test_verdicts(kernel: Configuration, storage: Storage, tiles: int | None, expected: str) -> None:
    found = decide(kernel, storage, max_tiles_per_cta=tiles)
    assert str(found) == expected
    assert found.accepted is not bool(found.reasons)


def test_what_the_engine_gives_up_on_is_undecided_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an analysis to the end there are no defects to report, which is no proof that there are none."""
    gave_up = Verdict("A", "D", overlap=False, kind="unknown", why="too many trip counts")
    report = Report("coop", "CUTLASS", 0, (gave_up,), Placement({}, {}, 0, 0, exact=True))
    monkeypatch.setattr(hb_analyzer, "analyse", lambda program: report)
    for storage in Storage:
        found = decide(TABLE2[0], storage, max_tiles_per_cta=1)
        assert str(found) == "undecided"
        assert not found.accepted
        assert "too many trip counts" in found.reasons[0]
