"""Which setting each wait of each iteration waits for, as distances."""

from __future__ import annotations

import pytest

from hb_analyzer.distance import distance_graph
from hb_analyzer.distance_graph import INFINITE, DistanceGraph
from hb_analyzer.model import (
    Access,
    BinOp,
    Buffer,
    Const,
    Event,
    Loop,
    Name,
    Parameter,
    Program,
    Role,
    Statement,
    Trigger,
    Wait,
)
from hb_analyzer.single_loop import OutOfClassError
from tests.hb_analyzer.programs import ring

A, B = Access("A", "w"), Access("B", "w")


def program(*bodies: tuple[Statement, ...], slots: int = 3, arrivals: int = 1, initial: int = 0) -> Program:
    roles = tuple(Role(f"r{i}", body) for i, body in enumerate(bodies))
    buffers = (Buffer("A", 64), Buffer("B", 64))
    return Program("p", buffers, (Event("e", slots, arrivals, initial),), roles, (Parameter("N"),))


def loop(*body: Statement) -> Loop:
    return Loop("i", Name("N"), body)


def distance(source: Program, a: int = 0, b: int = 1) -> int:
    graph: DistanceGraph = distance_graph(source, ())
    end = graph.accesses[a].end
    return INFINITE if end is None else graph.distances(end)[graph.accesses[b].begin]


def give(offset: int = 0) -> Trigger:
    return Trigger("e", ring("i", 3, offset))


def take(offset: int = 0) -> Wait:
    return Wait("e", ring("i", 3, offset))


def advance(count: int) -> tuple[Statement, ...]:
    return tuple(Trigger("e", Const(s)) for s in range(count))


def test_settings_made_in_advance_add_the_depth() -> None:
    assert distance(program((loop(A, give()),), (loop(take(), B),))) == 0
    assert distance(program((*advance(3), loop(A, give())), (loop(take(), B),))) == 3
    assert distance(program((*advance(3), *advance(3), loop(A, give())), (loop(take(), B),))) == 6
    assert distance(program((loop(A, give()),), (loop(take(), B),), initial=1)) == 3


def test_a_release_one_slot_behind() -> None:
    assert distance(program((*advance(2), loop(A, give(2))), (loop(take(), B),))) == 2


def test_an_advance_release_is_an_edge_from_its_operation() -> None:
    source = program((*advance(2), A, Trigger("e", Const(2)), loop(give())), (loop(take(), B),))
    assert distance(source) == 2, "the third slot is first waited for in iteration 2"


@pytest.mark.parametrize(
    ("bodies", "reason"),
    [
        (((*advance(2), loop(A, give())), (loop(take(), B),)), "different distances"),
        (((loop(A, give(1)),), (loop(take(), B),)), "different distances"),
        (((loop(A, give(), give()),), (loop(take(), B),)), "not one trigger in each iteration"),
        (((loop(A, give()),), (Wait("e"), loop(take(), B))), "a wait before the loop"),
        (((loop(A, give()),), (loop(take()), Wait("e"), B)), "constant and running"),
        (((loop(A, give()),), (loop(take()), Wait("e", ring("N", 3)), B)), "no setting meets"),
        (((loop(A, give()),), (loop(), Wait("e", ring("N", 3)), B)), "by number"),
        (((loop(A, give()),), (loop(Wait("e", Const(1)), B),)), "constant and running"),
    ],
)
def test_outside_the_class(bodies: tuple[tuple[Statement, ...], ...], reason: str) -> None:
    with pytest.raises(OutOfClassError) as caught:
        distance_graph(program(*bodies), ())
    assert reason in str(caught.value)


def test_a_copy_is_over_at_the_wait_for_its_setting() -> None:
    def bound(offset: int) -> Access:
        return Access("A", "w", ends="event", event="e", event_slot=ring("i", 3, offset), proxy="async")

    copy = bound(0)
    assert distance(program((loop(copy, give()),), (loop(take(), B),))) == 0
    # Issued after its trigger: the slot's next setting, three iterations later.
    assert distance(program((loop(give(), copy),), (loop(take(), B),))) == 3
    # Issued two iterations ahead of the trigger of its slot.
    assert distance(program((loop(bound(2), give()),), (loop(take(), B),))) == 2


def test_several_arrivals_all_count() -> None:
    sides = ((loop(A, give()),), (loop(B, give()),), (loop(take(), Access("A", "r")),))
    source = program(*sides, arrivals=2)
    assert distance(source, 0, 2) == distance(source, 1, 2) == 0
    with pytest.raises(OutOfClassError, match="arrivals differ"):
        distance_graph(program(*sides, arrivals=1), ())
    with pytest.raises(OutOfClassError, match="run apart"):
        distance_graph(program((*advance(3), *sides[0]), *sides[1:], arrivals=2), ())


def test_events_before_and_after_the_loop() -> None:
    once = Trigger("e", Const(0))
    seen = Wait("e", Const(0))
    assert distance(program((A, once, loop()), (seen, loop(B)))) == 0
    assert distance(program((A, once, loop()), (loop(), seen, B))) == 0
    assert distance(program((loop(A), once), (loop(), seen, B))) == 0


def test_a_wait_after_the_loop_of_a_one_slot_event() -> None:
    def source(credit: int, *after: Statement) -> Program:
        once = Trigger("e")
        return program((*(once,) * credit, loop(A, once), *after), (loop(Wait("e")), Wait("e"), B), slots=1)

    assert distance(source(1)) == 0, "the last wait meets the last setting of the loop"
    assert distance(source(0, Trigger("e"))) == 0
    with pytest.raises(OutOfClassError):
        distance_graph(source(0), ())


def test_waits_after_the_loop_for_its_last_settings() -> None:
    """The loop of the giver runs one iteration longer, so the taker's last wait comes after its own."""
    shorter = Loop("i", BinOp("-", Name("N"), Const(1)), (take(),))
    last = Wait("e", BinOp("%", BinOp("-", Name("N"), Const(1)), Const(3)))
    assert distance(program((loop(A, give()),), (shorter, last, B)), 1, 2) == 0
    assert distance(program((loop(A, give()),), (shorter, B)), 1, 2) == 1


def test_settings_after_the_loop() -> None:
    giver = (loop(give()), A, Trigger("e", ring("N", 3)))
    assert distance(program(giver, (loop(take()), Wait("e", ring("N", 3)), B))) == 0


def test_the_second_advance_setting_of_a_slot_is_met_a_round_later() -> None:
    giver = (*advance(3), *advance(2), A, Trigger("e", Const(2)), loop(give()))
    assert distance(program(giver, (loop(take(), B),))) == 5


def test_silent_events_add_no_edge() -> None:
    graph = distance_graph(program((loop(A, give()),), (loop(take(), B),)), {"e"})
    end = graph.accesses[0].end
    assert end is not None
    assert graph.distances(end)[graph.accesses[1].begin] == INFINITE
