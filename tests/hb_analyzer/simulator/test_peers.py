"""Other rules: what they accept, and what caution costs."""

from __future__ import annotations

import json

from hb_analyzer import analyse
from hb_analyzer.pattern import Pattern
from hb_analyzer.pattern_load import parse_pattern
from hb_analyzer.simulator.peers import (
    ORDERED,
    ORDERED_CYCLIC,
    all_pairs_ordered,
    all_pairs_ordered_with_cycles,
    compare_rules,
    cost_of_caution,
)
from tests.hb_analyzer.programs import gemm


def pattern(*phases: dict[str, object]) -> Pattern:
    text = {
        "warp_groups": [{"wg_id": 0, "role": "r", "phases": list(phases)}],
        "shared_buffers": {"A": {"size_bytes": 64}, "B": {"size_bytes": 64}},
    }
    return parse_pattern(json.dumps(text))


def test_ordered_is_not_enough() -> None:
    """A written, B written, A read: every pair of phases is ordered, and A is lost."""
    clobbers = pattern({"label": "a", "writes": ["A"]}, {"label": "b", "writes": ["B"]}, {"label": "c", "reads": ["A"]})
    assert all_pairs_ordered(clobbers) == {("A", "B")}


def test_a_phase_with_both_is_refused() -> None:
    assert all_pairs_ordered(pattern({"label": "a", "writes": ["A", "B"]})) == set()


def test_edges_that_close_a_cycle_order_nothing() -> None:
    phases = (
        {"label": "load", "signal_in": "empty", "signal_out": "full", "writes": ["A"]},
        {"label": "other", "writes": ["B"]},
    )
    two = {
        "warp_groups": [
            {"wg_id": 0, "role": "p", "phases": [phases[0]]},
            {"wg_id": 1, "role": "c", "phases": [{"label": "use", "signal_in": "full", "signal_out": "empty", **{}}]},
            {"wg_id": 2, "role": "x", "phases": [phases[1]]},
        ],
        "shared_buffers": {"A": {"size_bytes": 64}, "B": {"size_bytes": 64}},
    }
    made = parse_pattern(json.dumps(two))
    assert all_pairs_ordered(made) == all_pairs_ordered_with_cycles(made) == set()


def test_the_rules_are_shown_to_be_wrong() -> None:
    found = compare_rules(range(60), analyse, schedules=30)
    for rule in (ORDERED, ORDERED_CYCLIC):
        verdicts = found.rules[rule]
        assert verdicts.wrong > 0 and verdicts.smallest
        assert verdicts.proved + verdicts.wrong <= verdicts.accepted
    assert found.rules[ORDERED_CYCLIC].accepted >= found.rules[ORDERED].accepted


def test_no_reuse_across_roles_saves_nothing_in_a_gemm() -> None:
    source = gemm(2, 2, barrier=True)
    report = analyse(source)
    cost = cost_of_caution(source, report)
    assert cost.analysed < cost.within_roles == cost.apart == report.baseline
