"""Order in finite graphs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hb_analyzer.graph import Ordering, find_cycle, shortest_chain, topological_order
from hb_analyzer.unroll import unroll
from tests.hb_analyzer.programs import gemm

# 0 → 1 → 3, 0 → 2 → 3, 4 alone
DIAMOND: list[list[int]] = [[], [0], [0], [1, 2], []]


def test_topological_order_puts_predecessors_first() -> None:
    order = topological_order(DIAMOND)
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert all(order.index(p) < order.index(n) for n, preds in enumerate(DIAMOND) for p in preds)
    assert find_cycle(DIAMOND) == []


def test_a_cycle_is_found_in_execution_direction() -> None:
    preds = [[], [0, 3], [1], [2], [3]]
    assert topological_order(preds) == [0]
    cycle = find_cycle(preds)
    assert sorted(cycle) == [1, 2, 3]
    assert all(cycle[i - 1] in preds[node] for i, node in enumerate(cycle))


def test_shortest_chain() -> None:
    preds = [[], [0], [1], [2, 0]]
    assert shortest_chain(preds, 0, 3) == [0, 3]
    assert shortest_chain(preds, 1, 3) == [1, 2, 3]
    assert shortest_chain(preds, 3, 0) == []
    assert shortest_chain(preds, 2, 2) == [2]


def reachable(preds: list[list[int]], goal: int) -> set[int]:
    """All nodes on chains to ``goal``, without itself."""
    found: set[int] = set()
    stack = [goal]
    while stack:
        new = set(preds[stack.pop()]) - found
        found |= new
        stack += new
    return found


@given(st.integers(0, 6), st.integers(1, 3), st.integers(1, 4))
def test_closure_agrees_with_reachability(trips: int, consumers: int, stages: int) -> None:
    run = unroll(gemm(consumers, stages, barrier=True), {"N": trips})
    ordering = Ordering(run, topological_order(run.preds))
    reach = {access.index: reachable(run.preds, access.begin) for access in run.accesses}
    for a in run.accesses:
        for b in run.accesses:
            expected = a.end in reach[b.index]
            assert bool(ordering.before[b.index] >> a.index & 1) == expected
            assert bool(ordering.after[a.index] >> b.index & 1) == expected
