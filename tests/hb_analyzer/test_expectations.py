"""The ``expect`` object of pattern files."""

from __future__ import annotations

from typing import Any

import pytest

from hb_analyzer.expectations import expectation_lines, unmet_expectations
from hb_analyzer.json_reader import PatternError
from hb_analyzer.pattern_report import PatternAnalysis, analyse_pattern
from tests.hb_analyzer.patterns import KV_BUFFERS, kv_roles, pattern, phase


def kv(**expect: Any) -> PatternAnalysis:
    return analyse_pattern(pattern(kv_roles(), KV_BUFFERS, expect=expect))


def test_nothing_expected() -> None:
    analysis = analyse_pattern(pattern(kv_roles(), KV_BUFFERS))
    assert unmet_expectations(analysis) is None
    assert expectation_lines(analysis) == []


def test_all_met() -> None:
    met = kv(
        smem_baseline=40960,
        smem_optimized=32768,
        overlaps=[["O_s", "V_s"], ["K_s", "O_s"]],
        kinds=[["K_s", "V_s", "conflict"]],
        deadlock=False,
    )
    assert unmet_expectations(met) == []
    assert expectation_lines(met) == ["all of it holds"]


@pytest.mark.parametrize(
    ("expect", "line"),
    [
        ({"smem_optimized": 1}, "smem_optimized: expected 1, got 32768"),
        ({"overlaps": []}, "overlaps: expected [], got [['K_s', 'O_s'], ['O_s', 'V_s']]"),
        ({"kinds": [["K_s", "V_s", "clobber"]]}, "expected ['K_s', 'V_s', 'clobber'] among the refusals"),
        ({"races": ["K_s"]}, "races: expected ['K_s'], got []"),
        ({"deadlock": True}, "deadlock: expected True, got False"),
    ],
)
def test_unmet(expect: dict[str, Any], line: str) -> None:
    assert unmet_expectations(kv(**expect)) == [line]


@pytest.mark.parametrize(
    ("expect", "message"),
    [
        (
            {"smem": 1},
            '"smem" is no expectation (known: smem_baseline, smem_optimized, overlaps, kinds, races, overruns, '
            "arrivals, unawaited, deadlock, no_acyclic)",
        ),
        ({"overlaps": [["a"]]}, "overlaps[0]: expected a list of 2 strings"),
        ({"kinds": None}, "kinds: expected a list, got null"),
        ({"races": [1]}, "races[0]: expected a string, got 1"),
        ({"no_acyclic": {"deadlock": 0}}, "no_acyclic.deadlock: expected true or false, got 0"),
    ],
)
def test_malformed(expect: dict[str, Any], message: str) -> None:
    with pytest.raises(PatternError) as caught:
        kv(**expect)
    assert str(caught.value) in (f"p.json: $.expect: {message}", f"p.json: $.expect.{message}")


def test_a_defect_that_nobody_expects_is_unmet() -> None:
    stuck = pattern({"r": [phase("p", "never", None, "A", loop=[])]}, {"A": 64}, expect={"smem_baseline": 64})
    assert unmet_expectations(analyse_pattern(stuck)) == ["deadlock: expected False, got True"]


def test_the_ablation_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBA_NO_ACYCLIC", "1")
    assert unmet_expectations(kv(smem_optimized=1)) is None
    assert unmet_expectations(kv(no_acyclic={"smem_optimized": 16384})) == []
