"""``python -m reproduce.soundness`` and the step made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reproduce import soundness
from reproduce.results import Record
from reproduce.running import context_for
from reproduce.step import Options
from reproduce.steps import soundness as step
from reproduce.tables import MEASURED, Table

KERNEL = "kernel/matmul_f16_dyn_sm90_warpspec_1p1c_64x128_4s"


def data(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, int]]:
    assert soundness.main([*arguments, "--json"]) == 0
    found: dict[str, dict[str, int]] = json.loads(capsys.readouterr().out)
    return found


def test_every_kernel_and_example_is_a_subject() -> None:
    names = [name for name, _ in soundness.subjects()]
    assert KERNEL in names and "example/choreo_fa_kv" in names
    assert len([name for name in names if name.startswith("kernel/")]) == len(list(Path("kernels").glob("*/*.co")))


def test_estimates_are_of_subjects() -> None:
    assert step._MUTANTS_S.keys() <= {name for name, _ in soundness.subjects()}


def test_a_kernel_under_all_schedules(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = data(capsys, "exhaustive", "--only", KERNEL).values()
    assert found["covered"] == len(soundness.COUNTS) and found["warps_covered"] == len(soundness.WARP_COUNTS)
    assert found["findings"] == 0 and found["states"] > 500


def test_no_mutant_of_a_kernel_survives(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = data(capsys, "mutants", "--only", KERNEL).values()
    assert found["mutants"] > 20
    assert not {"survived", "open"} & set(found["fates"])  # type: ignore[call-overload]


def test_the_costs_of_a_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    costs = data(capsys, "peers", "--peer-programs", "0", "--only", KERNEL)["costs"]
    assert costs[KERNEL] == {"apart": 114688, "within_roles": 114688, "analysed": 98304}  # type: ignore[comparison-overlap]


def test_texts(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["all", "--programs", "10", "--peer-programs", "25", "--jobs", "1", "--only", KERNEL]
    assert soundness.main(arguments) == 0
    out = capsys.readouterr().out
    assert "claims broken: overlap 0" in out and "shown wrong" in out and KERNEL in out


@pytest.mark.parametrize("part", ["mutants", "translation"])
def test_an_unknown_subject(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        soundness.main([part, "--only", "kernel/none"])
    assert ended.value.code == 2 and "there is no kernel/none" in capsys.readouterr().err


def tables(tmp_path: Path, **changes: int) -> tuple[Table, ...]:
    programs = {"programs": 2000, "executions": 9, "share": 99.0, **{f"broken_{c}": 0 for c in step._CLAIMS}}
    records = {"programs": Record(MEASURED, {**programs, **changes})}
    for name, _ in soundness.subjects():
        records[f"executions.{name}"] = Record(MEASURED, {"transitions": 10, "findings": changes.get("findings", 0)})
        fates = {**dict.fromkeys(step._FATES, 0), "mutants": 5, "survived": changes.get("survived", 0)}
        records[f"mutants.{name}"] = Record(MEASURED, fates)  # type: ignore[arg-type]
    return step.tables(records, context_for("soundness", tmp_path, Options(only=("simulator",))))


def test_a_summary_without_findings_is_good(tmp_path: Path) -> None:
    assert {row.verdict for row in tables(tmp_path)[0].rows} == {"equal"}


@pytest.mark.parametrize(
    ("row", "change"),
    [
        ("overlap", {"broken_overlap": 1}),
        ("deadlock", {"broken_deadlock": 2}),
        ("witness", {"share": 90}),
        ("executions", {"findings": 1}),
        ("mutants", {"survived": 1}),
    ],
)
def test_a_broken_claim_shows(tmp_path: Path, row: str, change: dict[str, int]) -> None:
    verdicts = {found.id: found.verdict for found in tables(tmp_path, **change)[0].rows}
    assert verdicts.pop(row) == "differs"
    assert set(verdicts.values()) == {"equal"}


def test_nothing_measured_is_no_pass(tmp_path: Path) -> None:
    made = step.tables({}, context_for("soundness", tmp_path, Options()))
    assert not any(row.verdict == "equal" for table in made for row in table.rows)
