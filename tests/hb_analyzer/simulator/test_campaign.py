"""The engine against random programs. More of them: ``nox -s soundness``."""

from __future__ import annotations

import pytest

from hb_analyzer.simulator import campaign as module
from hb_analyzer.simulator.campaign import campaign, main, tally_text

BLOCKS, PER_BLOCK = 40, 50


@pytest.mark.parametrize("block", range(BLOCKS))
def test_two_thousand_random_programs(block: int) -> None:
    first = block * PER_BLOCK
    tally = campaign(range(first, first + PER_BLOCK), schedules=10, effort=40)
    assert not tally.broken, f"python -m hb_analyzer.simulator.campaign --seed {tally.broken[0][0]} --programs 1"
    assert tally.share() > 0.8
    assert tally.total("programs") == PER_BLOCK


def test_the_counts_add_up() -> None:
    tally = campaign(range(60), schedules=4, effort=10)
    assert tally.total("no") == tally.total("witnessed") + sum(tally.unwitnessed.values())
    assert tally.to_json()["totals"]["programs"] == 60
    assert "overlap 0" in tally_text(tally)


def test_a_broken_claim_fails_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.hb_analyzer.simulator.test_trial import yes_to_all

    monkeypatch.setattr(module, "analyse", yes_to_all)
    assert main(["--programs", "5", "--seed", "0", "--jobs", "1"]) == 1
    out = capsys.readouterr().out
    assert "BROKEN overlap" in out and "--programs 1)" in out
    assert "clobber of" in out or "conflict of" in out  # the counterexample as a table


@pytest.mark.parametrize("option", ["--programs", "--schedules", "--jobs"])
def test_nothing_run_is_no_evidence(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([option, "0"])
    assert "at least 1 is needed" in capsys.readouterr().err


def test_an_interrupt_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "campaign", interrupted)
    assert main(["--programs", "5"]) == 130 and "interrupted" in capsys.readouterr().err
