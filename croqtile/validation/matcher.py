"""Follows the analysed program of a role, event by event, while the compiled code is walked.

Each event must be the next operation of the program: the same mbarrier, parity, bytes, pending groups. Beside that, the
rules on which the memory model relies are checked (``hb_analyzer/SOUNDNESS.md``, section 1): the warps of a warpgroup
have met before one thread arrives for them, before they overwrite what they have read, and between their stores and a
copy of what they stored; a proxy fence stands between stores and that meeting; copies out have been read when the next
operation begins.

Two orders are taken as equal. An arrival that announces all bytes of a setting may come before the copies which bring
them: the setting needs the bytes in any case. And the copies of one setting may come in any order, like the operands of
one group of matrix instructions and the stores of one tile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from croqtile.validation.cursor import Cursor
from croqtile.validation.events import LEADER_KINDS, Event, Refusal
from croqtile.validation.progress import Match
from croqtile.validation.reference import End, Undecided
from croqtile.validation.rules import copies, matrix, mbarriers, meetings, stores
from croqtile.validation.state import Listener
from croqtile.validation.values import WARPGROUP, Bounds

_RULES: dict[str, Callable[[Cursor, Match, Event, Mapping[str, Bounds]], Match]] = {
    "wait": mbarriers.wait,
    "arrive": mbarriers.arrive,
    "expect": mbarriers.expect,
    "copy in": copies.copy_in,
    "copy out": copies.copy_out,
    "copy commit": copies.commit,
    "copy wait": copies.wait,
    "store": stores.store,
    "mma": matrix.mma,
    "mma commit": matrix.commit,
    "mma wait": matrix.wait,
    "sync": meetings.sync,
}


class Matcher(Listener[Match]):
    def __init__(self, cursor: Cursor) -> None:
        self.at = cursor

    def start(self) -> Match:
        return Match()

    def shifted(self, earlier: Match, later: Match, by: int) -> bool:
        if by:
            earlier = earlier._replace(env=tuple((name, value + by) for name, value in earlier.env))
        return earlier == later

    def finish(self, state: Match, bounds: Mapping[str, Bounds]) -> None:
        at = self.at
        if not state.started:
            raise Refusal("the threads end before the CTA has met")
        state = at.ahead(at.left(at.ahead(state, bounds)), bounds)
        if not isinstance(at.step(state), End):
            raise Refusal(f"the code ends, but the program goes on with: {at.next(state)}")
        if state.out:
            raise Refusal("copies out are still under way at the end")
        at.mark(state)

    def event(self, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
        at = self.at
        if not state.started:
            return meetings.setup(at, state, event)
        if event.kind == "proxy fence":
            return state._replace(unfenced=False)
        if event.kind == "mma fence":
            return state._replace(fenced=True, met=False)
        own_meeting = event.kind == "sync" and event.arrivals == WARPGROUP and event.number != 0
        try:
            state = at.ahead(state, bounds)
            if event.kind != "store":
                state = at.ahead(at.left(state), bounds)
        except Undecided:
            if not own_meeting:  # which is no operation of the program
                raise
        if own_meeting:
            return meetings.meet(at, state, event)
        if event.kind in LEADER_KINDS and not at.leader:
            raise Refusal(f"{event.kind} by {len(at.threads)} threads; the next operation is: {at.next(state)}")
        if state.out and event.kind not in ("copy out", "copy commit", "copy wait"):
            raise Refusal(f"{event.kind} while copies out still read shared memory")
        rule = _RULES.get(event.kind)
        if rule is None:
            raise Refusal(f"{event.kind}: the program has none here; its next operation is: {at.next(state)}")
        after = rule(at, state, event, bounds)
        at.record(state, event)
        return after
