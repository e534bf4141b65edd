from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reproduce import golden
from reproduce.tables import Cell
from tests.reproduce.test_verify import document


def test_an_exact_reference_says_who_measured(tmp_path: Path) -> None:
    made = golden.exact_reference(document())
    assert made["values"] == {"s/t/r/bytes": 5, "s/t/r/regs": 72} and made["measured"]["nvcc"] == "13.0.88"
    # What was not measured is no reference.
    made = golden.exact_reference(document(bytes=Cell(None, "not measured", "no nvcc")))
    assert made["values"] == {"s/t/r/regs": 72}


def test_references_that_a_machine_cannot_measure_are_kept() -> None:
    previous = {"values": {"s/t/r/bytes": 4, "s/t/r/regs": 70, "s/t/gone/regs": 1}}
    absent, failed = Cell(None, "not measured", "no nvcc"), Cell(None, "failed", "wrong")
    assert golden.exact_reference(document(regs=absent), previous)["values"] == {"s/t/r/bytes": 5, "s/t/r/regs": 70}
    assert golden.exact_reference(document(regs=failed), previous)["values"] == {"s/t/r/bytes": 5}


def test_kept_references_keep_their_nvcc() -> None:
    previous = {"measured": {"nvcc": "13.0.88"}, "values": {"s/t/r/regs": 70}}
    made = golden.exact_reference(document(nvcc=None, regs=Cell(None, "not measured", "no nvcc")), previous)
    assert made["values"]["s/t/r/regs"] == 70 and made["measured"]["nvcc"] == "13.0.88"
    assert golden.exact_reference(document(nvcc="13.1.1"), previous)["measured"]["nvcc"] == "13.1.1"


def test_the_difference_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    made = golden.exact_reference(document())
    assert golden.difference(path, made) == ["s.json: s/t/r/bytes: nothing → 5", "s.json: s/t/r/regs: nothing → 72"]
    golden.write(path, made)
    assert golden.difference(path, made) == []
    assert golden.difference(path, golden.exact_reference(document(regs=Cell(71)))) == ["s.json: s/t/r/regs: 72 → 71"]


def test_timing_is_the_median_with_the_spread_of_the_runs() -> None:
    runs = [[document("NVIDIA H200", ratio=Cell(value))] for value in (1.30, 1.34, 1.40, 1.33, 1.35)]
    value = golden.timing_reference(runs, None)["values"]["s/t/r/ratio"]
    assert value == [1.34, -0.0896, 0.0896, "x"]  # twice the widest deviation, 0.06 of 1.34
    flat = [[document("NVIDIA H200", ratio=Cell(value))] for value in (1.001, 1.0, 0.999)]
    assert golden.timing_reference(flat, None)["values"]["s/t/r/ratio"] == [1.0, -0.02, 0.02, "x"]


def test_runs_of_several_commits_say_so() -> None:
    made = document("NVIDIA H200")
    runs = [[replace(made, provenance={**made.provenance, "commit": commit})] for commit in "aba"]
    measured = golden.timing_reference(runs, None)["measured"]
    assert measured["commit"] == "a" and measured["commits"] == ["a", "b"] and measured["runs"] == 3
    assert "commits" not in golden.timing_reference(runs[:1], None)["measured"]


def test_a_row_may_have_a_slash_in_its_name() -> None:
    made = document("NVIDIA H200")
    table = made.tables[0]
    renamed = replace(table, rows=(replace(table.rows[0], id="GEMM at 1 CTA/SM"), *table.rows[1:]))
    values = golden.timing_reference([[replace(made, tables=(renamed,))]], None)["values"]
    assert set(values) == {"s/t/GEMM at 1 CTA/SM/ratio"}


def test_values_of_other_steps_stay() -> None:
    previous = {"values": {"other/t/r/ratio": [1.0, -0.02, 0.02, "x"]}}
    made = golden.timing_reference([[document("NVIDIA H200")]], previous)
    assert set(made["values"]) == {"other/t/r/ratio", "s/t/r/ratio"} and made["measured"]["runs"] == 1


def test_a_gpu_without_a_profile_gets_none() -> None:
    assert golden.profile_path([document("NVIDIA H200")]).name == "h200.json"
    with pytest.raises(ValueError, match="no GPU that has a profile"):
        golden.profile_path([document("NVIDIA X900")])
