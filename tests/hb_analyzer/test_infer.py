"""Loops, carried events and counts that a file leaves unsaid."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hb_analyzer import analyse
from hb_analyzer.infer import HULL, Inference, infer
from hb_analyzer.pattern import Pattern, PhaseId
from hb_analyzer.translate import to_program
from tests.hb_analyzer.patterns import KV_BUFFERS, document, kv_roles, load, pattern, phase


def inferred(roles: dict[str, list[dict[str, Any]]], **more: Any) -> Inference:
    buffers = {name: 64 for phases in roles.values() for p in phases for name in p["buffers"]}
    return infer(pattern(roles, buffers or {"unused": 1}, **more))


def in_loop(result: Inference) -> set[tuple[str, int]]:
    return {(id.role, id.position) for id, path in result.loops.items() if path}


# -- loops


def test_the_hull_of_a_role_is_its_loop() -> None:
    result = inferred(kv_roles())
    assert in_loop(result) == {("producer", 0), ("producer", 1), ("consumer", 1), ("consumer", 2)}


def test_a_phase_between_phases_on_cycles_is_in_the_hull() -> None:
    roles = {
        "producer": [phase("a", "e", "f", "A"), phase("between", None, None, "B"), phase("c", "g", "h", "C")],
        "consumer": [phase("x", "f", "e", "A"), phase("y", "h", "g", "C")],
    }
    assert ("producer", 1) in in_loop(inferred(roles))


def test_without_cycles_everything_runs_once() -> None:
    result = inferred({"producer": [phase("a", None, "f", "A")], "consumer": [phase("x", "f", None, "A")]})
    assert in_loop(result) == set()
    assert result.assumptions == []


def test_a_phase_may_be_its_own_cycle() -> None:
    result = inferred({"r": [phase("a", "e", "e", "A")]}, events={"e": {"initial": 1}})
    assert in_loop(result) == {("r", 0)}
    assert result.carried == {"e": "starts set"}


def test_a_cycle_through_a_barrier() -> None:
    """Consumer 1 hands its release over to consumer 2 at a barrier."""
    roles = {
        "producer": [phase("load", "e", "f", "A")],
        "c1": [phase("use", "f", None, "A"), phase("meet", barrier="b")],
        "c2": [phase("release", None, "e", barrier="b")],
    }
    result = inferred(roles)
    assert in_loop(result) == {("producer", 0), ("c1", 0), ("c2", 0)}
    assert set(result.carried) == {"e"}


def test_loop_marks_are_taken_as_written() -> None:
    result = inferred({"producer": [phase("a", "e", "f", "A", loop=[])], "consumer": [phase("x", "f", "e", "A")]})
    assert in_loop(result) == set()
    assert result.carried == {}


# -- carried events, rule by rule


def ring(*before: dict[str, Any], names: tuple[str, str] = ("producer", "consumer")) -> dict[str, list[dict[str, Any]]]:
    """A one-slot ring; ``before`` precedes the loop of the second role."""
    return {names[0]: [phase("load", "e", "f", "A")], names[1]: [*before, phase("use", "f", "e", "A")]}


def test_rule_a_initial_says_so() -> None:
    result = inferred(ring(names=("a", "b")), events={"f": {"initial": 1}})
    assert result.carried == {"f": "starts set"}
    assert (result.initial, result.assumptions) == ({"f": 1}, [])


def test_rule_b_released_before_the_loop() -> None:
    result = inferred(ring(phase("release", None, "e"), names=("a", "b")))
    assert result.carried == {"e": "released before the loop"}
    assert (result.initial, result.assumptions) == ({}, [])


def test_rule_c_the_direction_of_a_known_event() -> None:
    result = inferred(kv_roles())
    assert set(result.carried) == {"k_empty", "v_empty"}
    assert result.initial == {"v_empty": 1}
    assert result.assumptions == [
        'event "v_empty" starts set: it goes from consumer to producer, as "k_empty" does, '
        "which is released before the loop"
    ]


def test_rule_c_comes_before_rule_d() -> None:
    """By rule (c) alone: the role that fills is not called producer."""
    roles = kv_roles()
    renamed = {"loader": roles["producer"], "consumer": roles["consumer"]}
    assert set(inferred(renamed).carried) == {"k_empty", "v_empty"}


def test_rule_c_not_the_reverse_of_a_known_event() -> None:
    """Events start set in both directions, so the direction tells nothing."""
    roles = {
        "a": [phase("p", "x", "y", "A"), phase("q", "u", "v", "B"), phase("r", "s", "t", "C")],
        "b": [phase("P", "y", "x", "A"), phase("Q", "v", "u", "B"), phase("R", "t", "s", "C")],
    }
    result = inferred(roles, events={"x": {"initial": 1}, "v": {"initial": 1}})
    assert {"s", "t"} <= set(result.carried)
    assert result.carried["s"].startswith("no rule tells")
    assert set(result.unknown) >= {"C"}


def test_rule_d_into_a_producer() -> None:
    result = inferred(ring())
    assert set(result.carried) == {"e"}
    assert result.assumptions == [
        'event "e" starts set: it goes from consumer into the producer producer, and a loop needs one such event'
    ]


def test_rule_e_nothing_tells() -> None:
    result = inferred(ring(names=("a", "b")))
    assert set(result.carried) == {"e", "f"}
    assert result.initial == {"e": 1, "f": 1}
    assert result.unknown == {"A": "nothing tells which of the events e, f starts set"}
    assert len(result.assumptions) == 2


def test_an_initial_of_zero_forbids_the_assumption() -> None:
    """The file says that neither event starts set: the cycle is a deadlock, and not cut."""
    loaded = pattern(ring(), {"A": 64}, events={"e": {"initial": 0}, "f": {"initial": 0}})
    assert infer(loaded).carried == {}
    assert analyse(to_program(loaded)).deadlocks
    one = inferred(ring(), events={"e": {"initial": 0}})
    assert (set(one.carried), set(one.unknown)) == ({"f"}, {"A"})


def test_an_event_triggered_only_outside_is_waited_for_once() -> None:
    roles = kv_roles()
    roles["producer"].insert(0, phase("load Q", None, "q", "Q"))
    roles["consumer"][1]["signal_in"] = ["k_full", "q"]
    result = inferred(roles)
    assert result.wait_once == {(PhaseId("consumer", 1), "q")}


# -- missing signals


@pytest.mark.parametrize("event", ["k_empty", "k_full", "v_empty", "v_full"])
@pytest.mark.parametrize("end", ["signal_in", "signal_out"])
def test_a_missing_signal_never_allows_more(event: str, end: str) -> None:
    """Without one signal the loops seem shorter; the pairs that the whole file refuses stay refused."""
    roles = kv_roles()
    for phases in roles.values():
        for p in phases:
            if p[end] == event:
                p[end] = None
    report = analyse(to_program(load(document(roles, KV_BUFFERS))))
    assert not report.verdict("K_s", "V_s").overlap


def test_a_missing_wait_makes_its_buffer_unknown() -> None:
    roles = kv_roles()
    roles["consumer"][2]["signal_in"] = None
    result = inferred(roles)
    assert result.unknown == {
        "V_s": 'nobody waits for "v_full": with a signal missing, it cannot be told whether "load V" is in a loop'
    }


def test_a_last_signal_for_nobody_is_no_half_handshake() -> None:
    roles = kv_roles()
    roles["consumer"][3]["signal_out"] = "done"
    assert inferred(roles).unknown == {}


# -- counts


def test_arrivals_default_to_the_roles_of_the_loop() -> None:
    roles = {
        "producer": [phase("load", "e", "f", "A")],
        "c1": [phase("use", "f", "e", "A")],
        "c2": [phase("use", "f", "e", "A")],
    }
    result = inferred(roles)
    assert result.arrivals == {"e": 2, "f": 1}
    assert 'event "e" is set when all of c1, c2 have triggered it ("arrivals" is not given)' in result.assumptions
    assert inferred(roles, events={"e": {"arrivals": 1}}).arrivals["e"] == 1


def test_a_first_release_by_another_role_counts_as_made() -> None:
    roles = {
        "setup": [phase("init", None, "e")],
        "producer": [phase("load", "e", "f", "A")],
        "consumer": [phase("use", "f", "e", "A")],
    }
    result = inferred(roles)
    assert (result.arrivals["e"], result.initial["e"]) == (1, 1)
    assert result.credited == {(PhaseId("setup", 0), "e")}
    assert not analyse(to_program(pattern(roles, {"A": 64}))).deadlocks


def test_stages_are_the_depth_of_what_is_used_in_loops_only() -> None:
    roles = {
        "producer": [phase("load Q", None, "q", "Q"), phase("load", "e", "f", "A")],
        "consumer": [
            phase("release", None, "e"),
            phase("use", ["q", "f"], "e", "A", "Q"),
            phase("store", None, None, "C"),
        ],
    }
    result = inferred(roles, stages=4)
    assert result.slots == {"e": 4, "f": 4, "q": 1}
    assert result.stages == {"A": 4, "Q": 1, "C": 1}
    assert inferred(roles, stages=4, events={"e": {"slots": 2}}).slots["e"] == 2


# -- the order of the file


def shuffled(value: dict[str, Any], order: tuple[int, ...]) -> Pattern:
    groups = [value["warp_groups"][i] for i in order]
    buffers = dict(reversed(value["shared_buffers"].items()))
    return load({**value, "warp_groups": groups, "shared_buffers": buffers})


def facts(loaded: Pattern) -> object:
    result = infer(loaded)
    report = analyse(to_program(loaded, result))
    verdicts = [(v.a, v.b, v.overlap) for v in report.verdicts]
    defects = bool(report.deadlocks), bool(report.races), bool(report.overruns)
    return result.carried, result.assumptions, result.unknown, verdicts, report.placement.size, defects


def test_the_order_of_the_file_does_not_matter() -> None:
    value = document({**kv_roles(), "helper": [phase("h", "v_full", None, "V_s")]}, KV_BUFFERS)
    first, *others = [facts(shuffled(value, order)) for order in itertools.permutations(range(3))]
    assert all(other == first for other in others)


EVENTS = st.sampled_from(["e0", "e1", "e2", "e3"])
PHASES = st.builds(
    lambda waits, triggers, buffers: phase("p", waits, triggers, *buffers),
    st.lists(EVENTS, max_size=1),
    st.lists(EVENTS, max_size=1),
    st.lists(st.sampled_from("AB"), max_size=1),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(PHASES, min_size=1, max_size=3), min_size=2, max_size=3), st.permutations([0, 1, 2]))
def test_the_order_of_random_files_does_not_matter(roles: list[list[dict[str, Any]]], order: list[int]) -> None:
    names = ("producer", "consumer", "other")
    value = document(dict(zip(names, roles, strict=False)), {"A": 64, "B": 128})
    assert facts(load(value)) == facts(shuffled(value, tuple(i for i in order if i < len(roles))))


def test_the_hull_has_a_name() -> None:
    assert set(inferred(kv_roles()).loops.values()) == {(), (HULL,)}
