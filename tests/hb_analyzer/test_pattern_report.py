"""What is reported of a pattern beyond the engine's verdicts."""

from __future__ import annotations

from typing import Any

from hb_analyzer.pattern_report import analyse_pattern, described_edges, sharing_groups
from hb_analyzer.report import Placement
from tests.hb_analyzer.patterns import KV_BUFFERS, document, kv_roles, load, pattern, phase


def two_consumers(loader: str = "producer") -> dict[str, Any]:
    """One loader, two consumers that list the same buffers without saying who writes."""
    value = document({}, {"A": 64, "out": 128})

    def consumer() -> list[dict[str, Any]]:
        return [phase("use", "full", "empty", "A"), phase("store", None, None, "out")]

    value["warp_groups"] = [
        {"wg_id": 0, "role": loader, "phases": [phase("load", "empty", "full", "A")]},
        {"wg_id": 1, "role": "consumer", "phases": consumer()},
        {"wg_id": 2, "role": "consumer", "phases": consumer()},
    ]
    return value


def test_consumers_that_only_list_a_buffer_do_not_race_with_each_other() -> None:
    report = analyse_pattern(load(two_consumers())).report
    assert report.races == ()
    assert [a for a in report.assumptions if "do not conflict" in a] == [
        f'consumers do not conflict inside "{name}": consumer_1, consumer_2 list it without "reads" or "writes"'
        for name in ("A", "out")
    ]
    assert not report.verdict("A", "out").overlap  # one consumer stores while the other still uses A


def test_a_race_with_the_producer_stays() -> None:
    value = two_consumers()
    value["warp_groups"][2]["phases"][0]["signal_in"] = None
    assert {race.buffer for race in analyse_pattern(load(value)).report.races} == {"A"}


def test_without_a_producer_nothing_is_assumed() -> None:
    value = two_consumers(loader="loader")
    value["events"] = {"empty": {"initial": 1}}
    assert {race.buffer for race in analyse_pattern(load(value)).report.races} == {"A", "out"}


def test_declared_accesses_are_taken_at_their_word() -> None:
    value = two_consumers()
    for group in value["warp_groups"][1:]:
        group["phases"] = [
            phase("use", "full", "empty", "A", reads=["A"]),
            phase("store", None, None, "out", writes=["out"]),
        ]
    assert {race.buffer for race in analyse_pattern(load(value)).report.races} == {"out"}


def test_edges() -> None:
    analysis = analyse_pattern(pattern(kv_roles(), KV_BUFFERS))
    edges = described_edges(analysis.pattern, analysis.inference)
    assert [(e.name, e.source, e.why) for e in edges if e.kind == "carried"] == [
        ("k_empty", "consumer: use K", "released before the loop"),
        (
            "v_empty",
            "consumer: use V",
            'it goes from consumer to producer, as "k_empty" does, which is released before the loop',
        ),
    ]
    assert [(e.source, e.target) for e in edges if e.kind == "loop"] == [
        ("producer: load V", "producer: load K"),
        ("consumer: use V", "consumer: use K"),
    ]
    assert next((e.name, e.source) for e in edges if e.kind == "event") == ("k_empty", "consumer: initial release")


def test_barrier_edges_name_the_members() -> None:
    loaded = pattern({r: [phase("a"), phase("b", barrier="x", loop=[])] for r in ("p", "q")}, {"A": 1})
    edges = [e for e in described_edges(loaded, analyse_pattern(loaded).inference) if e.kind == "barrier"]
    assert [(e.source, e.target) for e in edges] == [("q: a", "p: b"), ("p: a", "q: b")]


def test_groups_share_addresses_directly_or_through_a_third() -> None:
    placement = Placement({"A": 0, "B": 64, "C": 32, "D": 128}, {"A": 64, "B": 64, "C": 64, "D": 8}, 136, 0, True)
    assert sharing_groups(placement) == [("A", "C", "B")]


def test_ignored_keys_are_noted() -> None:
    value = document(kv_roles(), KV_BUFFERS, author="someone")
    assert analyse_pattern(load(value)).to_json()["notes"] == ["$.author is no key of the format and was ignored"]
