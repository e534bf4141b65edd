"""Matrix instructions (wgmma), which read shared memory in groups."""

from __future__ import annotations

from collections.abc import Mapping

from croqtile.validation import footprint
from croqtile.validation.cursor import Cursor, union
from croqtile.validation.events import Event, Refusal
from croqtile.validation.progress import Match
from croqtile.validation.reference import Accesses
from croqtile.validation.values import Bounds
from hb_analyzer import model


def mma(at: Cursor, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
    at.inside(state, event, event.masks[0], bounds)
    if not state.fenced:
        raise Refusal(f"no wgmma.fence before: {at.next(state)}")
    if state.unfenced or state.unmet:
        raise Refusal(f"what the warps stored may not be visible yet: {at.next(state)}")
    return state._replace(part=state.part | event.masks[0], met=False, clean=False)


def commit(at: Cursor, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
    step, steps = at.step(state), 1
    if isinstance(step, Accesses) and step.kind == "mma":
        missing = union(at.targets(state, bounds)) & ~state.part
        if missing:
            raise Refusal(f"{footprint.describe(missing)} are not read before the commit: {at.next(state)}")
        step, steps = at.reference.code[state.position + 1], 2
    if not isinstance(step, model.Commit):
        raise Refusal(f"a commit, but the next operation is: {at.next(state)}")
    return at.done(state, steps)._replace(fenced=False, met=False)


def wait(at: Cursor, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
    step = at.step(state)
    if not isinstance(step, model.Drain) or step.pending != event.number:
        raise Refusal(f"a wait that leaves {event.number} groups, but the next operation is: {at.next(state)}")
    return at.done(state)._replace(met=False, clean=False)
