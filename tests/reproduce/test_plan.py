"""A dry run says what the run would do, and does nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from reproduce import ROOT, cli, execute, plan, provision
from reproduce.choreo import Choreo
from reproduce.machine import Need
from reproduce.step import Context, Measurement, Options
from reproduce.steps import STEPS
from tests.reproduce.conftest import FakeMachine, Quiet


@pytest.fixture
def choreo(make_choreo: Callable[..., Choreo]) -> Choreo:
    return make_choreo()


def test_it_says_what_the_run_then_does(choreo: Choreo, make_context: Callable[..., Context], quiet: Quiet) -> None:
    context = make_context("figure3", choreo, FakeMachine("NVIDIA H200", "13.0.88"))
    before = plan.plan(STEPS["figure3"], context)
    assert before.kept == 0 and before.cannot == () and before.seconds > 40 and not context.results.exists()
    execute.execute(STEPS["figure3"], context, quiet)
    assert sorted(quiet.finished_keys) == sorted(before.keys)
    after = plan.plan(STEPS["figure3"], context)
    assert (after.keys, after.kept, after.seconds) == ((), len(before.keys), 0)
    context.options = Options(fresh=True)
    assert plan.plan(STEPS["figure3"], context).keys == before.keys


def test_what_cannot_be_measured_here_and_why(choreo: Choreo, make_context: Callable[..., Context]) -> None:
    found = plan.plan(STEPS["figure3"], make_context("figure3", choreo, FakeMachine(nvcc="13.0.88")))
    assert found.keys == () and dict(found.cannot) == {
        "no GPU": len(STEPS["figure3"].measurements(make_context("figure3", choreo)))
    }


def test_what_the_run_would_install_is_not_missing(choreo: Choreo, make_context: Callable[..., Context]) -> None:
    found = plan.plan(STEPS["table3"], make_context("table3", choreo, FakeMachine()))
    assert found.installs == ("nvcc 13.0 (104 MB)",) and all(key.startswith("build.") for key in found.keys)
    assert set(dict(found.cannot)) == {"no GPU"}


def test_cuda_minors_are_not_installed_by_a_dry_run(
    choreo: Choreo, make_context: Callable[..., Context], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provision.toolchain, "find", lambda: SimpleNamespace(release="13.0", nvcc="/nvcc"))
    monkeypatch.setattr(provision.subprocess, "run", lambda *words, **options: pytest.fail("something was installed"))
    options = Options(cuda=("13.0", "13.1"))
    context = make_context("registers", choreo, FakeMachine(nvcc="13.0.88"), options)
    found = plan.plan(STEPS["registers"], context)
    assert found.installs == ("nvcc 13.1",) and len(found.keys) == 36


def test_what_runs_beside_each_other_shares_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "cores", lambda: 4)
    items = [Measurement(str(n), dict, frozenset({Need.NVCC}), 8.0, parallel=n > 0) for n in range(3)]  # type: ignore[arg-type]
    assert plan.seconds_of(items) == 8 + 4


def test_the_command_writes_nothing(choreo: Choreo, monkeypatch, capsys, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("CHOREO", choreo.command[0])
    monkeypatch.setenv("RESULTS", str(tmp_path / "results"))
    assert cli.main(["figure2", "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert "16 to measure, about" in text and "to measure: 1.base" in text and "Nothing was run or written" in text
    assert not (tmp_path / "results").exists() and not (tmp_path / "calls").exists()
    assert cli.main(["all", "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert {line for line in text.splitlines() if line in STEPS} == set(STEPS)
    assert "executions (26)" in text  # many are named by what they have in common
    assert cli.main(["table2", "--dry-run", "--only", "nonsense"]) == 2


def test_the_task_says_where(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "invoke", "figure2", "--dry-run", "--results", str(tmp_path / "results")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr.startswith("steps run ") and "16 to measure" in done.stdout
    assert not (tmp_path / "results").exists()
