"""Shortest non-empty paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hb_analyzer.distance_graph import INFINITE, DistanceGraph
from hb_analyzer.single_loop import OutOfClassError

edges = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 4)), max_size=20)


def graph_of(triples: list[tuple[int, int, int]]) -> DistanceGraph:
    graph = DistanceGraph()
    for _ in range(6):
        graph.add()
    for p, q, distance in triples:
        graph.connect(p, q, distance)
    return graph


@given(edges)
def test_distances_are_those_of_all_paths(triples: list[tuple[int, int, int]]) -> None:
    best = [[INFINITE] * 6 for _ in range(6)]
    for p, q, distance in triples:
        best[p][q] = min(best[p][q], distance)
    for k in range(6):
        for p in range(6):
            for q in range(6):
                best[p][q] = min(best[p][q], best[p][k] + best[k][q], INFINITE)
    graph = graph_of(triples)
    assert [graph.distances(p) for p in range(6)] == best
    assert graph.has_zero_cycle() == any(best[p][p] == 0 for p in range(6))


def test_the_empty_path_does_not_count() -> None:
    assert graph_of([(0, 1, 2), (1, 0, 3)]).distances(0)[0] == 5
    assert graph_of([(0, 1, 2)]).distances(0)[0] == INFINITE


def test_edges_do_not_lead_back_in_time() -> None:
    with pytest.raises(OutOfClassError):
        graph_of([(0, 1, -1)])
