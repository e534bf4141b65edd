from __future__ import annotations

from collections.abc import Callable

import pytest

from reproduce import cli, execute, provenance, results
from reproduce.choreo import Choreo
from reproduce.lock import lock
from reproduce.status import DONE, NEVER, PARTIAL, RUNNING, UNREADABLE, of_steps
from reproduce.step import Context
from reproduce.steps import STEPS
from tests.reproduce.conftest import FakeMachine, Quiet

CHOSEN = {name: STEPS[name] for name in ("figure2", "figure3", "table4")}


@pytest.fixture
def context(make_choreo: Callable[..., Choreo], make_context: Callable[..., Context], quiet: Quiet) -> Context:
    """Figure 2 is done, Figure 3 as far as it goes without a GPU, Table 4 never ran."""
    choreo = make_choreo()
    for step in ("figure2", "figure3"):
        context = make_context(step, choreo)
        execute.execute(STEPS[step], context, quiet)
    return context


def states(context: Context) -> dict[str, str]:
    return {each.step: each.state for each in of_steps(CHOSEN, context.results, FakeMachine(), context.choreo)}


def test_done_and_never(context: Context) -> None:
    figure2, figure3, table4 = of_steps(CHOSEN, context.results, FakeMachine(), context.choreo)
    assert (figure2.state, figure2.failed, figure2.not_measured, figure2.stale) == (DONE, 0, 0, "")
    assert figure2.measured == 16 and dict(figure2.verdicts) == {"equal": 9} and figure2.when.startswith("2")
    assert figure3.measured == 0 and figure3.not_measured > 5
    assert (table4.state, table4.when) == (NEVER, "")


def test_partial_running_unreadable(context: Context) -> None:
    document = results.load(context.results, "figure2")
    assert document is not None
    document.complete = False
    results.save(document, context.results)
    assert states(context)["figure2"] == PARTIAL
    with lock(context.results / ".lock-figure2", "x"), lock(context.results / ".lock-table4", "x"):
        assert states(context)["figure2"] == states(context)["table4"] == RUNNING
    (context.results / "figure2.json").write_text("{")
    assert states(context)["figure2"] == UNREADABLE


def test_results_of_other_sources_are_stale(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "fingerprint", lambda *args, **kwargs: "other")
    found = of_steps(CHOSEN, context.results, FakeMachine(), context.choreo)
    assert [each.stale for each in found] == ["other sources, compiler or GPU"] * 2 + [""]


def test_the_command(context: Context, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CHOREO", context.choreo.command[0])
    monkeypatch.setenv("COLUMNS", "160")
    assert cli.main(["status", "--results", str(context.results)]) == 0
    lines = {line.split()[0]: " ".join(line.split()) for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert lines["figure2"].startswith("figure2 done") and lines["figure2"].endswith("16 0 0 9 equal")
    assert lines["table4"] == "table4 never"
