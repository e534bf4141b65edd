"""Where threads are in the analysed program of their role: moves them on, and records what they have done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from croqtile.validation import footprint
from croqtile.validation.events import Event, Refusal
from croqtile.validation.findings import Findings
from croqtile.validation.host import HostSide
from croqtile.validation.progress import NO_BYTES, Match
from croqtile.validation.reference import Accesses, Environment, Reference, Step, Target
from croqtile.validation.values import Bounds, Shared
from hb_analyzer import model

Place = tuple[int, Environment]  # in the program: position, and counters up to the modulus


@dataclass
class Cursor:
    """``members``: role → its warpgroup. ``leader``: the one thread that arrives and copies for its warpgroup; else the
    other threads. ``together``: there are other threads that run the role with it.

    ``lines``: operation (label, place in the source) → PTX lines. ``meetings``: between two operations of all threads,
    how often they have met. ``stored``: step → bytes by warp, of each visit."""

    reference: Reference
    findings: Findings
    host: HostSide
    warpgroup: int
    threads: frozenset[int]
    members: Mapping[str, int]
    leader: bool
    together: bool
    lines: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    meetings: dict[tuple[Place, Place], set[int]] = field(default_factory=dict)
    stored: dict[Place, list[tuple[int, ...]]] = field(default_factory=dict)

    def step(self, state: Match) -> Step:
        return self.reference.code[state.position]

    def next(self, state: Match) -> str:
        """The operation that comes next, for messages."""
        return self.reference.describe(state.position, state.env)

    def ahead(self, state: Match, bounds: Mapping[str, Bounds]) -> Match:
        """To the next operation that these threads take part in."""
        while True:
            position, env = self.reference.advance(state.position, state.env, bounds)
            if position != state.position:
                state = state._replace(position=position, env=env)
            step = self.step(state)
            if self.leader or not _of_leader(step):
                return state
            if state.unfenced:  # which the leader does not know of
                raise Refusal(f"no proxy fence between stores and {self.next(state)}")
            if isinstance(step, Accesses) and step.kind == "copy out":
                state = state._replace(met=False, clean=False)
            state = state._replace(position=position + 1)

    def left(self, state: Match) -> Match:
        """Stores are over when something else comes."""
        step = self.step(state)
        if isinstance(step, Accesses) and step.kind == "store" and state.part:
            self.stored.setdefault(self._place(state), []).append(state.warps)
            return self.done(state)._replace(warps=NO_BYTES)
        return state

    def done(self, state: Match, steps: int = 1) -> Match:
        """Past the current step. ``steps``: 2 where the next one is included."""
        last, meetings = state.last, state.meetings
        if not _of_leader(self.step(state)):
            last, meetings = self.mark(state), 0
        return state._replace(position=state.position + steps, part=0, last=last, meetings=meetings)

    def mark(self, state: Match) -> Place:
        """An operation of all threads: how often have they met since the one before?"""
        place = self._place(state)
        self.meetings.setdefault((state.last, place), set()).add(state.meetings)
        return place

    def _place(self, state: Match) -> Place:
        return state.position, tuple((name, value % self.reference.modulus) for name, value in state.env)

    def record(self, state: Match, event: Event) -> None:
        """The line of a matched instruction, under the operations that it carries out."""
        step = self.step(state)
        if isinstance(step, Accesses) and event.kind in ("arrive", "expect", "mma commit"):
            step = self.reference.code[state.position + 1]
        operations = step.accesses if isinstance(step, Accesses) else (step,)
        for operation in operations:
            key = (str(getattr(operation, "label", "")), str(getattr(operation, "where", "")))
            self.lines.setdefault(key, set()).add(event.line)

    # -- the current step

    def slot(self, step: model.Wait | model.Trigger, state: Match, bounds: Mapping[str, Bounds]) -> tuple[str, int]:
        return step.event, self.reference.value(step.slot, state.env, bounds)

    def targets(self, state: Match, bounds: Mapping[str, Bounds]) -> tuple[Target, ...]:
        return self.reference.targets(state.position, state.env, bounds)

    def targets_of(self, state: Match, event: Event, bounds: Mapping[str, Bounds]) -> tuple[Target, ...]:
        """The accesses of the current step, which must be of the kind of ``event``."""
        step = self.step(state)
        if not isinstance(step, Accesses) or step.kind != event.kind:
            raise Refusal(f"{event.kind}, but the next operation is: {self.next(state)}")
        return self.targets(state, bounds)

    def inside(self, state: Match, event: Event, mask: int, bounds: Mapping[str, Bounds]) -> int:
        """All bytes of the current step; ``mask`` must be among them."""
        allowed = union(self.targets_of(state, event, bounds))
        if event.base:
            self.findings.placed(Shared(event.base, self.findings.alignment))
        if mask & ~allowed:
            raise Refusal(
                f"{event.kind} of {footprint.describe(mask & ~allowed)}, which are not part of: {self.next(state)}"
            )
        return allowed


def _of_leader(step: Step) -> bool:
    """Does one thread do it for its warpgroup?"""
    return isinstance(step, model.Trigger) or (isinstance(step, Accesses) and step.kind in ("copy in", "copy out"))


def union(targets: tuple[Target, ...]) -> int:
    """All their bytes."""
    mask = 0
    for target in targets:
        mask |= target.mask
    return mask
