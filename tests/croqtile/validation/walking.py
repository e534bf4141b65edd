"""Walks over small pieces of PTX, for tests: which events, on which paths, for which trip counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from croqtile.validation.evaluate import Evaluator
from croqtile.validation.events import Event
from croqtile.validation.host import HostSide, TensorMap
from croqtile.validation.launches import Launches
from croqtile.validation.program import Program
from croqtile.validation.ptx import parse
from croqtile.validation.state import Listener
from croqtile.validation.values import Bounds
from croqtile.validation.walk import Walk

TRIPS = (1, 3, 8, 20)
HEAD = """\
.extern .shared .align 1024 .b8 memory[];
.entry _Z1kv(.param .u32 n, .param .u32 other)
.maxntid 128, 1, 1
{
.shared .align 8 .b8 bars[64];
"""
MODULUS = 4
State = tuple[tuple[str, int], ...]


@dataclass
class Recorder(Listener[State]):
    """Remembers the events of the path, and at its end the bounds of n."""

    ends: list[tuple[State, Bounds]] = field(default_factory=list)

    def start(self) -> State:
        return ()

    def event(self, state: State, event: Event, bounds: Mapping[str, Bounds]) -> State:
        number = event.place.offset if event.place else event.number
        return (*state, (event.kind, number))[-1:]

    def finish(self, state: State, bounds: Mapping[str, Bounds]) -> None:
        self.ends.append((state, bounds["n"]))

    def shifted(self, earlier: State, later: State, by: int) -> bool:
        return earlier == later


def prepared(body: str) -> Program:
    """A kernel of 128 threads with this body, the parameters n and other."""
    host = HostSide(("n", "other"), {"map": TensorMap("map", 2, (64, 8), 128)}, {}, 128, 2048)
    launches = Launches({"n": TRIPS, "other": (7, 7, 7, 9)}, {"n": TRIPS}, 4)
    return Program(parse(HEAD + body + "\n}\n", "k"), host, launches, Evaluator(MODULUS, {"n": TRIPS}, 4))


def walk(body: str, threads: frozenset[int] = frozenset(range(128)), low: int = 1) -> Recorder:
    recorder = Recorder()
    Walk(prepared(body), 0, threads, {"n": Bounds(low)}, recorder).run()
    return recorder
