"""Matrix instructions, in groups."""

from __future__ import annotations

import pytest

from croqtile.validation.events import Event, Refusal
from hb_analyzer import model
from tests.croqtile.validation.following import MEET, MMA_WAIT, STORE, STORED, follow

READ = model.Access("lhs_s", "r", region=((0, 64), (0, 64)), ends="group", proxy="async", label="mma reads lhs_s")
BODY = (READ, model.Commit("commit"), model.Drain(0, "drain"))
MMA_FENCE, COMMIT = Event("mma fence", 3), Event("mma commit", 6)


def read(start: int, size: int) -> Event:
    return Event("mma", 4, base="memory", masks=(((1 << size) - 1) << start,))


def test_a_group() -> None:
    good = (MMA_FENCE, read(0, 4096), read(4096, 4096), COMMIT, MMA_WAIT)
    follow(BODY, good)
    for missing, why in (
        (0, "no wgmma.fence before: mma reads lhs_s"),
        (1, r"bytes 0…4095 are not read before the commit"),
        (3, "a wait that leaves 0 groups, but the next operation is: mma reads lhs_s"),
        (4, "the code ends, but the program goes on with: drain"),
    ):
        with pytest.raises(Refusal, match=why):
            follow(BODY, (*good[:missing], *good[missing + 1 :]))
    with pytest.raises(Refusal, match="which are not part of: mma reads lhs_s"):
        follow(BODY, (MMA_FENCE, read(8192, 16)))
    with pytest.raises(Refusal, match="a wait that leaves 1 groups"):
        follow(BODY, (*good[:-1], Event("mma wait", 4, number=1)))
    with pytest.raises(Refusal, match="a commit, but the next operation is: drain"):
        follow(BODY, (*good[:-1], COMMIT))


def test_what_was_stored_must_be_visible() -> None:
    events = (MEET, STORED, MEET, MMA_FENCE, read(0, 8192))
    with pytest.raises(Refusal, match="may not be visible yet: mma reads lhs_s"):
        follow((STORE, *BODY), events)
