"""Copies into and out of shared memory."""

from __future__ import annotations

import pytest

from croqtile.validation.events import Event, Refusal
from croqtile.validation.values import Shared
from hb_analyzer import model
from tests.croqtile.validation.following import (
    COPIES,
    COPY_OUT,
    DONE,
    FENCE,
    MEET,
    MMA_WAIT,
    STORE,
    STORED,
    TRIGGER,
    WAIT,
    E,
    F,
    arrived,
    follow,
    waited,
)

COPY_IN = model.Access("lhs_s", "w", ends="event", event="f", proxy="async", label="copy lhs_s")


def copied(offset: int = 0, barrier: Shared = F, tensor_map: int = 0) -> Event:
    return Event("copy in", 5, Shared("memory", 1024, offset), barrier=barrier, map=tensor_map)


def announced(size: int = 16384) -> Event:
    return Event("arrive", 4, F, size, 1)


def test_stores_and_copies_out() -> None:
    body = (model.Drain(0, "drain"), STORE, COPY_OUT)
    good = (MMA_WAIT, MEET, STORED, FENCE, MEET, *COPIES, *DONE)
    follow(body, good)
    for missing, why in (
        (1, "the warps have not met since they read shared memory"),
        (3, "may not be visible"),
        (4, "may not be visible"),
        (5, "are not copied out"),
        (7, "covers none"),
        (8, "the code ends"),
    ):
        with pytest.raises(Refusal, match=why):
            follow(body, (*good[:missing], *good[missing + 1 :]))
    with pytest.raises(Refusal, match="may not be visible"):
        follow(body, (MMA_WAIT, MEET, STORED, MEET, FENCE, *COPIES, *DONE))
    with pytest.raises(Refusal, match="while copies out still read"):
        follow((*body, WAIT), (*good[:-1], waited(), good[-1]))


def test_copies_in() -> None:
    body = (COPY_IN, TRIGGER)
    follow(body, (announced(), copied()), together=False)
    follow(body, (Event("expect", 3, F, 16384), copied(), arrived()), together=False)
    for events, why in (
        ((copied(), announced()), "whose bytes have not been announced"),
        ((announced(8192),), r"8192 bytes are expected at f\[0\], but 16384 are copied"),
        ((announced(), copied(128)), r"a copy to bytes 128…16511, which is not part of: copy lhs_s"),
        ((announced(), copied(64)), "not a multiple of 128"),
        ((announced(), copied(barrier=E)), r"the mbarrier of f\[0\]"),
        ((announced(), copied(tensor_map=3)), "M is not described by the host code"),
        ((announced(),), "the code ends, but the program goes on with: copy lhs_s"),
        ((announced(), copied(), copied()), "the next operation is: the end of the role"),
    ):
        with pytest.raises(Refusal, match=why):
            follow(body, events, together=False)
    late = (Event("mma wait", 3, number=0), Event("expect", 3, F, 16384), copied(), MEET, arrived())
    with pytest.raises(Refusal, match="the warps have not met since they used shared memory"):
        follow((model.Drain(0, "drain"), *body), late)
    follow((model.Drain(0, "drain"), *body), (late[0], MEET, *late[1:]))
