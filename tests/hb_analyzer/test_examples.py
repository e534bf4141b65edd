"""The examples that come with the analyzer: each states its verdict, and the verdict holds."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hb_analyzer import analyse
from hb_analyzer.examples import example_paths
from hb_analyzer.expectations import unmet_expectations
from hb_analyzer.pattern_load import load_pattern
from hb_analyzer.pattern_report import analyse_pattern
from hb_analyzer.translate import to_program

NAMES = [path.name for path in example_paths()]
BY_NAME = {path.name: path for path in example_paths()}


def report(name: str) -> dict[str, object]:
    return analyse_pattern(load_pattern(BY_NAME[name])).to_json()


def test_the_examples_are_there() -> None:
    assert {
        "choreo_fa_kv.json",
        "choreo_fa_full.json",
        "choreo_gemm_1p1c_f16.json",
        "choreo_gemm_1p1c_e4m3.json",
        "choreo_gemm_1p3c.json",
        "choreo_gemm_1p3c_nobarrier.json",
        "fa_kv_missing_signal.json",
        "cutlass_cooperative_128x128_4s.json",
        "cutlass_pingpong_64x128_4s.json",
        "cutlass_nonpersistent_128x128_3s.json",
        "triton_gemm_128x128_3s.json",
        "tilelang_gemm_128x128_3s.json",
        "fa3_persistent.json",
        "persistent_gemm.json",
        "persistent_gemm_epilogue_event.json",
    } == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_expected_verdict(name: str) -> None:
    assert unmet_expectations(analyse_pattern(load_pattern(BY_NAME[name]))) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_expectation_says_something(name: str) -> None:
    expect = load_pattern(BY_NAME[name]).expect
    assert expect is not None
    assert {"smem_baseline", "smem_optimized", "overlaps"} <= set(expect)


def test_figure_2_model_of_k_and_v() -> None:
    found = report("choreo_fa_kv.json")
    assert (found["kernel"], found["smem_baseline"], found["smem_optimized"]) == ("fa_kv_overlap", 40960, 32768)
    assert found["overlaps"] == [["K_s", "O_s", True], ["K_s", "V_s", False], ["O_s", "V_s", True]]


def test_figure_2_model_of_the_full_pipeline() -> None:
    found = report("choreo_fa_full.json")
    assert (found["kernel"], found["smem_baseline"], found["smem_optimized"]) == ("fa_fwd_full_pipeline", 73728, 57344)


def test_the_ablation_accepts_k_over_v(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBA_NO_ACYCLIC", "1")
    found = report("choreo_fa_kv.json")
    assert found["overlaps"] == [["K_s", "O_s", True], ["K_s", "V_s", True], ["O_s", "V_s", True]]
    assert found["ablation"] is True


@pytest.mark.parametrize("name", NAMES)
def test_the_analysis_is_fast(name: str) -> None:
    """A bound that holds on a busy machine too; nested loops are decided by unrolling over both trip counts."""
    program = to_program(load_pattern(BY_NAME[name]))
    durations = []
    for _ in range(3):
        start = time.perf_counter()
        analyse(program)
        durations.append(time.perf_counter() - start)
    assert min(durations) < (2.0 if len(program.parameters) > 1 else 0.25)


def test_the_published_examples_use_no_extension() -> None:
    for name in ("choreo_fa_kv.json", "choreo_fa_full.json", "fa_kv_missing_signal.json"):
        loaded = load_pattern(BY_NAME[name])
        assert not loaded.marked
        assert not loaded.events
        assert all(a.mode == "rw?" for _, phase in loaded.phases() for a in phase.accesses)


def test_examples_are_shipped() -> None:
    import hb_analyzer

    assert Path(hb_analyzer.__file__).parent / "examples" == BY_NAME[NAMES[0]].parent
