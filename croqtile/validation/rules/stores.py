"""Stores of tiles, which all threads of a warpgroup make together."""

from __future__ import annotations

from collections.abc import Mapping

from croqtile.validation.cursor import Cursor
from croqtile.validation.events import Event, Refusal
from croqtile.validation.progress import Match
from croqtile.validation.values import Bounds


def store(at: Cursor, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
    mask = 0
    for part in event.masks:
        mask |= part
    tile = at.inside(state, event, mask, bounds)
    if not state.part and state.dirty & tile:
        raise Refusal(f"the warps have not met since they stored to the same bytes: {at.next(state)}")
    if not state.clean:
        raise Refusal(f"the warps have not met since they read shared memory: {at.next(state)}")
    warps = tuple(done | part for done, part in zip(state.warps, event.masks, strict=True))
    dirty = state.dirty | tile
    return state._replace(part=state.part | mask, warps=warps, unfenced=True, unmet=True, dirty=dirty, met=False)
