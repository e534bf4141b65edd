"""Copies by the tensor memory accelerator: into shared memory, counted by an mbarrier, and out of it, in groups."""

from __future__ import annotations

from collections.abc import Mapping

from croqtile.validation import footprint
from croqtile.validation.cursor import Cursor, union
from croqtile.validation.events import Event, Refusal
from croqtile.validation.host import TensorMap
from croqtile.validation.progress import Match
from croqtile.validation.reference import Target
from croqtile.validation.values import Bounds


def copy_in(at: Cursor, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
    assert event.barrier is not None
    targets = at.targets_of(state, event, bounds)
    mask = _box(at, event)
    if at.together and not (state.clean and not state.unfenced and not state.unmet):
        raise Refusal(f"the warps have not met since they used shared memory: {at.next(state)}")
    for target in targets:
        if mask & ~target.mask or target.event is None:
            continue
        at.findings.bind(*target.event, event.barrier)
        if mask & state.part:
            raise Refusal(f"bytes are copied twice: {at.next(state)}")
        _laid_out(at, event, target)
        break
    else:
        raise Refusal(f"a copy to {footprint.describe(mask)}, which is not part of: {at.next(state)}")
    issued = state.issued + _map(at, event).bytes
    if issued > state.expected:
        raise Refusal(f"a copy whose bytes have not been announced: {at.next(state)}")
    state = state._replace(part=state.part | mask, issued=issued)
    if state.part != union(targets):
        return state
    if state.early:
        return at.done(state, 2)._replace(expected=0, issued=0, early=False)
    return at.done(state)


def copy_out(at: Cursor, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
    mask = _box(at, event)
    at.inside(state, event, mask, bounds)
    for target in at.targets(state, bounds):
        if mask & target.mask:
            _laid_out(at, event, target)
    if mask & state.part or state.out == 2:
        raise Refusal(f"bytes are copied twice: {at.next(state)}")
    if state.unfenced or (state.unmet and at.together):
        raise Refusal(f"what the warps stored may not be visible yet: {at.next(state)}")
    return state._replace(part=state.part | mask, out=1, met=False)


def commit(at: Cursor, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
    if state.out != 1:
        raise Refusal("a group of copies out is closed, but none has been issued")
    missing = union(at.targets(state, bounds)) & ~state.part
    if missing:
        raise Refusal(f"{footprint.describe(missing)} are not copied out: {at.next(state)}")
    return state._replace(out=2)


def wait(at: Cursor, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
    if state.out != 2 or event.number:
        raise Refusal(f"a wait for all but {event.number} groups of copies out, which covers none of this step")
    return at.done(state)._replace(out=0, clean=False)


def _map(at: Cursor, event: Event) -> TensorMap:
    name = at.host.parameters[event.map]
    if name not in at.host.maps:
        raise Refusal(f"the tensor map {name} is not described by the host code")
    return at.host.maps[name]


def _laid_out(at: Cursor, event: Event, target: Target) -> None:
    swizzle = _map(at, event).swizzle
    if swizzle != target.buffer.swizzle:
        raise Refusal(
            f"the tensor map swizzles by {swizzle}, {target.buffer.name} is laid out by {target.buffer.swizzle}"
        )


def _box(at: Cursor, event: Event) -> int:
    """The bytes of shared memory that a copy moves."""
    assert event.place is not None
    offset = at.findings.placed(event.place)
    if offset < 0 or offset % 128:
        raise Refusal(f"a copy at {offset}, not a multiple of 128 bytes")
    return footprint.span(offset, _map(at, event).bytes)
