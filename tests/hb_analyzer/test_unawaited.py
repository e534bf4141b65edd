"""Copies that nobody waits for: found for all trip counts, and exactly those that the simulator sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

import pytest

from hb_analyzer import analyse
from hb_analyzer.model import (
    Access,
    BinOp,
    Buffer,
    Const,
    Event,
    If,
    Loop,
    Name,
    Opaque,
    Parameter,
    Program,
    Role,
    Statement,
    Trigger,
    Wait,
)
from hb_analyzer.report import Defect, Report
from hb_analyzer.simulator.code import ISSUE, IllFormedError, TooLongError, compile_program
from hb_analyzer.simulator.generate import program as random_program
from hb_analyzer.simulator.layout import Layout, nothing
from hb_analyzer.simulator.machine import Machine
from hb_analyzer.trips import domain_of
from tests.hb_analyzer.programs import load, ring

N, T = Name("N"), Name("T")
COPY = load("A", "e", Const(0))
E = Trigger("e"), Wait("e")


def program(
    *bodies: tuple[Statement, ...],
    events: tuple[Event, ...] = (Event("e"), Event("f")),
    parameters: tuple[Parameter, ...] = (Parameter("N"),),
    slots: int = 1,
) -> Program:
    roles = tuple(Role(f"r{i}", body) for i, body in enumerate(bodies))
    buffers = (Buffer("A", 64 * slots, slots=slots), Buffer("B", 64))
    return Program("p", buffers, events, roles, parameters)


def one(source: Program) -> Defect:
    (defect,) = analyse(source).unawaited
    return defect


def test_somebody_must_wait() -> None:
    trigger, wait = E
    assert analyse(program((COPY, trigger), (wait,))).unawaited == ()
    assert analyse(program((COPY, trigger, wait))).unawaited == ()
    defect = one(program((COPY, trigger)))
    assert (defect.kind, defect.buffer, defect.event) == ("unawaited", "A", "e")
    assert "the copy into A[0] may be under way when the CTA ends" in defect.why
    assert "nobody waits for the setting of e that it completes" in defect.why


def test_a_copy_after_the_last_trigger_belongs_to_no_setting() -> None:
    trigger, wait = E
    assert one(program((trigger, COPY), (wait,))).buffer == "A"


def test_other_ends() -> None:
    copy_out = Access("A", "r", proxy="async", ends="never")
    assert "nobody waits for it" in one(program((copy_out,))).why
    assert analyse(program((replace(copy_out, ends="here"),))).unawaited == ()
    assert analyse(program((replace(copy_out, ends="group"),))).unawaited == (), "warps do not leave those behind"


def producer_and_consumer(more: int, tail: tuple[Statement, ...] = (), stages: int = 2) -> Program:
    """A ring whose producer makes ``more`` iterations more than its consumer."""
    slot = ring("k", stages)
    fill = (Wait("empty", slot), load("A", "full", slot), Trigger("full", slot))
    use = (Wait("full", slot), Access("A", "r", slot), Trigger("empty", slot))
    first = tuple(Trigger("empty", Const(s)) for s in range(stages))
    return program(
        (Loop("k", BinOp("+", N, Const(more)), fill),),
        (*first, Loop("k", N, use), *tail),
        events=(Event("full", stages), Event("empty", stages)),
        slots=stages,
    )


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_a_producer_that_runs_ahead(stages: int) -> None:
    assert analyse(producer_and_consumer(0, stages=stages)).unawaited == ()
    report = analyse(producer_and_consumer(1, stages=stages))
    (defect,) = report.unawaited
    assert defect.parameters == (("N", 0),)
    assert defect.first is not None
    assert (defect.first.role, defect.first.iteration) == ("r0", (0,))
    assert not (report.deadlocks or report.overruns or report.races)


def test_its_last_copy_may_be_awaited_at_the_end() -> None:
    wait = Wait("full", BinOp("%", N, Const(2)))
    report = analyse(producer_and_consumer(1, (wait,), stages=2))
    assert not (report.unawaited or report.deadlocks or report.overruns)


def test_only_some_trip_counts() -> None:
    """The consumer takes stages by twos: the last one is left at odd trip counts."""
    odd = BinOp("==", BinOp("%", Name("k"), Const(2)), Const(1))
    fill = (
        If(
            BinOp("&&", BinOp(">", Name("k"), Const(0)), BinOp("==", BinOp("%", Name("k"), Const(2)), Const(0))),
            (Wait("f"),),
        ),
        load("A", "e", ring("k", 2)),
        Trigger("e", ring("k", 2)),
    )
    use = (If(odd, (Wait("e", Const(0)), Wait("e", Const(1)), Trigger("f"))),)
    source = program((Loop("k", N, fill),), (Loop("k", N, use),), events=(Event("e", 2), Event("f")), slots=2)
    assert one(source).parameters == (("N", 1),)


@pytest.mark.parametrize("least", [0, 1, 2])
def test_only_some_numbers_of_tiles(least: int) -> None:
    """The same over the tiles of a persistent kernel, whose smaller numbers of tiles are not unrolled at first."""
    even = BinOp("==", BinOp("%", Name("t"), Const(2)), Const(0))
    odd = BinOp("==", BinOp("%", Name("t"), Const(2)), Const(1))
    inner = Loop("k", N, (Access("B", "r"),))
    fill = (
        If(BinOp("&&", BinOp(">", Name("t"), Const(0)), even), (Wait("f"),)),
        load("A", "e", ring("t", 2)),
        Trigger("e", ring("t", 2)),
        inner,
    )
    use = (If(odd, (Wait("e", Const(0)), Wait("e", Const(1)), Trigger("f"))), inner)
    source = program(
        (Loop("t", T, fill),),
        (Loop("t", T, use),),
        events=(Event("e", 2), Event("f")),
        parameters=(Parameter("T", least), Parameter("N")),
        slots=2,
    )
    assert domain_of(source).prefix == "T"
    assert dict(one(source).parameters)["T"] == (3 if least == 2 else 1)


def test_an_event_with_a_defect_is_reported_for_that() -> None:
    source = program((COPY, Trigger("e")), (Trigger("e"),), events=(Event("e", 1),))
    report = analyse(source)
    assert report.arrivals
    assert report.unawaited == ()


def test_an_event_that_the_model_cannot_follow_is_not_judged() -> None:
    report = analyse(program((COPY, Trigger("e"), Opaque("a branch on data", events=("e",)))))
    assert report.unawaited == ()
    assert "whether somebody waits for every copy bound to e is not checked" in report.notes


def test_pairs_are_not_affected() -> None:
    """What meets the copy inside the CTA is refused anyhow; what ends before its issue may overlap."""
    trigger, _ = E
    before = program((Access("B", "w"), Access("B", "r"), COPY, trigger))
    after = program((COPY, trigger, Access("B", "w"), Access("B", "r")))
    assert analyse(before).unawaited
    assert analyse(before).verdict("A", "B").overlap
    assert not analyse(after).verdict("A", "B").overlap


# ---------------------------------------------------------------------------------------------------------------
# Against the simulator: a copy is held up until nothing else can move


def left_behind(source: Program, values: Mapping[str, int]) -> set[str]:
    """Buffers with a copy that the CTA can leave behind at these trip counts."""
    code = compile_program(source, values)
    found: set[str] = set()
    for held in [i for i in code.instructions if i.kind == ISSUE and i.copy]:
        machine = Machine(code, Layout(code, nothing))
        own = machine.copies_from + held.identity
        while enabled := machine.enabled():
            machine.step(min(enabled, key=lambda process: (process == own, process)))  # threads before copies
        found |= {subject[0] for kind, subject in machine.findings if kind == "unawaited"}
    return found


def valuations(source: Program) -> Iterator[dict[str, int]]:
    axes = []
    for parameter in source.parameters:
        most = parameter.minimum + 3
        axes.append(range(parameter.minimum, 1 + (most if parameter.maximum is None else min(most, parameter.maximum))))
    for values in product(*axes):
        yield {parameter.name: value for parameter, value in zip(source.parameters, values, strict=True)}


def clear(report: Report) -> bool:
    return not (report.undecided or report.deadlocks or report.overruns or report.arrivals)


@pytest.mark.parametrize("block", range(2))
def test_reports_and_executions_agree(block: int) -> None:
    """On random programs: what is seen is reported, and what is reported is seen at the trip counts of the report."""
    reported = clean = 0
    for seed in range(100 * block, 100 * block + 100):
        _, source = random_program(seed)
        report = analyse(source)
        if not clear(report):
            continue
        buffers = {defect.buffer for defect in report.unawaited}
        try:
            seen: set[str] = set().union(*(left_behind(source, values) for values in valuations(source)))
            for defect in report.unawaited:
                values = {p.name: dict(defect.parameters).get(p.name, p.minimum) for p in source.parameters}
                assert defect.buffer in left_behind(source, values), (seed, defect.why)
        except (TooLongError, IllFormedError):
            continue
        assert seen <= buffers, seed
        reported += bool(buffers)
        clean += not buffers
    assert reported >= 3, "the random programs have copies that nobody waits for"
    assert clean >= 20
