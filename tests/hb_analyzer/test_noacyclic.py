"""The unsound ablation, exactly as it is defined."""

from __future__ import annotations

from typing import Any

import pytest

from hb_analyzer import noacyclic
from hb_analyzer.noacyclic import analyse_without_acyclic
from tests.hb_analyzer.patterns import KV_BUFFERS, kv_roles, pattern, phase


def overlaps(roles: dict[str, list[dict[str, Any]]], **more: Any) -> set[tuple[str, str]]:
    names = {name for phases in roles.values() for p in phases for name in p["buffers"]}
    report = analyse_without_acyclic(pattern(roles, dict.fromkeys(sorted(names), 64), **more))
    return {(v.a, v.b) for v in report.verdicts if v.overlap}


def test_all_pairs_of_the_kv_pipeline() -> None:
    report = analyse_without_acyclic(pattern(kv_roles(), KV_BUFFERS))
    assert all(v.overlap for v in report.verdicts)
    assert (report.baseline, report.placement.size) == (40960, 16384)
    assert report.notes == (noacyclic.WARNING,)


def test_one_phase_that_uses_both() -> None:
    assert overlaps({"r": [phase("p", None, None, "A", "B")]}) == set()


def test_phases_that_do_not_reach_each_other() -> None:
    assert overlaps({"a": [phase("p", None, None, "A")], "b": [phase("q", None, None, "B")]}) == set()


def test_program_order_is_enough_even_for_a_clobber() -> None:
    roles = {"r": [phase("p", None, None, "A"), phase("q", None, None, "B"), phase("s", None, None, "A")]}
    assert overlaps(roles) == {("A", "B")}


def test_every_event_edge_counts_whatever_is_carried() -> None:
    roles = {"producer": [phase("load", "e", "f", "A")], "consumer": [phase("use", "f", "e", "B")]}
    assert overlaps(roles) == {("A", "B")}


def test_barriers_order() -> None:
    def roles(**more: Any) -> dict[str, list[dict[str, Any]]]:
        return {
            "c1": [phase("use", None, None, "A"), phase("store", None, None, **more)],
            "c2": [phase("idle"), phase("store", None, None, "B", **more)],
        }

    assert overlaps(roles()) == set()
    assert overlaps(roles(barrier="b")) == {("A", "B")}


def test_no_defects_are_reported() -> None:
    report = analyse_without_acyclic(pattern({"r": [phase("p", "never", None, "A")]}, {"A": 64}))
    assert (report.deadlocks, report.races, report.overruns) == ((), (), ())


@pytest.mark.parametrize(("value", "selected"), [("1", True), ("0", False), ("", False), (None, False)])
def test_selection(monkeypatch: pytest.MonkeyPatch, value: str | None, selected: bool) -> None:
    monkeypatch.delenv("HBA_NO_ACYCLIC", raising=False)
    if value is not None:
        monkeypatch.setenv("HBA_NO_ACYCLIC", value)
    assert noacyclic.selected() is selected
