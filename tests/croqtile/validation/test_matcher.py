"""The rules of the memory model, one event at a time; and programs that cannot be followed."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from croqtile.validation.cursor import Cursor
from croqtile.validation.events import Event, Refusal
from croqtile.validation.findings import Findings
from croqtile.validation.host import read_host
from croqtile.validation.matcher import Matcher
from croqtile.validation.progress import Match
from croqtile.validation.reference import Reference, modulus
from croqtile.validation.values import Bounds, Shared
from hb_analyzer import model
from tests.croqtile.validation import kernels

OPEN = {"n": Bounds(1)}
SYNC = Event("sync", 1, arrivals=384)
MEET = Event("sync", 2, number=2, arrivals=128)
E, F = Shared("bars", 8, 0), Shared("bars", 8, 8)
OUT = 0  # out_s starts the placement of the kept kernel


def follow(body: Iterable[model.Statement], events: Iterable[Event], threads: int = 1, together: bool = True) -> Match:
    analysis = kernels.compilation().analyses[0]
    program = model.Program("k", (), (model.Event("e"), model.Event("f")), (), (model.Parameter("n", 1),))
    role = model.Role("r", tuple(body))
    code = Reference(analysis.kernel, program, role, analysis.placement.offsets, 4)
    host = read_host(kernels.cuda(), kernels.FUNCTION)
    members = {"consumer 1": 1, "consumer 2": 2}
    matcher = Matcher(Cursor(code, Findings(), host, 1, frozenset(range(threads)), members, threads == 1, together))
    state = matcher.start()
    for event in (SYNC, *events):
        state = matcher.event(state, event, OPEN)
    matcher.finish(state, OPEN)
    return state


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


def test_arrivals_need_a_meeting() -> None:
    follow((WAIT, TRIGGER), (waited(), MEET, arrived()))
    follow((WAIT, TRIGGER), (waited(), arrived()), together=False)
    with pytest.raises(Refusal, match="the warps have not met: trigger f"):
        follow((WAIT, TRIGGER), (waited(), arrived()))
    with pytest.raises(Refusal, match="arrive by 127 threads"):
        follow((WAIT, TRIGGER), (waited(), MEET, arrived()), threads=127)
    with pytest.raises(Refusal, match="2 arrivals at once"):
        follow((WAIT, TRIGGER), (waited(), MEET, arrived(count=2)))


def test_the_other_threads_only_wait_and_meet() -> None:
    follow((WAIT, TRIGGER), (waited(), MEET), threads=127)
    with pytest.raises(Refusal, match="the code ends, but the program goes on with: trigger f"):
        follow((WAIT, TRIGGER), (waited(), MEET))


def test_parities_and_places() -> None:
    follow((WAIT, WAIT), (waited(0), waited(1)))
    with pytest.raises(Refusal, match="parity 0, not 1"):
        follow((WAIT, WAIT), (waited(0), waited(0)))
    with pytest.raises(Refusal, match=r"the mbarrier of e\[0\] is at bars \+ 0, but the code uses bars \+ 8"):
        follow((WAIT, WAIT), (waited(0), waited(1, F)))
    with pytest.raises(Refusal, match="have the same mbarrier"):
        follow((WAIT, TRIGGER), (waited(), MEET, arrived(E)))


def test_stores_and_copies_out() -> None:
    body = (model.Drain(0, "drain"), STORE, COPY_OUT)
    good = (MMA_WAIT, MEET, STORED, FENCE, MEET, *COPIES, *DONE)
    follow(body, good)
    for missing, why in (
        (1, "the warps have not met since they read shared memory"),
        (3, "may not be visible"),
        (4, "may not be visible"),
        (5, "are not copied out"),
        (7, "covers none"),
        (8, "the code ends"),
    ):
        with pytest.raises(Refusal, match=why):
            follow(body, (*good[:missing], *good[missing + 1 :]))
    with pytest.raises(Refusal, match="may not be visible"):
        follow(body, (MMA_WAIT, MEET, STORED, MEET, FENCE, *COPIES, *DONE))
    with pytest.raises(Refusal, match="while copies out still read"):
        follow((*body, WAIT), (*good[:-1], waited(), good[-1]))


def test_stores_elsewhere() -> None:
    foreign = Event("store", 5, base="memory", masks=(1 << 8192, 0, 0, 0))
    with pytest.raises(Refusal, match=r"bytes 8192…8192, which are not part of: store out_s"):
        follow((STORE,), (foreign,))
    with pytest.raises(Refusal, match="the next operation is: wait e"):
        follow((WAIT, STORE), (STORED,))


def test_barriers_among_warpgroups() -> None:
    barrier = model.Barrier("sync.wg 1, 2", ("consumer 1", "consumer 2"), "sync.wg 1, 2")
    both = Event("sync", 4, number=4, arrivals=256)
    follow((barrier, TRIGGER), (both, arrived()))
    with pytest.raises(Refusal, match="barrier 4 of 256 threads, but the next operation is: trigger f"):
        follow((TRIGGER,), (both, arrived()))
    with pytest.raises(Refusal, match="barrier 2 stands for"):
        follow((barrier,), (MEET, Event("sync", 4, number=2, arrivals=256)))
    with pytest.raises(Refusal, match=r"goes on with: sync\.wg 1, 2"):
        follow((barrier,), (MEET,))


def test_before_the_cta_has_met() -> None:
    init, fences = Event("init", 1, E, 1), (Event("init fence", 2), Event("proxy fence", 3))
    analysis = kernels.compilation().analyses[0]
    code = Reference(analysis.kernel, analysis.program, None, analysis.placement.offsets, modulus(analysis.program))
    host = read_host(kernels.cuda(), kernels.FUNCTION)

    def setup(*events: Event, threads: int = 1) -> Findings:
        findings = Findings()
        matcher = Matcher(Cursor(code, findings, host, 0, frozenset(range(threads)), {}, False, False))
        state = matcher.start()
        for event in events:
            state = matcher.event(state, event, OPEN)
        matcher.finish(state, OPEN)
        return findings

    assert setup(init, *fences, SYNC).inits == {E: 1}
    for events, why in (
        ((init, SYNC), "no init fence"),
        ((init, fences[0], SYNC), "no proxy fence"),
        ((init, init, *fences, SYNC), "twice"),
        ((waited(), SYNC), "wait before the CTA has met"),
        ((MEET, SYNC), "before the CTA has met"),
        ((), "end before the CTA has met"),
    ):
        with pytest.raises(Refusal, match=why):
            setup(*events)
    with pytest.raises(Refusal, match="by 2 threads"):
        setup(init, *fences, SYNC, threads=2)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (model.Opaque("line 3: why", ("out_s",)), "leaves something open: line 3: why"),
        (model.If(model.Name("n"), (WAIT,)), "branches on n"),
        (model.Access("out_s", "r", label="f reads out_s"), "an access that is not followed: f reads out_s"),
    ],
)
def test_programs_that_are_not_followed(statement: model.Statement, why: str) -> None:
    with pytest.raises(Refusal, match=why):
        follow((statement,), ())


def test_slots_depend_on_residues_only() -> None:
    slot = model.BinOp("/", model.Name("i"), model.Const(2))
    loop = model.Loop("i", model.Const(4), (model.Wait("e", slot, "wait"),))
    with pytest.raises(Refusal, match="depends on more than is known of i here"):
        follow((loop,), (waited(),))
    with pytest.raises(Refusal, match="without having compared its counter with n"):
        follow((model.Loop("i", model.Name("n"), (WAIT,)), TRIGGER), (waited(), waited(1)))
