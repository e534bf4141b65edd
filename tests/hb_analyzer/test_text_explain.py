"""Explanations of single pairs."""

from __future__ import annotations

from collections.abc import Callable

from hb_analyzer.report import ScheduleStep, Site, Verdict
from hb_analyzer.text_explain import explain_text, verdict_json

WRITE = Site("producer", "load: write A", (1, 0), "k.co:12:3")
READ = Site("consumer", "store: read B")


def test_a_refusal(golden: Callable[[str], None]) -> None:
    steps = (ScheduleStep(1, WRITE, "begins"), ScheduleStep(2, READ, "value lost here"))
    golden(explain_text("k", Verdict("A", "B", False, "clobber", "why", WRITE, READ, (), steps, (("N", 2), ("M", 1)))))


def test_a_proof(golden: Callable[[str], None]) -> None:
    golden(explain_text("k", Verdict("A", "B", True, why="ordered", proof=((WRITE, READ), (READ,)))))


def test_a_refusal_without_evidence() -> None:
    text = explain_text("k", Verdict("A", "B", False, "unknown", "a branch on data"))
    assert text == "k: A and B may not overlap (unknown)\n\na branch on data\n"


def test_json() -> None:
    found = verdict_json(Verdict("A", "B", False, "conflict", "why", WRITE, None, (), (ScheduleStep(1, READ, "x"),)))
    assert found["first"] == {
        "role": "producer",
        "iteration": [1, 0],
        "operation": "load: write A",
        "where": "k.co:12:3",
    }
    assert found["second"] is None
    assert found["interleaving"] == [
        {"step": 1, "role": "consumer", "iteration": [], "operation": "store: read B", "where": None, "note": "x"}
    ]
