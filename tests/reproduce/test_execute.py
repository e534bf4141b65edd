"""A step resumes: what was measured stays, whatever ended the run before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reproduce import provenance, results
from reproduce.choreo import Choreo
from reproduce.execute import execute
from reproduce.lock import LockedError, is_held, lock
from reproduce.machine import Need
from reproduce.results import Record
from reproduce.step import Context, FailedError, Measurement, NoRunError, NotMeasuredError, Options, Step
from reproduce.tables import Scalar, Table


def step_of(*items: Measurement) -> Step:
    def tables(records: dict[str, Record], context: Context) -> tuple[Table, ...]:
        return ()

    return Step("probe", "Probe", 1.0, (), lambda context: list(items), tables)  # type: ignore[arg-type]


@pytest.fixture
def context(make_context: Callable[..., Context], monkeypatch: pytest.MonkeyPatch) -> Context:
    monkeypatch.setattr(provenance, "fingerprint", lambda *args, **kwargs: "same")
    return make_context("probe", Choreo(("choreo",), own=False))


def test_every_ending_becomes_a_record_and_the_next_measurement_runs(context: Context, quiet) -> None:  # type: ignore[no-untyped-def]
    def ends_with(error: Exception | None) -> Callable[[Context], dict[str, object]]:
        def run(context: Context) -> dict[str, object]:
            if error:
                raise error
            return {"value": 1}

        return run

    items = [
        Measurement("a", ends_with(NoRunError("hung"))),  # type: ignore[arg-type]
        Measurement("b", ends_with(FailedError("wrong"))),  # type: ignore[arg-type]
        Measurement("c", ends_with(NotMeasuredError("no permission"))),  # type: ignore[arg-type]
        Measurement("d", ends_with(None)),  # type: ignore[arg-type]
        Measurement("e", ends_with(None), needs=frozenset({Need.GPU})),  # type: ignore[arg-type]
    ]
    document = execute(step_of(*items), context, quiet)
    found = {key: (record.status, record.reason) for key, record in document.records.items()}
    assert found == {
        "a": ("no run", "hung"),
        "b": ("failed", "wrong"),
        "c": ("not measured", "no permission"),
        "d": ("measured", ""),
        "e": ("not measured", "no GPU"),
    }
    assert document.complete and results.load(context.results, "probe") == document


def test_the_longest_of_those_that_run_together_start_first(
    context: Context, quiet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reproduce.execute.cores", lambda: 1)
    started: list[str] = []

    def item(key: str, seconds: float, parallel: bool = True) -> Measurement:
        def run(context: Context) -> dict[str, Scalar]:
            started.append(key)
            return {}

        return Measurement(key, run, seconds=seconds, parallel=parallel)

    execute(step_of(item("alone", 9, False), item("a", 1), item("long", 5), item("b", 1)), context, quiet)
    assert started == ["long", "a", "b", "alone"]


def test_a_rerun_keeps_what_was_measured_and_repeats_the_rest(context: Context, quiet) -> None:  # type: ignore[no-untyped-def]
    runs = {"good": 0, "bad": 0}

    def good(context: Context) -> dict[str, object]:
        runs["good"] += 1
        return {"value": runs["good"]}

    def bad(context: Context) -> dict[str, object]:
        runs["bad"] += 1
        raise NoRunError("hung")

    step = step_of(Measurement("good", good), Measurement("bad", bad))  # type: ignore[arg-type]
    first = execute(step, context, quiet)
    measured = "2026-01-02T03:04:05+00:00"
    first.records["good"] = replace(first.records["good"], when=measured)
    results.save(first, context.results)
    document = execute(step, context, quiet)
    assert runs == {"good": 1, "bad": 2} and quiet.kept_keys == ["good"]
    assert document.provenance["kept_from"] == measured
    assert execute(step, context, quiet).provenance["kept_from"] == measured  # not the run that kept it

    context.options = Options(fresh=True)
    execute(step, context, quiet)
    assert runs == {"good": 2, "bad": 4}


def test_other_sources_are_measured_again(context: Context, quiet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    step = step_of(Measurement("a", lambda context: {"value": 1}))
    execute(step, context, quiet)
    monkeypatch.setattr(provenance, "fingerprint", lambda *args, **kwargs: "other")
    execute(step, context, quiet)
    assert quiet.finished_keys == ["a", "a"] and "changed since the last run" in quiet.note


def test_an_interrupted_run_keeps_its_records(context: Context, quiet) -> None:  # type: ignore[no-untyped-def]
    def interrupt(context: Context) -> dict[str, object]:
        raise KeyboardInterrupt

    first = Measurement("first", lambda context: {"value": 1})
    with pytest.raises(KeyboardInterrupt):
        execute(step_of(first, Measurement("second", interrupt)), context, quiet)  # type: ignore[arg-type]
    kept = results.load(context.results, "probe")
    assert kept is not None and not kept.complete and list(kept.records) == ["first"]

    quiet.finished_keys.clear()
    document = execute(step_of(first, Measurement("second", lambda context: {"value": 2})), context, quiet)
    assert document.complete and quiet.finished_keys == ["second"]


def test_a_damaged_results_file_is_measured_again(context: Context, quiet) -> None:  # type: ignore[no-untyped-def]
    """And kept beside the new one, each time."""
    context.results.mkdir()
    for content, name in (("{", "probe.json.unreadable"), ("[", "probe.json.unreadable1")):
        (context.results / "probe.json").write_text(content)
        document = execute(step_of(Measurement("a", lambda context: {"value": 1})), context, quiet)
        assert document.complete and "cannot be read" in quiet.note and f"the file is now {name}" in quiet.note
        assert (context.results / name).read_text() == content
        assert results.load(context.results, "probe") == document


def test_two_runs_of_a_step_exclude_each_other(context: Context, quiet) -> None:  # type: ignore[no-untyped-def]
    with lock(context.results / ".lock-probe", "x"), pytest.raises(LockedError, match="another run"):
        execute(step_of(), context, quiet)


def test_a_program_that_outlives_its_killed_run_keeps_the_gpu(tmp_path: Path) -> None:
    """SIGKILL of the step while a program runs on the GPU: nothing may be timed beside it until that has ended."""
    code = f"""
from pathlib import Path
from reproduce.choreo import Choreo
from reproduce.execute import execute
from reproduce.machine import Need
from reproduce.step import Context, Measurement, Step
from tests.reproduce.conftest import FakeMachine, Quiet

def run(context):
    context.run(["bash", "-c", "echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; exec sleep 60"],
                timeout_s=60, log="run")

step = Step("probe", "Probe", 1.0, (), lambda _: [Measurement("a", run)], lambda *_: (), frozenset({{Need.GPU}}))
here = Path({str(tmp_path)!r})
context = Context("probe", here / "results", here / "build" / "steps", FakeMachine("H200"), Choreo(("x",), False), {{}})
execute(step, context, Quiet())
"""
    run = subprocess.Popen([sys.executable, "-c", code])
    while not (tmp_path / "pid").exists() and run.poll() is None:
        time.sleep(0.02)
    run.kill()
    run.wait()
    program = int((tmp_path / "pid").read_text())
    place = tmp_path / "build" / "locks" / "gpu-0.lock"
    try:
        with lock(tmp_path / "results" / ".lock-probe", "x"):  # the results are free: nobody writes them any more
            pass
        with pytest.raises(LockedError, match=f"process {run.pid}, which .* has left a program"), lock(place, "GPU 0"):
            pass
    finally:
        os.kill(program, signal.SIGKILL)
    while is_held(place):
        time.sleep(0.02)


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path, make_choreo: Callable[..., Choreo], calls) -> None:  # type: ignore[no-untyped-def]
    """SIGKILL in the middle of Figure 2: a hanging compiler, then the same command with one that answers."""
    command = [sys.executable, "-m", "reproduce", "figure2", "--results", str(tmp_path / "results")]
    environment = {**os.environ, "CHOREO": make_choreo(hang=("conv2d_fprop_ws_1p1c",)).command[0]}
    run = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    for _ in range(400):
        document = results.load(tmp_path / "results", "figure2")
        if document and len(document.records) >= 8 and (tmp_path / "calls.hanging").exists():
            break
        time.sleep(0.05)
    run.kill()
    run.wait()
    for line in (tmp_path / "calls.hanging").read_text().split():
        os.kill(int(line), signal.SIGKILL)  # the hanging compilers outlive a SIGKILL of the run, as anything would

    before = len(calls())
    make_choreo()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    document = results.load(tmp_path / "results", "figure2")
    assert document is not None and document.complete
    assert len(calls()) - before < 14  # of 14 compiler runs, those before the kill were not repeated
