"""A yes counts as a proof only where no mbarrier can be overrun, or where that does no harm."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hb_analyzer import analyse
from hb_analyzer.model import Access, Buffer, Event, Loop, Name, Parameter, Program, Role, Statement, Trigger, Wait
from hb_analyzer.report import Report
from tests.triton_overlap.conftest import Text
from triton_overlap import decision
from triton_overlap.decision import proved
from triton_overlap.overlay import Overlay
from triton_overlap.translate import translate

RING, TILE = Buffer("ring", 64), Buffer("tile", 64)
STAGE = Access("tile", "w")


def pipeline(*, held: bool) -> Program:
    """A ring of one slot that is filled n times, and a tile that is staged afterwards. ``held``: the producer waits for
    the slot."""
    wait, release = ([Wait("empty")], [Trigger("empty")]) if held else ([], [])
    return Program(
        "pipeline",
        (RING, TILE),
        (Event("full"), Event("empty", initial=1)) if held else (Event("full"),),
        (
            Role("producer", (loop("n", *wait, Access("ring", "w"), Trigger("full")),)),
            Role("consumer", (loop("n", Wait("full"), *release), STAGE)),
        ),
        (Parameter("n"),),
    )


def persistent(*, guarded: bool) -> Program:
    """The same for m tiles; ``guarded``: the producer of a tile waits until the last one was staged."""
    (producer, consumer), guard = (role.body for role in pipeline(held=True).roles), Event("guard", initial=1)
    wait, release = ([Wait("guard")], [Trigger("guard")]) if guarded else ([], [])
    return replace(
        pipeline(held=True),
        events=(*pipeline(held=True).events, *([guard] if guarded else [])),
        roles=(Role("producer", (loop("m", *wait, *producer),)), Role("consumer", (loop("m", *consumer, *release),))),
        parameters=(Parameter("n"), Parameter("m")),
    )


def loop(count: str, *body: Statement) -> Loop:
    return Loop(f"{count}_", Name(count), body)


def accepted(report: Report) -> bool:
    return report.verdict("ring", "tile").overlap


def test_a_yes_without_overruns_is_a_proof() -> None:
    assert not analyse(pipeline(held=True)).overruns
    assert proved(pipeline(held=True), {"ring", "tile"}, accepted)


def test_a_yes_beside_an_overrun_is_none() -> None:
    report = analyse(pipeline(held=False))
    assert report.overruns and accepted(report)
    assert not proved(pipeline(held=False), {"ring", "tile"}, accepted)


def test_a_guard_that_laps_only_while_the_loop_inside_is_empty_does_no_harm() -> None:
    report = analyse(persistent(guarded=True))
    assert report.overruns and accepted(report)
    assert proved(persistent(guarded=True), {"ring", "tile"}, accepted)
    assert not proved(persistent(guarded=False), {"ring", "tile"}, accepted)


def test_what_is_not_proved_is_not_explained_by_a_yes(ttgir_of: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    translation = translate(ttgir_of("gemm"))
    pair = Overlay(translation.stagings[0], translation.rings[0])
    assert decision.explain(translation, pair).overlap
    monkeypatch.setattr(decision, "proved", lambda *question: False)
    refused = decision.explain(translation, pair)
    assert not refused.overlap and refused.why == "an mbarrier may be overrun: nothing is proved"
