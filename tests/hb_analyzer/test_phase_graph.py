"""The graph of phases."""

from __future__ import annotations

from hb_analyzer.pattern import PhaseId
from hb_analyzer.phase_graph import (
    Meeting,
    PhaseEdge,
    cycle_groups,
    edges_on_cycles,
    nodes_of,
    phase_edges,
    reachability,
)
from tests.hb_analyzer.patterns import KV_BUFFERS, kv_roles, pattern, phase


def test_program_order_and_events() -> None:
    edges = phase_edges(pattern(kv_roles(), KV_BUFFERS))
    assert sum(edge.kind == "program" for edge in edges) == 4
    assert [(e.source, e.target) for e in edges if e.name == "k_empty"] == [
        (PhaseId("consumer", 0), PhaseId("producer", 0)),
        (PhaseId("consumer", 1), PhaseId("producer", 0)),
    ]


def test_a_barrier_collects_what_its_members_did_and_waited_for() -> None:
    loaded = pattern(
        {
            "a": [phase("p", None, "e")],
            "b": [phase("q"), phase("r", "e", None, barrier="x")],
            "c": [phase("s", barrier="x")],
        },
        {"A": 1},
    )
    meeting = Meeting("x", 0)
    edges = phase_edges(loaded)
    assert {e.source for e in edges if e.target == meeting} == {PhaseId("b", 0), PhaseId("a", 0)}
    assert {e.target for e in edges if e.source == meeting} == {PhaseId("b", 1), PhaseId("c", 0)}


def test_meetings_are_counted() -> None:
    loaded = pattern({r: [phase("p", barrier="x"), phase("q", barrier="x")] for r in ("a", "b")}, {"A": 1})
    assert Meeting("x", 1) in nodes_of(loaded, phase_edges(loaded))


def test_reachability_needs_an_edge() -> None:
    a, b = PhaseId("r", 0), PhaseId("r", 1)
    assert reachability([a, b], [PhaseEdge(a, b, "program")]) == {a: {b}, b: set()}


def test_cycles() -> None:
    a, b, c = (PhaseId("r", i) for i in range(3))
    forth, back, on = PhaseEdge(a, b, "program"), PhaseEdge(b, a, "event", "e"), PhaseEdge(b, c, "program")
    number = cycle_groups([a, b, c], [forth, back, on])
    assert set(number) == {a, b}
    (edges,) = edges_on_cycles([a, b, c], [forth, back, on], lambda edge: True).values()
    assert edges == [forth, back]
    assert not edges_on_cycles([a, b, c], [forth, back, on], lambda edge: edge.name != "e")
