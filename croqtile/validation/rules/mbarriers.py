"""Waits for phases of mbarriers, arrivals, and the bytes that arrivals announce."""

from __future__ import annotations

from collections.abc import Mapping

from croqtile.validation.cursor import Cursor
from croqtile.validation.events import Event, Refusal
from croqtile.validation.progress import Match
from croqtile.validation.reference import Accesses
from croqtile.validation.values import Bounds
from hb_analyzer import model


def wait(at: Cursor, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
    step = at.step(state)
    if not isinstance(step, model.Wait):
        raise Refusal(f"wait, but the next operation is: {at.next(state)}")
    slot = at.slot(step, state, bounds)
    assert event.place is not None
    at.findings.bind(*slot, event.place)
    if event.number != int(slot in state.odd):
        raise Refusal(f"{at.next(state)}: parity {event.number}, not {int(slot in state.odd)}")
    return at.done(state)._replace(odd=state.odd ^ {slot}, met=False)


def _setting(at: Cursor, state: Match, bounds: Mapping[str, Bounds]) -> tuple[tuple[str, int], int] | None:
    """The event and slot that the program sets next, and the bytes of the copies that belong to it; None if something
    else comes first."""
    step = at.step(state)
    if isinstance(step, model.Trigger):
        return at.slot(step, state, bounds), state.issued
    if not isinstance(step, Accesses) or step.kind != "copy in":
        return None
    targets = at.targets(state, bounds)
    following = at.reference.code[state.position + 1]
    slots = {target.event for target in targets}
    if not isinstance(following, model.Trigger) or slots != {at.slot(following, state, bounds)}:
        raise Refusal(f"copies that no trigger of their event follows: {at.next(state)}")
    return at.slot(following, state, bounds), sum(target.mask.bit_count() for target in targets)


def arrive(at: Cursor, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
    setting = _setting(at, state, bounds)
    if setting is None or state.early:
        raise Refusal(f"an arrival, but the next operation is: {at.next(state)}")
    slot, size = setting
    assert event.place is not None
    at.findings.bind(*slot, event.place)
    if event.arrivals != 1:
        raise Refusal(f"{event.arrivals} arrivals at once")
    if at.together and (not state.met or state.unfenced):
        raise Refusal(f"one thread arrives, but the warps have not met: {at.next(state)}")
    expected = state.expected + event.number
    if expected != size:
        raise Refusal(f"{expected} bytes are expected at {slot[0]}[{slot[1]}], but {size} are copied")
    if isinstance(at.step(state), model.Trigger):
        return at.done(state)._replace(expected=0, issued=0)
    return state._replace(expected=expected, early=True)


def expect(at: Cursor, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
    setting = _setting(at, state, bounds)
    if setting is None or state.early:
        raise Refusal(f"bytes are announced, but the next operation is: {at.next(state)}")
    assert event.place is not None
    at.findings.bind(*setting[0], event.place)
    return state._replace(expected=state.expected + event.number)
