"""A path of a walk: what its threads know at one point of the code, and who is told of what they do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from croqtile.validation.events import Event
from croqtile.validation.values import Bounds, Value

Follower = TypeVar("Follower")


@dataclass
class State(Generic[Follower]):
    """``position``: of the next instruction. ``diverged``: some branch may have divided the threads of a warp."""

    position: int
    registers: dict[str, Value]
    bounds: dict[str, Bounds]
    follower: Follower  # what the listener knows
    diverged: bool = False

    def copy(self) -> State[Follower]:
        return State(self.position, dict(self.registers), dict(self.bounds), self.follower, self.diverged)


class Listener(Generic[Follower]):
    """Told of every event on every path. Its states must be comparable."""

    def start(self) -> Follower:
        raise NotImplementedError

    def event(self, state: Follower, event: Event, bounds: Mapping[str, Bounds]) -> Follower:
        """The state after ``event``. Raises Refusal."""
        raise NotImplementedError

    def finish(self, state: Follower, bounds: Mapping[str, Bounds]) -> None:
        """The threads are done. Raises Refusal."""
        raise NotImplementedError

    def shifted(self, earlier: Follower, later: Follower, by: int) -> bool:
        """Is ``later`` what ``earlier`` is, with counters of loops that are under way greater by ``by`` (0: equal)?"""
        raise NotImplementedError
