"""Stores of tiles."""

from __future__ import annotations

import pytest

from croqtile.validation.events import Event, Refusal
from tests.croqtile.validation.following import STORE, STORED, WAIT, follow


def test_stores_elsewhere() -> None:
    foreign = Event("store", 5, base="memory", masks=(1 << 8192, 0, 0, 0))
    with pytest.raises(Refusal, match=r"bytes 8192…8192, which are not part of: store out_s"):
        follow((STORE,), (foreign,))
    with pytest.raises(Refusal, match="the next operation is: wait e"):
        follow((WAIT, STORE), (STORED,))
