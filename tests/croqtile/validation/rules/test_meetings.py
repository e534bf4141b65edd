"""Barriers, and what comes before the first one."""

from __future__ import annotations

import pytest

from croqtile.validation.cursor import Cursor
from croqtile.validation.events import Event, Refusal
from croqtile.validation.findings import Findings
from croqtile.validation.host import read_host
from croqtile.validation.matcher import Matcher
from croqtile.validation.reference import Reference, modulus
from hb_analyzer import model
from tests.croqtile.validation import kernels
from tests.croqtile.validation.following import MEET, OPEN, SYNC, TRIGGER, E, arrived, follow, waited


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
