"""``python -m hb_analyzer simulate``."""

from __future__ import annotations

import json

import pytest

from hb_analyzer.cli import main


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["simulate", *arguments]) == 0
    return capsys.readouterr().out


def test_a_sound_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    out = output(capsys, "choreo_fa_kv", "--schedules", "20")
    assert out.startswith("fa_kv_overlap: 20 executions") and "nothing observed" in out


def test_all_executions(capsys: pytest.CaptureFixture[str]) -> None:
    out = output(capsys, "choreo_fa_kv", "--exhaustive", "--set", "N=4")
    assert "all executions at N = 4" in out and "nothing observed" in out


def test_an_overlap_that_was_refused(capsys: pytest.CaptureFixture[str]) -> None:
    out = output(capsys, "choreo_fa_kv", "--over", "K_s", "V_s", "--seed", "1")
    assert "conflict of K_s and V_s" in out
    seed = out.split("--seed ")[1].split()[0]
    assert "of K_s and V_s" in output(
        capsys, "choreo_fa_kv", "--over", "K_s", "V_s", "--seed", seed, "--schedules", "1"
    )


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(output(capsys, "choreo_fa_kv", "--over", "K_s", "V_s", "--exhaustive", "--json"))
    assert data["complete"] and {"conflict"} <= {finding["kind"] for finding in data["findings"]}
    assert data["findings"][0]["steps"][0]["step"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--over", "K_s", "X"], 'no buffer "X"'),
        (["--over", "K_s", "K_s"], "twice"),
        (["--set", "M=3"], 'no trip count "M"'),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main(["simulate", "choreo_fa_kv", *arguments]) == 2
    assert message in capsys.readouterr().err
