"""Verdicts per kernel and number of tiles."""

from __future__ import annotations

import pytest

from reproduce.cutlass.configurations import HALF_CD, NON_PERSISTENT, PING_PONG, TABLE2, Configuration, Storage
from reproduce.cutlass.verdict import decide


@pytest.mark.parametrize(
    ("kernel", "storage", "tiles", "verdict"),
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
def test_verdicts(kernel: Configuration, storage: Storage, tiles: int | None, verdict: str) -> None:
    found = decide(kernel, storage, max_tiles_per_cta=tiles)
    assert str(found) == verdict
    assert found.accepted is not bool(found.reasons)
