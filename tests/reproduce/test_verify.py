from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reproduce import claims, results, verify
from reproduce.results import Document, Record
from reproduce.steps import STEPS
from reproduce.tables import Cell, Column, Row, Table
from tests.reproduce.test_results import PROVENANCE

COLUMNS = (Column("bytes", "bytes", "B"), Column("regs", "regs", kind="toolchain"), Column("ratio", "r", "x", "timing"))


def document(
    gpu: str | None = None, nvcc: str | None = "13.0.88", records: dict[str, Record] | None = None, **cells: Cell
) -> Document:
    made = {"bytes": Cell(5), "regs": Cell(72), "ratio": Cell(1.34), **cells}
    origin: dict[str, Any] = {**PROVENANCE, "nvcc": nvcc, "gpu": {"name": gpu} if gpu else None}
    return Document("s", "S", "f", origin, records or {}, (Table("t", "T", COLUMNS, (Row("r", "r", made),)),), True)


@pytest.fixture
def expected(tmp_path: Path) -> Path:
    (tmp_path / "exact").mkdir()
    (tmp_path / "timing").mkdir()
    exact = {"measured": {"nvcc": "13.0.88"}, "values": {"s/t/r/bytes": 5, "s/t/r/regs": 72}}
    (tmp_path / "exact" / "s.json").write_text(json.dumps(exact))
    (tmp_path / "timing" / "h200.json").write_text(json.dumps({"values": {"s/t/r/ratio": [1.34, -0.03, 0.03, "x"]}}))
    (tmp_path / "timing" / "any.json").write_text(json.dumps({"values": {"s/t/r/ratio": [1.2, 0, None, "x"]}}))
    return tmp_path


def statuses(findings: list[verify.Finding]) -> dict[str, str]:
    return {finding.claim.rsplit("/", 1)[1]: finding.status for finding in findings}


def test_equal_values_pass(expected: Path) -> None:
    assert statuses(verify.exact(document(), expected)) == {"bytes": "ok", "regs": "ok"}


def test_any_other_value_is_a_mismatch_of_one_line(expected: Path) -> None:
    findings = verify.exact(document(bytes=Cell(6, log="logs/s/r.log")), expected)
    assert statuses(findings)["bytes"] == "MISMATCH"
    assert str(findings[0]) == "MISMATCH: s/t/r/bytes: expected 5, got 6; log: results/logs/s/r.log"
    # A float that equals an integer, or true for 1, is another value.
    assert statuses(verify.exact(document(bytes=Cell(5.0)), expected))["bytes"] == "MISMATCH"


def test_what_this_machine_cannot_measure_neither_passes_nor_fails(expected: Path) -> None:
    without = {"bytes": results.not_measured("no nvcc"), "regs": Record("measured")}
    findings = verify.exact(document(records=without, bytes=Cell(None, "not measured", "no nvcc")), expected)
    assert str(findings[0]) == "not measured here: s/t/r/bytes: expected 5, got no nvcc"
    assert statuses(findings)["regs"] == "ok"


@pytest.mark.parametrize("cell", [Cell(None, "not measured", "not reported"), Cell(None, "no run", "no nvcc")])
def test_a_value_that_is_missing_though_it_was_measured_does_not_pass(expected: Path, cell: Cell) -> None:
    findings = verify.exact(document(records={"a": results.not_measured("no nvcc")}, bytes=cell), expected)
    assert str(findings[0]) == f"MISMATCH: s/t/r/bytes: expected 5, got {cell.status}: {cell.reason}"


def test_a_missing_cell_and_a_cell_without_reference_are_mismatches(expected: Path) -> None:
    bare = document()
    bare.tables = (Table("t", "T", COLUMNS, (Row("other", "r", {"bytes": Cell(5)}),)),)
    findings = {finding.claim: finding for finding in verify.exact(bare, expected)}
    assert findings["s/t/r/bytes"].got == "no such cell"
    assert findings["s/t/other/bytes"].status == "MISMATCH"


def test_a_value_that_differs_from_the_paper_fails_even_if_the_reference_agrees(expected: Path) -> None:
    findings = verify.exact(document(bytes=Cell(5, paper=4, verdict="differs")), expected)
    assert statuses(findings)["bytes"] == "MISMATCH"


def test_registers_of_another_nvcc_are_not_judged(expected: Path) -> None:
    findings = verify.exact(document(nvcc="13.1.80", regs=Cell(75)), expected)
    assert statuses(findings) == {"bytes": "ok", "regs": "other toolchain"}


@pytest.mark.parametrize(
    ("ratio", "status"), [(1.34, "ok"), (1.30, "ok"), (1.29, "MISMATCH"), (1.38, "ok"), (1.39, "MISMATCH")]
)
def test_timing_within_the_profile(expected: Path, ratio: float, status: str) -> None:
    profile, findings = verify.timing(document("NVIDIA H200", ratio=Cell(ratio)), expected)
    assert profile == "h200" and statuses(findings) == {"ratio": status}


def test_an_unknown_gpu_gets_the_structural_checks(expected: Path) -> None:
    profile, findings = verify.timing(document("NVIDIA GH200-like", ratio=Cell(1.5)), expected)
    assert profile == "h200"
    profile, findings = verify.timing(document("NVIDIA X900", ratio=Cell(1.5)), expected)
    assert (profile, statuses(findings)) == ("any", {"ratio": "ok"})
    assert statuses(verify.timing(document("NVIDIA X900", ratio=Cell(1.1)), expected)[1]) == {"ratio": "MISMATCH"}


def test_unmeasured_timing_is_not_compared_and_a_hang_is_a_mismatch(expected: Path) -> None:
    absent = Cell(None, "not measured", "no GPU")
    assert statuses(verify.timing(document("H200", ratio=absent), expected)[1]) == {"ratio": "not compared"}
    hung = Cell(None, "no run", "hung")
    assert statuses(verify.timing(document("H200", ratio=hung), expected)[1]) == {"ratio": "MISMATCH"}


@pytest.mark.parametrize("reference", [[1.0, 0.1, 0.1, "x"], [1.0, -1.1, 0, "x"], [1.0, 0, -0.1, "x"]])
def test_tolerances_outside_their_domain_are_refused(reference: list[Any]) -> None:
    with pytest.raises(ValueError, match="tolerances"):
        verify.within(1.0, reference)


def test_the_references_of_figure_2_and_table_4_are_the_papers_values() -> None:
    figure2 = verify.load_reference(verify.EXPECTED / "exact" / "figure2.json")["values"]
    for item in claims.load()["figure2"]["items"]:
        for mode in ("base", "sala"):
            assert figure2[f"figure2/figure2/{item['item']}/{mode}"] == item[f"paper_{mode}"]
    table4 = verify.load_reference(verify.EXPECTED / "exact" / "table4.json")["values"]
    for half in ("shared_memory", "safety"):
        for number, item in enumerate(claims.load()["table4"][half], 1):
            for name in ("bytes", "safe_pairs", "overlap", "sound"):
                if f"paper_{name}" in item:
                    assert table4[f"table4/{half}/{number}/{name}"] == item[f"paper_{name}"]


def test_every_reference_belongs_to_a_step() -> None:
    for path in sorted(verify.EXPECTED.rglob("*.json")):
        for claim, reference in verify.load_reference(path)["values"].items():
            assert claim.split("/")[0] in STEPS, f"{path.name}: {claim}"
            if path.parent.name == "timing":
                verify.bounds(reference)
