"""Ways in which shared-memory overlap has gone wrong, as pattern files: the racy one refused, its fixed twin accepted.

``hazards/<kind>_racy.json`` and ``hazards/<kind>_fixed.json`` differ in the synchronisation only; each says in
``expect`` exactly what the analysis must find.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hb_analyzer import explain_pair
from hb_analyzer.expectations import unmet_expectations
from hb_analyzer.pattern_load import load_pattern
from hb_analyzer.pattern_report import PatternAnalysis, analyse_pattern

FILES = Path(__file__).parent / "hazards"
KINDS = [
    "barrier_storage_reused",
    "clobber_inside_one_role",
    "fewer_arrivals_than_consumers",
    "generic_write_asynchronous_read",
    "loop_invariant_operand_aliased",
    "one_warp_ahead",
    "phase_mismatch_across_tiles",
    "staging_aliased_across_tiles",
    "wait_at_wrong_first_use",
]


def analysis(kind: str, variant: str) -> PatternAnalysis:
    return analyse_pattern(load_pattern(FILES / f"{kind}_{variant}.json"))


def defects(found: PatternAnalysis) -> int:
    report = found.report
    return sum(map(len, (report.deadlocks, report.overruns, report.races, report.arrivals)))


def test_every_file_belongs_to_a_kind() -> None:
    names = {f"{kind}_{variant}.json" for kind in KINDS for variant in ("racy", "fixed")}
    assert {path.name for path in FILES.glob("*.json")} >= names


@pytest.mark.parametrize("kind", KINDS)
def test_fixed_is_accepted(kind: str) -> None:
    found = analysis(kind, "fixed")
    assert unmet_expectations(found) == []
    assert defects(found) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_racy_is_refused_or_reported(kind: str) -> None:
    racy, fixed = analysis(kind, "racy"), analysis(kind, "fixed")
    assert unmet_expectations(racy) == []
    lost = {(v.a, v.b) for v in fixed.report.verdicts if v.overlap} - {
        (v.a, v.b) for v in racy.report.verdicts if v.overlap
    }
    assert lost or defects(racy), "neither a pair that the fixed twin allows is refused nor a defect reported"


@pytest.mark.parametrize("kind", KINDS)
def test_refusals_come_with_an_explanation(kind: str) -> None:
    racy = analysis(kind, "racy")
    for verdict in racy.report.verdicts:
        explained = explain_pair(racy.program, verdict.a, verdict.b)
        assert (explained.overlap, explained.kind) == (verdict.overlap, verdict.kind)
        assert verdict.overlap or verdict.why
