"""Trials notice engines that are wrong: each of these lies in one way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hb_analyzer import analyse
from hb_analyzer.model import Access, Barrier, BinOp, Buffer, Event, Loop, Name, Parameter, Program, Role, Trigger, Wait
from hb_analyzer.placement import place
from hb_analyzer.report import Report, Verdict
from hb_analyzer.simulator.campaign import Tally
from hb_analyzer.simulator.trial import trial
from tests.hb_analyzer.programs import attention, gemm, persistent_gemm

Lie = Callable[[Program], Report]


def yes_to_all(program: Program) -> Report:
    report = analyse(program)
    verdicts = tuple(Verdict(v.a, v.b, True) for v in report.verdicts)
    blocks = {buffer.name: (buffer.size, buffer.align) for buffer in program.buffers}
    return replace(report, verdicts=verdicts, placement=place(blocks, []))


def on_each_other(program: Program) -> Report:
    report = analyse(program)
    offsets = dict.fromkeys(report.placement.offsets, 0)
    return replace(report, placement=replace(report.placement, offsets=offsets))


def no_defects(program: Program) -> Report:
    report = analyse(program)
    verdicts = tuple(replace(v, kind="conflict") if not v.overlap else v for v in report.verdicts)
    return replace(report, verdicts=verdicts, deadlocks=(), overruns=(), races=(), arrivals=())


def without_events(program: Program) -> Program:
    return replace(program, events=tuple(Event(e.name, e.slots, e.arrivals, 1) for e in program.events))


LAPPED = replace(
    gemm(),
    roles=(
        Role("a", (Loop("i", Name("N"), (Trigger("e"),)), Barrier("b", ("a", "c")))),
        Role("c", (Barrier("b", ("a", "c")), Loop("i", Name("N"), (Wait("e"),)))),
    ),
    events=(Event("e"),),
    parameters=(Parameter("N", 2),),
)


@pytest.mark.parametrize(
    ("program", "engine", "claims"),
    [
        (attention(2), yes_to_all, {"overlap", "placement"}),
        (persistent_gemm(2), yes_to_all, {"overlap", "placement"}),
        (gemm(2, 2), on_each_other, {"placement"}),
        (gemm(released_slots=3), no_defects, {"deadlock"}),
        (gemm(pending=1), no_defects, {"race"}),
        (LAPPED, no_defects, {"overrun"}),
    ],
)
def test_a_wrong_report_is_noticed(program: Program, engine: Lie, claims: set[str]) -> None:
    assert {claim for claim, _ in trial(program, engine, seed=0, schedules=60).broken} == claims


@pytest.mark.parametrize("program", [gemm(2, 2), gemm(3, 4, barrier=True), attention(2, 2), persistent_gemm(2)])
def test_the_engine_keeps_its_claims_and_every_refusal_has_a_witness(program: Program) -> None:
    result = trial(program, analyse, seed=0, schedules=20, effort=200)
    assert not result.broken and not result.unwitnessed
    assert result.accepted + result.witnessed == len(result.report.verdicts)


def test_refusals_without_witness_are_explained() -> None:
    result = trial(gemm(released_slots=3), analyse, seed=0)
    assert {why for _, why in result.unwitnessed} == {"the program deadlocks: all pairs are refused"}


@pytest.mark.parametrize("count", [1, 2])
def test_undecided_programs_have_no_claims_about_defects(count: int) -> None:
    """Also those without any pair that could be refused."""
    write = Access("b0", "w")
    roles = (
        Role("r", (write, Loop("i", BinOp("*", Name("N"), Name("M")), ()))),
        Role("s", (write, Loop("i", Name("N"), ()))),
    )
    buffers = tuple(Buffer(f"b{i}", 16) for i in range(count))
    result = trial(Program("p", buffers, (), roles, (Parameter("N"), Parameter("M"))), analyse, seed=0)
    assert "not provably equal or unrelated" in result.report.undecided
    assert ("race", ("b0",)) in result.seen and not result.broken
    tally = Tally()
    tally.add(0, "straight", result)
    assert tally.total("undecided") == 1
