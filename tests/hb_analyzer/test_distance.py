"""Distances in the graph of one loop."""

from __future__ import annotations

import pytest

from hb_analyzer.distance import distance_graph
from hb_analyzer.distance_graph import INFINITE, DistanceGraph
from hb_analyzer.model import (
    Access,
    Barrier,
    Buffer,
    Commit,
    Drain,
    Event,
    Loop,
    Name,
    Parameter,
    Program,
    Role,
    Statement,
)
from hb_analyzer.single_loop import OutOfClassError
from tests.hb_analyzer.programs import gemm


def program(*bodies: tuple[Statement, ...]) -> Program:
    roles = tuple(Role(f"r{i}", body) for i, body in enumerate(bodies))
    return Program("p", (Buffer("A", 64), Buffer("B", 64)), (Event("e"),), roles, (Parameter("N"),))


def loop(*body: Statement) -> Loop:
    return Loop("i", Name("N"), body)


def between(graph: DistanceGraph, a: int, b: int) -> int:
    """D from the end of access a to the begin of access b, both numbered in order of the roles."""
    end = graph.accesses[a].end
    return INFINITE if end is None else graph.distances(end)[graph.accesses[b].begin]


def test_program_order() -> None:
    a, b = Access("A", "w"), Access("B", "r")
    graph = distance_graph(program((a, loop(a, b), b)), ())
    before, first, second, after = range(4)
    assert between(graph, first, second) == 0
    assert between(graph, second, first) == 1
    assert between(graph, first, first) == 1, "the shortest non-empty path"
    assert between(graph, before, first) == between(graph, first, after) == between(graph, second, after) == 0
    assert between(graph, after, first) == INFINITE


def test_a_ring_released_in_advance_leads_back_by_its_depth() -> None:
    graph = distance_graph(gemm(stages=4), ())
    copy, read = 0, 2
    assert between(graph, copy, read) == 0
    assert between(graph, read, copy) == 4


def test_pending_groups_end_later() -> None:
    read = Access("A", "r", ends="group")
    for pending in range(4):
        graph = distance_graph(program((loop(read, Commit(), Drain(pending), Access("B", "w")),)), ())
        assert between(graph, 0, 1) == pending
    graph = distance_graph(program((loop(read, Commit(), Drain(2)), Drain(1), Access("B", "w"))), ())
    assert between(graph, 0, 1) == 1, "the last iteration's group is still pending after the loop"
    graph = distance_graph(program((loop(read, Commit()), Drain(0), Access("B", "w"))), ())
    assert between(graph, 0, 1) == 0


def test_groups_closed_in_the_next_iteration() -> None:
    read = Access("A", "r", ends="group")
    graph = distance_graph(program((loop(Commit(), Drain(0), read), Access("B", "w"))), ())
    assert between(graph, 0, 0) == 1
    assert between(graph, 0, 1) == 1


def test_groups_opened_before_the_loop() -> None:
    read = Access("A", "r", ends="group")
    graph = distance_graph(program((read, Commit(), loop(Access("B", "w"), Drain(0), Commit()))), ())
    assert between(graph, 0, 1) == 1
    graph = distance_graph(program((read, loop(Commit(), Drain(1), Access("B", "w")))), ())
    assert between(graph, 0, 1) == 1


def test_barriers_order_all_members_inside_an_iteration() -> None:
    meet = Barrier("b", ("r0", "r1"))
    graph = distance_graph(program((loop(Access("A", "w"), meet),), (loop(meet, Access("B", "w")),)), ())
    assert between(graph, 0, 1) == 0
    assert between(graph, 1, 0) == 2, "through the next meeting, into the iteration after it"
    assert not graph.has_zero_cycle()


def test_a_cycle_inside_one_iteration_is_a_deadlock() -> None:
    one, two = Barrier("x", ("r0", "r1")), Barrier("y", ("r0", "r1"))
    assert distance_graph(program((loop(one, two),), (loop(two, one),)), ()).has_zero_cycle()


def test_a_barrier_met_in_different_places_is_outside_the_class() -> None:
    meet = Barrier("b", ("r0", "r1"))
    with pytest.raises(OutOfClassError):
        distance_graph(program((loop(meet),), (loop(), meet)), ())


def test_long_straight_parts_are_left_to_unrolling() -> None:
    with pytest.raises(OutOfClassError, match="long to lay out"):
        distance_graph(program((*(Access("A", "w"),) * 2000, loop())), ())
