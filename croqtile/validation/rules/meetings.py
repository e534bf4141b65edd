"""Barriers: of the CTA before the roles start, of the program, and of the warps of one warpgroup."""

from __future__ import annotations

from collections.abc import Mapping

from croqtile.validation.cursor import Cursor
from croqtile.validation.events import Event, Refusal
from croqtile.validation.progress import Match
from croqtile.validation.values import WARPGROUP, Bounds
from hb_analyzer import model


def setup(at: Cursor, state: Match, event: Event) -> Match:
    """Before the roles start: mbarriers are initialised, and the CTA meets."""
    findings = at.findings
    if event.kind == "init" and event.place is not None:
        if len(at.threads) != 1:
            raise Refusal(f"an mbarrier is initialised by {len(at.threads)} threads")
        if event.place in state.inits or findings.inits.setdefault(event.place, event.number) != event.number:
            raise Refusal("an mbarrier is initialised twice")
        fences = frozenset(("init fence", "proxy fence"))
        return state._replace(hidden=fences, inits=state.inits | {event.place})
    if event.kind in ("init fence", "proxy fence"):
        return state._replace(hidden=state.hidden - {event.kind})
    if event.kind == "sync" and event.number == 0 and event.arrivals == at.host.threads:
        if state.hidden:
            raise Refusal(f"no {min(state.hidden)} between the initialised mbarriers and the meeting of the CTA")
        findings.name(0, "all threads")
        findings.setups.setdefault((at.warpgroup, at.threads), set()).add(state.inits)
        return state._replace(started=True, inits=frozenset(), met=True, clean=True)
    raise Refusal(f"{event.kind} before the CTA has met")


def sync(at: Cursor, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
    """A barrier of the program."""
    step = at.step(state)
    groups = {at.members[name] for name in step.members} if isinstance(step, model.Barrier) else set()
    if not isinstance(step, model.Barrier) or event.arrivals != WARPGROUP * len(groups):
        raise Refusal(
            f"barrier {event.number} of {event.arrivals} threads, but the next operation is: {at.next(state)}"
        )
    if state.unfenced:
        raise Refusal(f"no proxy fence between stores and {at.next(state)}")
    everyone = event.number == 0 and event.arrivals == at.host.threads
    at.findings.name(event.number, "all threads" if everyone else step.name)
    return at.done(state)._replace(met=True, clean=True, unmet=False, dirty=0)


def meet(at: Cursor, state: Match, event: Event) -> Match:
    """The warps of the warpgroup meet: no operation of the program, but what some of them rely on."""
    at.findings.name(event.number, f"the warps of warpgroup {at.warpgroup}")
    unmet = state.unmet and state.unfenced
    return state._replace(met=True, clean=True, unmet=unmet, dirty=0, meetings=state.meetings + 1)
