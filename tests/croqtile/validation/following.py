"""Small programs followed through their events, for tests of the rules."""

from __future__ import annotations

from collections.abc import Iterable

from croqtile.validation.cursor import Cursor
from croqtile.validation.events import Event
from croqtile.validation.findings import Findings
from croqtile.validation.host import read_host
from croqtile.validation.matcher import Matcher
from croqtile.validation.progress import Match
from croqtile.validation.reference import Reference
from croqtile.validation.values import Bounds, Shared
from hb_analyzer import model
from tests.croqtile.validation import kernels

OPEN = {"n": Bounds(1)}
SYNC = Event("sync", 1, arrivals=384)
MEET = Event("sync", 2, number=2, arrivals=128)
E, F = Shared("bars", 8, 0), Shared("bars", 8, 8)
OUT = 0  # out_s starts the placement of the kept kernel

WAIT, TRIGGER = model.Wait("e", label="wait e"), model.Trigger("f", label="trigger f")
STORE = model.Access("out_s", "w", label="store out_s", region=((0, 64), (0, 128)))
COPY_OUT = model.Access("out_s", "r", proxy="async", label="copy out_s", region=((0, 64), (0, 128)))
STORED = Event("store", 5, base="memory", masks=(((1 << 8192) - 1) << OUT, ((1 << 8192) - 1) << 16384, 0, 0))
FENCE, MMA_WAIT = Event("proxy fence", 6), Event("mma wait", 4, number=0)
COPIES = [Event("copy out", 7, Shared("memory", 1024, offset), map=2) for offset in (0, 16384)]
DONE = [Event("copy commit", 8), Event("copy wait", 9)]


def waited(parity: int = 0, place: Shared = E) -> Event:
    return Event("wait", 3, place, parity)


def arrived(place: Shared = F, count: int = 1) -> Event:
    return Event("arrive", 4, place, 0, count)


def reference(body: Iterable[model.Statement]) -> Reference:
    """A role with this body, the events e and f, the parameter n, and the buffers of the kept kernel."""
    analysis = kernels.compilation().analyses[0]
    program = model.Program("k", (), (model.Event("e"), model.Event("f")), (), (model.Parameter("n", 1),))
    return Reference(analysis.kernel, program, model.Role("r", tuple(body)), analysis.placement.offsets, 4)


def follow(body: Iterable[model.Statement], events: Iterable[Event], threads: int = 1, together: bool = True) -> Match:
    """The role in warpgroup 1, by so many threads, after the CTA has met. Raises Refusal."""
    host = read_host(kernels.cuda(), kernels.FUNCTION)
    members = {"consumer 1": 1, "consumer 2": 2}
    numbers = frozenset(range(threads))
    matcher = Matcher(Cursor(reference(body), Findings(), host, 1, numbers, members, threads == 1, together))
    state = matcher.start()
    for event in (SYNC, *events):
        state = matcher.event(state, event, OPEN)
    matcher.finish(state, OPEN)
    return state
