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

from collections.abc import Mapping
from dataclasses import replace

from croqtile.validation import footprint
from croqtile.validation.events import LEADER_KINDS, Event, Refusal
from croqtile.validation.findings import Findings
from croqtile.validation.host import HostSide, TensorMap
from croqtile.validation.machine import Listener
from croqtile.validation.progress import NO_BYTES, Match
from croqtile.validation.reference import Accesses, End, Environment, Reference, Target, Undecided
from croqtile.validation.values import WARPGROUP, Bounds, Shared
from hb_analyzer import model


class Matcher(Listener[Match]):
    """``leader``: the one thread that arrives and copies for its warpgroup; else the other threads. ``together``: there
    are other threads that run the role with it."""

    def __init__(
        self,
        reference: Reference,
        findings: Findings,
        host: HostSide,
        warpgroup: int,
        threads: frozenset[int],
        members: Mapping[str, int],
        leader: bool,
        together: bool,
    ) -> None:
        self.reference, self.findings, self.host = reference, findings, host
        self.warpgroup, self.threads, self.members = warpgroup, threads, members
        self.leader, self.together = leader, together
        self.lines: dict[tuple[str, str], set[int]] = {}  # operation (label, place) → PTX lines
        self.meetings: dict[tuple[tuple[int, Environment], tuple[int, Environment]], set[int]] = {}
        self.stored: dict[tuple[int, Environment], list[tuple[int, ...]]] = {}  # step → bytes by warp, of each visit

    # -- the listener

    def start(self) -> Match:
        return Match()

    def shifted(self, earlier: Match, later: Match, by: int) -> bool:
        if by:
            earlier = replace(earlier, env=tuple((name, value + by) for name, value in earlier.env))
        return earlier == later

    def finish(self, state: Match, bounds: Mapping[str, Bounds]) -> None:
        if not state.started:
            raise Refusal("the threads end before the CTA has met")
        state = self._ahead(self._left(self._ahead(state, bounds)), bounds)
        if not isinstance(self.reference.code[state.position], End):
            raise Refusal(f"the code ends, but the program goes on with: {self._next(state)}")
        if state.out:
            raise Refusal("copies out are still under way at the end")
        self._mark(state)

    def event(self, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
        if not state.started:
            return self._setup(state, event)
        if event.kind == "proxy fence":
            return replace(state, unfenced=False)
        if event.kind == "mma fence":
            return replace(state, fenced=True, met=False)
        own_meeting = event.kind == "sync" and event.arrivals == WARPGROUP and event.number != 0
        try:
            state = self._ahead(state, bounds)
            if event.kind != "store":
                state = self._ahead(self._left(state), bounds)
        except Undecided:
            if not own_meeting:  # which is no operation of the program
                raise
        if own_meeting:
            return self._meet(state, event)
        if event.kind in LEADER_KINDS and not self.leader:
            raise Refusal(f"{event.kind} by {len(self.threads)} threads; the next operation is: {self._next(state)}")
        if state.out and event.kind not in ("copy out", "copy commit", "copy wait"):
            raise Refusal(f"{event.kind} while copies out still read shared memory")
        handler = {
            "wait": self._wait,
            "arrive": self._arrive,
            "expect": self._expect,
            "copy in": self._copy_in,
            "copy out": self._copy_out,
            "copy commit": self._copy_commit,
            "copy wait": self._copy_wait,
            "store": self._store,
            "mma": self._mma,
            "mma commit": self._mma_commit,
            "mma wait": self._mma_wait,
            "sync": self._sync,
        }.get(event.kind)
        if handler is None:
            raise Refusal(f"{event.kind}: the program has none here; its next operation is: {self._next(state)}")
        after = handler(state, event, bounds)
        self._record(state, event)
        return after

    def _record(self, state: Match, event: Event) -> None:
        """The line of a matched instruction, under the operations that it carries out."""
        step = self.reference.code[state.position]
        if isinstance(step, Accesses) and event.kind in ("arrive", "expect", "mma commit"):
            step = self.reference.code[state.position + 1]
        operations = step.accesses if isinstance(step, Accesses) else (step,)
        for operation in operations:
            key = (str(getattr(operation, "label", "")), str(getattr(operation, "where", "")))
            self.lines.setdefault(key, set()).add(event.line)

    # -- before the roles start

    def _setup(self, state: Match, event: Event) -> Match:
        findings = self.findings
        if event.kind == "init" and event.place is not None:
            if len(self.threads) != 1:
                raise Refusal(f"an mbarrier is initialised by {len(self.threads)} threads")
            if event.place in state.inits or findings.inits.setdefault(event.place, event.number) != event.number:
                raise Refusal("an mbarrier is initialised twice")
            fences = frozenset(("init fence", "proxy fence"))
            return replace(state, hidden=fences, inits=state.inits | {event.place})
        if event.kind in ("init fence", "proxy fence"):
            return replace(state, hidden=state.hidden - {event.kind})
        if event.kind == "sync" and event.number == 0 and event.arrivals == self.host.threads:
            if state.hidden:
                raise Refusal(f"no {min(state.hidden)} between the initialised mbarriers and the meeting of the CTA")
            findings.name(0, "all threads")
            findings.setups.setdefault((self.warpgroup, self.threads), set()).add(state.inits)
            return replace(state, started=True, inits=frozenset(), met=True, clean=True)
        raise Refusal(f"{event.kind} before the CTA has met")

    # -- moving through the program

    def _next(self, state: Match) -> str:
        return self.reference.describe(state.position, state.env)

    def _ahead(self, state: Match, bounds: Mapping[str, Bounds]) -> Match:
        """To the next operation that these threads take part in."""
        while True:
            position, env = self.reference.advance(state.position, state.env, bounds)
            state = replace(state, position=position, env=env)
            step = self.reference.code[position]
            if self.leader or not (
                isinstance(step, model.Trigger) or (isinstance(step, Accesses) and step.kind in ("copy in", "copy out"))
            ):
                return state
            if state.unfenced:  # which the leader does not know of
                raise Refusal(f"no proxy fence between stores and {self._next(state)}")
            if isinstance(step, Accesses) and step.kind == "copy out":
                state = replace(state, met=False, clean=False)
            state = replace(state, position=position + 1)

    def _left(self, state: Match) -> Match:
        """Stores are over when something else comes."""
        step = self.reference.code[state.position]
        if isinstance(step, Accesses) and step.kind == "store" and state.part:
            self.stored.setdefault(self._key(state), []).append(state.warps)
            return replace(self._done(state), warps=NO_BYTES)
        return state

    def _key(self, state: Match) -> tuple[int, Environment]:
        return state.position, tuple((name, value % self.reference.modulus) for name, value in state.env)

    def _mark(self, state: Match) -> tuple[int, Environment]:
        """An operation of all threads: how often have they met since the one before?"""
        key = self._key(state)
        self.meetings.setdefault((state.last, key), set()).add(state.meetings)
        return key

    def _done(self, state: Match, steps: int = 1) -> Match:
        """Past the current step. ``steps``: 2 where the next one is included."""
        step = self.reference.code[state.position]
        state = replace(state, part=0)
        shared = not (
            isinstance(step, model.Trigger) or (isinstance(step, Accesses) and step.kind in ("copy in", "copy out"))
        )
        if shared:
            state = replace(state, last=self._mark(state), meetings=0)
        return replace(state, position=state.position + steps)

    def _wanted(self, state: Match, kind: str) -> tuple[Target, ...] | None:
        step = self.reference.code[state.position]
        return None if not isinstance(step, Accesses) or step.kind != kind else ()

    def _targets(self, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> tuple[Target, ...]:
        if self._wanted(state, event.kind) is None:
            raise Refusal(f"{event.kind}, but the next operation is: {self._next(state)}")
        return self.reference.targets(state.position, state.env, bounds)

    def _inside(self, state: Match, event: Event, mask: int, bounds: Mapping[str, Bounds]) -> int:
        """``mask`` must be bytes of the current step."""
        allowed = 0
        for target in self._targets(state, event, bounds):
            allowed |= target.mask
        if event.base:
            self.findings.placed(Shared(event.base, self.findings.alignment))
        if mask & ~allowed:
            raise Refusal(
                f"{event.kind} of {footprint.describe(mask & ~allowed)}, which are not part of: {self._next(state)}"
            )
        return allowed

    # -- events

    def _slot(self, step: model.Wait | model.Trigger, state: Match, bounds: Mapping[str, Bounds]) -> tuple[str, int]:
        return step.event, self.reference.value(step.slot, state.env, bounds)

    def _wait(self, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
        step = self.reference.code[state.position]
        if not isinstance(step, model.Wait):
            raise Refusal(f"wait, but the next operation is: {self._next(state)}")
        slot = self._slot(step, state, bounds)
        assert event.place is not None
        self.findings.bind(*slot, event.place)
        if event.number != int(slot in state.odd):
            raise Refusal(f"{self._next(state)}: parity {event.number}, not {int(slot in state.odd)}")
        return replace(self._done(state), odd=state.odd ^ {slot}, met=False)

    def _setting(self, state: Match, bounds: Mapping[str, Bounds]) -> tuple[tuple[str, int], int] | None:
        """The event and slot that the program sets next, and the bytes of the copies that belong to it; None if
        something else comes first."""
        step = self.reference.code[state.position]
        if isinstance(step, model.Trigger):
            return self._slot(step, state, bounds), state.issued
        if not isinstance(step, Accesses) or step.kind != "copy in":
            return None
        targets = self.reference.targets(state.position, state.env, bounds)
        following = self.reference.code[state.position + 1]
        slots = {target.event for target in targets}
        if not isinstance(following, model.Trigger) or slots != {self._slot(following, state, bounds)}:
            raise Refusal(f"copies that no trigger of their event follows: {self._next(state)}")
        return self._slot(following, state, bounds), sum(target.mask.bit_count() for target in targets)

    def _arrive(self, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
        setting = self._setting(state, bounds)
        if setting is None or state.early:
            raise Refusal(f"an arrival, but the next operation is: {self._next(state)}")
        slot, size = setting
        assert event.place is not None
        self.findings.bind(*slot, event.place)
        if event.arrivals != 1:
            raise Refusal(f"{event.arrivals} arrivals at once")
        if self.together and (not state.met or state.unfenced):
            raise Refusal(f"one thread arrives, but the warps have not met: {self._next(state)}")
        expected = state.expected + event.number
        if expected != size:
            raise Refusal(f"{expected} bytes are expected at {slot[0]}[{slot[1]}], but {size} are copied")
        if isinstance(self.reference.code[state.position], model.Trigger):
            return replace(self._done(state), expected=0, issued=0)
        return replace(state, expected=expected, early=True)

    def _expect(self, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
        setting = self._setting(state, bounds)
        if setting is None or state.early:
            raise Refusal(f"bytes are announced, but the next operation is: {self._next(state)}")
        assert event.place is not None
        self.findings.bind(*setting[0], event.place)
        return replace(state, expected=state.expected + event.number)

    def _copy_in(self, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
        assert event.place is not None and event.barrier is not None
        targets = self._targets(state, event, bounds)
        mask = self._box(event)
        if self.together and not (state.clean and not state.unfenced and not state.unmet):
            raise Refusal(f"the warps have not met since they used shared memory: {self._next(state)}")
        for target in targets:
            if mask & ~target.mask or target.event is None:
                continue
            self.findings.bind(*target.event, event.barrier)
            if mask & state.part:
                raise Refusal(f"bytes are copied twice: {self._next(state)}")
            self._laid_out(event, target)
            break
        else:
            raise Refusal(f"a copy to {footprint.describe(mask)}, which is not part of: {self._next(state)}")
        issued = state.issued + self._map(event).bytes
        if issued > state.expected:
            raise Refusal(f"a copy whose bytes have not been announced: {self._next(state)}")
        state = replace(state, part=state.part | mask, issued=issued)
        if state.part != _union(targets):
            return state
        if state.early:
            return replace(self._done(state, 2), expected=0, issued=0, early=False)
        return self._done(state)

    def _map(self, event: Event) -> TensorMap:
        name = self.host.parameters[event.map]
        if name not in self.host.maps:
            raise Refusal(f"the tensor map {name} is not described by the host code")
        return self.host.maps[name]

    def _laid_out(self, event: Event, target: Target) -> None:
        swizzle = self._map(event).swizzle
        if swizzle != target.buffer.swizzle:
            raise Refusal(
                f"the tensor map swizzles by {swizzle}, {target.buffer.name} is laid out by {target.buffer.swizzle}"
            )

    def _box(self, event: Event) -> int:
        assert event.place is not None
        offset = self.findings.placed(event.place)
        if offset < 0 or offset % 128:
            raise Refusal(f"a copy at {offset}, not a multiple of 128 bytes")
        return footprint.span(offset, self._map(event).bytes)

    def _store(self, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
        mask = 0
        for part in event.masks:
            mask |= part
        tile = self._inside(state, event, mask, bounds)
        if not state.part and state.dirty & tile:
            raise Refusal(f"the warps have not met since they stored to the same bytes: {self._next(state)}")
        if not state.clean:
            raise Refusal(f"the warps have not met since they read shared memory: {self._next(state)}")
        warps = tuple(done | part for done, part in zip(state.warps, event.masks, strict=True))
        dirty = state.dirty | tile
        return replace(state, part=state.part | mask, warps=warps, unfenced=True, unmet=True, dirty=dirty, met=False)

    def _mma(self, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
        self._inside(state, event, event.masks[0], bounds)
        if not state.fenced:
            raise Refusal(f"no wgmma.fence before: {self._next(state)}")
        if state.unfenced or state.unmet:
            raise Refusal(f"what the warps stored may not be visible yet: {self._next(state)}")
        return replace(state, part=state.part | event.masks[0], met=False, clean=False)

    def _mma_commit(self, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
        step = self.reference.code[state.position]
        steps = 1
        if isinstance(step, Accesses) and step.kind == "mma":
            missing = _union(self.reference.targets(state.position, state.env, bounds)) & ~state.part
            if missing:
                raise Refusal(f"{footprint.describe(missing)} are not read before the commit: {self._next(state)}")
            step, steps = self.reference.code[state.position + 1], 2
        if not isinstance(step, model.Commit):
            raise Refusal(f"a commit, but the next operation is: {self._next(state)}")
        return replace(self._done(state, steps), fenced=False, met=False)

    def _mma_wait(self, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
        step = self.reference.code[state.position]
        if not isinstance(step, model.Drain) or step.pending != event.number:
            raise Refusal(f"a wait that leaves {event.number} groups, but the next operation is: {self._next(state)}")
        return replace(self._done(state), met=False, clean=False)

    def _copy_out(self, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
        mask = self._box(event)
        self._inside(state, event, mask, bounds)
        for target in self.reference.targets(state.position, state.env, bounds):
            if mask & target.mask:
                self._laid_out(event, target)
        if mask & state.part or state.out == 2:
            raise Refusal(f"bytes are copied twice: {self._next(state)}")
        if state.unfenced or (state.unmet and self.together):
            raise Refusal(f"what the warps stored may not be visible yet: {self._next(state)}")
        return replace(state, part=state.part | mask, out=1, met=False)

    def _copy_commit(self, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
        if state.out != 1:
            raise Refusal("a group of copies out is closed, but none has been issued")
        missing = _union(self.reference.targets(state.position, state.env, bounds)) & ~state.part
        if missing:
            raise Refusal(f"{footprint.describe(missing)} are not copied out: {self._next(state)}")
        return replace(state, out=2)

    def _copy_wait(self, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
        if state.out != 2 or event.number:
            raise Refusal(f"a wait for all but {event.number} groups of copies out, which covers none of this step")
        return replace(self._done(state), out=0, clean=False)

    def _sync(self, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> Match:
        step = self.reference.code[state.position]
        groups = {self.members[name] for name in step.members} if isinstance(step, model.Barrier) else set()
        if not isinstance(step, model.Barrier) or event.arrivals != WARPGROUP * len(groups):
            raise Refusal(
                f"barrier {event.number} of {event.arrivals} threads, but the next operation is: {self._next(state)}"
            )
        if state.unfenced:
            raise Refusal(f"no proxy fence between stores and {self._next(state)}")
        everyone = event.number == 0 and event.arrivals == self.host.threads
        self.findings.name(event.number, "all threads" if everyone else step.name)
        return replace(self._done(state), met=True, clean=True, unmet=False, dirty=0)

    def _meet(self, state: Match, event: Event) -> Match:
        """The warps of the warpgroup meet: no operation of the program, but what some of them rely on."""
        self.findings.name(event.number, f"the warps of warpgroup {self.warpgroup}")
        unmet = state.unmet and state.unfenced
        return replace(state, met=True, clean=True, unmet=unmet, dirty=0, meetings=state.meetings + 1)


def _union(targets: tuple[Target, ...]) -> int:
    mask = 0
    for target in targets:
        mask |= target.mask
    return mask
