"""Mutants: which there are, and what becomes of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from hb_analyzer import analyse
from hb_analyzer.model import Program
from hb_analyzer.report import Report
from hb_analyzer.simulator.mutants import fate, mutants
from tests.hb_analyzer.programs import attention, gemm, persistent_gemm


def test_every_synchronisation_is_taken_out_once() -> None:
    kinds = Counter(mutant.kind for mutant in mutants(gemm(1, 2)))
    # 2 waits, 4 triggers (full, empty, two initial releases), each also one slot on; the loads and reads likewise;
    # two drains, removed or one later; arrivals and initial settings of two events.
    assert kinds == {
        "wait": 2,
        "trigger": 4,
        "commit": 1,
        "drain": 4,
        "slot": 2 + 4 + 4 + 2,
        "arrivals": 2,
        "initial": 2,
    }


def test_a_line_of_several_roles_is_changed_in_one_and_in_all() -> None:
    found = [mutant.what for mutant in mutants(gemm(2, 2, barrier=True)) if mutant.kind == "barrier"]
    assert found == [
        "consumer0: without barrier consumers",
        "consumer1: without barrier consumers",
        "all roles: without barrier consumers",
    ]


def test_mutants_differ_from_the_original_and_each_other() -> None:
    source = attention(2)
    made = [mutant.program for mutant in mutants(source)]
    assert source not in made
    assert all(isinstance(program, Program) for program in made)


@pytest.mark.parametrize("source", [gemm(2, 2, barrier=True), attention(2), persistent_gemm(2, epilogue_event=True)])
def test_no_mutant_survives(source: Program) -> None:
    original = analyse(source)
    for mutant in mutants(source):
        found = fate(original, mutant.program, analyse)
        assert found.name not in ("survived", "open"), (mutant.what, found)


def test_a_blind_engine_lets_mutants_survive() -> None:
    source = gemm(2, 2, barrier=True)
    whole = analyse(source)

    def blind(program: Program) -> Report:
        return replace(whole)

    fates = Counter(fate(whole, mutant.program, blind).name for mutant in mutants(source))
    assert fates["survived"] > 20
