"""``soundness --only stress`` on a stand-in compiler: what counts as a pass, and what as caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from reproduce import kernels
from reproduce.choreo import Choreo
from reproduce.cli import main
from reproduce.execute import execute
from reproduce.results import Document
from reproduce.running import outcome
from reproduce.step import Context, Options
from reproduce.steps import STEPS, stress
from tests.reproduce.conftest import FakeMachine

GPU = FakeMachine("NVIDIA H200", "13.0.88")
SIZES = {("stress_persistent", "base"): 90112, ("stress_persistent", "sala"): 73728}
GOOD = 'echo "stress: $CHOREO_STRESS_SEEDS seeds, 0 differ, plain equal, 0.500 ms undisturbed, 2.000 ms slowest"'
BAD = (
    'echo "stress: $CHOREO_STRESS_SEEDS seeds, 3 differ, plain equal, 0.500 ms undisturbed, 2.000 ms slowest"\n'
    "echo 'Test FAILED'; echo 'error: stress: an output differs' >&2; exit 1"
)


def programs(sound: str, wrong: str) -> str:
    """Bash lines of a program: what it does in a sound build for stress tests, and in a wrong one."""
    return f'case "$0" in *unsound*)\n{wrong}\n;; *stress.sh*)\n{sound}\n;; esac'


@pytest.fixture
def run(make_context: Callable[..., Context], make_choreo: Callable[..., Choreo], quiet) -> Callable[..., Document]:  # type: ignore[no-untyped-def]
    def run_stress(sound: str, wrong: str, own: bool = True) -> Document:
        choreo = replace(make_choreo(sizes=SIZES, program=programs(sound, wrong)), own=own)
        options = Options(fresh=True, only=("stress",), seeds=5)
        return execute(STEPS["soundness"], make_context("soundness", choreo, GPU, options), quiet)

    return run_stress


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kernels and the wrong builds of them."""
    names = ("fa_3s", "stress_persistent")
    monkeypatch.setattr(stress, "_ARGUMENTS", {name: stress._ARGUMENTS[name] for name in names})
    monkeypatch.setattr(stress, "WRONG", tuple(wrong for wrong in stress.WRONG if wrong.kernel in names))


def verdicts(document: Document, table: int) -> set[str]:
    return {row.verdict for row in document.tables[table].rows}


def test_sound_builds_that_never_differ_and_wrong_ones_that_do(run) -> None:  # type: ignore[no-untyped-def]
    document = run(GOOD, BAD)
    sound, wrong = document.tables
    assert len(sound.rows) == 23 and len(wrong.rows) == len(stress.WRONG)
    assert verdicts(document, 0) == verdicts(document, 1) == {"equal"} and outcome(document) == 0
    cells = sound.rows[0].cells
    assert [cells[key].value for key in ("seeds", "differing", "hung", "slowdown")] == [5, 0, 0, 4.0]
    assert wrong.rows[0].cells["showed"].value == "3 of 5" and wrong.rows[0].cells["undisturbed"].value == "no"
    assert wrong.notes[0] == f"Caught: {len(stress.WRONG)} of {len(stress.WRONG)}."
    launches, builds = stress.summary_rows(document.records, 5)
    assert launches.verdict == builds.verdict == "equal" and launches.cells["tried"].value == "115 launches"


def test_a_sound_build_that_differs(run, few: None) -> None:  # type: ignore[no-untyped-def]
    document = run(BAD, BAD)
    assert verdicts(document, 0) == {"differs"} and outcome(document) == 1
    assert stress.summary_rows(document.records, 5)[0].cells["broken"].value == 9


def test_a_wrong_build_that_nothing_catches(run, few: None) -> None:  # type: ignore[no-untyped-def]
    document = run(GOOD, GOOD)
    assert verdicts(document, 1) == {"differs"} and outcome(document) == 1
    assert document.tables[1].notes[0].startswith("Caught: 0 of")
    assert stress.summary_rows(document.records, 5)[1].cells["broken"].value == len(stress.WRONG)


def test_a_sound_build_that_is_wrong_before_any_delay(run, few: None) -> None:  # type: ignore[no-untyped-def]
    document = run(BAD.replace("plain equal", "plain differs"), BAD)
    assert verdicts(document, 0) == {"failed"} and outcome(document) == 1


def test_hangs_are_no_run_or_caught(run, few: None, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(stress, "LIMIT_S", 0.5)
    document = run("sleep 60", "sleep 60")
    assert verdicts(document, 0) == {"no run"} and verdicts(document, 1) == {"equal"}
    assert document.tables[1].rows[0].cells["showed"].value == "hung"


def test_a_fault_shows_a_wrong_build_and_another_failure_does_not(run, few: None) -> None:  # type: ignore[no-untyped-def]
    document = run(GOOD, "echo 'CUDA: an illegal memory access was encountered' >&2; exit 1")
    assert document.tables[1].rows[0].cells["showed"].value.startswith("fault")
    document = run(GOOD, "echo 'no such argument' >&2; exit 1")
    assert verdicts(document, 1) == {"failed"}


def test_another_compiler_has_no_such_builds(run, few: None) -> None:  # type: ignore[no-untyped-def]
    assert verdicts(run(GOOD, BAD, own=False), 0) == {"not measured"}


def test_unknown_parts_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["soundness", "--only", "none"]) == 2
    assert "soundness has no part `none`: it has simulator, translation, stress" in capsys.readouterr().err


def test_every_kernel_is_stressed_and_has_a_wrong_build() -> None:
    names = {path.stem for path in (kernels.ROOT / "kernels").glob("*/*.co")}
    assert names <= set(stress._ARGUMENTS)
    assert {wrong.kernel for wrong in stress.WRONG} == set(stress._ARGUMENTS)
    assert all(kernels.source(name).exists() for name in stress._ARGUMENTS)
