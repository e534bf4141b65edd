"""Interleavings are executions in which the overlap is observed."""

from __future__ import annotations

from random import Random

import pytest

from hb_analyzer import explain_pair
from hb_analyzer.conditions import Finding
from hb_analyzer.decide import decide
from hb_analyzer.interleave import interleaving, schedule
from hb_analyzer.model import Access, Buffer, Program, Role
from hb_analyzer.report import Verdict
from hb_analyzer.unrolling import Unrolling
from tests.hb_analyzer.programs import attention, gemm, persistent_gemm
from tests.hb_analyzer.random_programs import nested_program, single_loop_program


def evidence(program: Program) -> list[tuple[Finding, Unrolling]]:
    return list(decide(program).evidence.values())


def test_schedule_is_executable_and_minimal() -> None:
    preds: list[list[int]] = [[], [0], [0], [1, 2], [3], []]
    order = schedule(preds, [1, 3])
    assert order == [0, 1, 2, 3]


@pytest.mark.parametrize("source", [gemm(3, 2), attention(2, 2), persistent_gemm()], ids=lambda p: p.name)
def test_conflicts_are_observed(source: Program) -> None:
    for finding, run in evidence(source):
        check(finding, run)


@pytest.mark.parametrize("seed", range(25))
def test_findings_in_random_programs_are_observed(seed: int) -> None:
    for source in (single_loop_program(Random(seed)), nested_program(Random(seed))):
        for finding, run in evidence(source):
            check(finding, run)


def check(finding: Finding, run: Unrolling) -> None:
    """The steps respect every dependence, and show the accesses concerned at the right places."""
    first, second = run.accesses[finding.first], run.accesses[finding.second]
    goals = [second.begin] if finding.kind == "clobber" else [first.begin, second.begin]
    order = schedule(run.preds, goals)
    assert all(order.index(p) < order.index(node) for node in order for p in run.preds[node])
    if finding.kind == "clobber":
        assert finding.between is not None
        between = run.accesses[finding.between]
        assert first.end is not None and between.end is not None
        assert order.index(first.end) < order.index(between.end)
        assert order.index(between.end) < order.index(second.begin)
    elif finding.kind == "conflict":
        # Neither has ended when both have begun, unless it is one statement: then nothing orders the two.
        assert all(a.end == a.begin or a.end not in order for a in (first, second))
    steps = interleaving(run, finding)
    assert [step.step for step in steps] == list(range(1, len(steps) + 1))
    shown = [step.site for step in steps]
    assert run.site(first.begin) in shown and run.site(second.begin) in shown
    assert steps[-1].note


def test_the_clobber_names_the_three_accesses() -> None:
    body = (Access("A", "w"), Access("B", "w"), Access("B", "r"), Access("A", "r"))
    verdict = explain_pair(Program("p", (Buffer("A", 8), Buffer("B", 8)), (), (Role("r", body),)), "A", "B")
    assert [(step.site.label, step.note) for step in verdict.interleaving] == [
        ("write A[0]", "writes A"),
        ("write B[0]", "overwrites it as B"),
        ("read B[0]", ""),
        ("read A[0]", "reads it: value lost"),
    ]


def test_waits_are_shown_with_the_triggers_they_needed() -> None:
    verdict: Verdict = explain_pair(persistent_gemm(), "lhs", "out")
    labels = [str(step.site) for step in verdict.interleaving]
    wait = labels.index("producer [iteration 1, 0]: wait empty[1]")
    assert {"consumer0: trigger empty[1]", "consumer1: trigger empty[1]"} <= set(labels[:wait])
