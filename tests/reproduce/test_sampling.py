"""The GPU's state beside what is timed: what is sampled, what of it counts, and what a reader is told."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from reproduce import provenance, report, results, sampling, verify
from reproduce.choreo import Choreo
from reproduce.execute import execute
from reproduce.results import Record
from reproduce.sampling import Sample, SamplingError, summarise
from reproduce.step import Context
from reproduce.steps import STEPS
from reproduce.tables import SHOWN, SLOWED
from tests.reproduce.conftest import FakeMachine, Quiet

IDLE, CAP, HW, SW_THERMAL, HW_THERMAL, BRAKE = 0x1, 0x4, 0x8, 0x20, 0x40, 0x80


def sample(reasons: int = 0, clock: float = 1980.0) -> Sample:
    return Sample(clock, 3201.0, 650.0, 55.0, reasons)


class Scripted:
    """A GPU that goes through ``states`` and stays in the last one."""

    power_limit = 700.0

    def __init__(self, states: Sequence[Sample | SamplingError]) -> None:
        self._states = list(states)
        self.reads = threading.Semaphore(0)  # one for each time that it was asked

    def read(self) -> Sample:
        self.reads.release()
        state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        if isinstance(state, SamplingError):
            raise state
        return state


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Scripted]:
    def states(*found: Sample | SamplingError) -> Scripted:
        source = Scripted(found)
        monkeypatch.setattr(sampling, "open_source", lambda index: source)
        return source

    return states


def test_least_median_greatest_of_the_busy_samples() -> None:
    found = summarise(
        [sample(IDLE, 345), *(sample(CAP, clock) for clock in (1500, 1700, 1600)), sample(IDLE, 345)], 700.0
    )
    assert found == {
        "samples": 3,
        "sm_clock_mhz": [1500.0, 1600.0, 1700.0],
        "memory_clock_mhz": [3201.0] * 3,
        "power_w": [650.0] * 3,
        "temperature_c": [55.0] * 3,
        "power_limit_w": 700.0,
        "reasons": {"software power cap": 100.0},
        "slowed_by": [],  # at its power limit by design
    }
    assert summarise([sample(IDLE, 345)], None)["sm_clock_mhz"] == [345.0] * 3
    assert summarise([], 700.0) == {"samples": 0, "why": "it ended before the first sample"}


@pytest.mark.parametrize(
    ("reasons", "slowed"),
    [
        ([SW_THERMAL, 0, 0], ["software thermal slowdown"]),
        ([0, HW_THERMAL | HW, HW], ["hardware slowdown", "hardware thermal slowdown"]),
        ([BRAKE | CAP, 0, 0], ["hardware power brake"]),
        ([HW, 0, 0], []),  # NVML reports it at a change of clocks, too
        ([CAP, CAP, 0x2 | 0x10], []),
    ],
)
def test_what_slows_a_gpu_down(reasons: list[int], slowed: list[str]) -> None:
    assert summarise([sample(bits) for bits in reasons], 700.0)["slowed_by"] == slowed


def test_what_the_gpu_does_not_tell_is_left_out() -> None:
    found = summarise([Sample(1980.0, None, None, None, 0)], None)
    assert set(found) == {"samples", "sm_clock_mhz", "reasons", "slowed_by"}


def test_a_watch_samples_while_the_block_runs(gpu) -> None:  # type: ignore[no-untyped-def]
    source, began = gpu(sample()), time.monotonic()
    with sampling.watch("0", interval_s=0.005) as watched:
        for _ in range(6):
            assert source.reads.acquire(timeout=30)
        assert watched.summary == {}
    assert 5 < watched.summary["samples"] < 2 + (time.monotonic() - began) / 0.005
    count = watched.summary["samples"]
    while source.reads.acquire(blocking=False):
        pass
    assert not source.reads.acquire(timeout=0.05) and watched.summary["samples"] == count


def test_what_cannot_be_sampled_is_timed_all_the_same(gpu, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    source = gpu(SamplingError("NVML: Not Supported"))
    with sampling.watch("0") as watched:
        assert source.reads.acquire(timeout=30)
    assert watched.summary == {"samples": 0, "why": "NVML: Not Supported"}

    def none(index: str) -> None:
        raise SamplingError("nvidia-ml-py is not installed")

    monkeypatch.setattr(sampling, "open_source", none)
    with pytest.raises(KeyError), sampling.watch("0") as watched:
        raise KeyError  # of the block: it goes through
    assert watched.summary["why"] == "nvidia-ml-py is not installed"


def test_a_machine_without_a_driver_says_so() -> None:
    pytest.importorskip("pynvml")
    if FakeMachine.__mro__[1]().gpu_indices:
        pytest.skip("this machine has a GPU")
    with pytest.raises(SamplingError, match="NVML: "):
        sampling.Nvml(0)


@pytest.fixture
def run(make_choreo: Callable[..., Choreo], make_context: Callable[..., Context], monkeypatch) -> Callable[[], Context]:  # type: ignore[no-untyped-def]
    """Figure 3 with programs that take a while, on a machine with a GPU."""
    monkeypatch.setattr(provenance, "fingerprint", lambda *args, **kwargs: "same")

    def execute_it() -> Context:
        context = make_context("figure3", make_choreo(program="sleep 0.3"), FakeMachine("NVIDIA H200", "13.0.88"))
        execute(STEPS["figure3"], context, Quiet())
        return context

    return execute_it


def test_timed_records_tell_the_state_of_the_gpu(run, gpu) -> None:  # type: ignore[no-untyped-def]
    gpu(sample(CAP))
    context = run()
    document = results.load(context.results, "figure3")
    assert document is not None
    for key, record in document.records.items():
        if key.startswith("build."):
            assert record.gpu_state is None
        else:
            assert record.gpu_state is not None and record.gpu_state["samples"] > 2 and not record.slowed_by
    assert {row.verdict for row in document.tables[0].rows} == {"equal"}  # "same output"; the times are shown


def test_values_timed_on_a_slowed_gpu_are_marked_and_not_judged(run, gpu) -> None:  # type: ignore[no-untyped-def]
    gpu(sample(HW_THERMAL))
    context = run()
    document = results.load(context.results, "figure3")
    assert document is not None
    row = document.tables[0].rows[0]
    assert row.verdict == SLOWED
    assert {key: bool(cell.slowed_by) for key, cell in row.cells.items()} == {
        "base": True,
        "sala": True,
        "ratio": True,
        "identical": False,
    }
    out = io.StringIO()
    report.show_table(document.tables[0], Console(file=out, width=160, color_system=None))
    assert "†" in out.getvalue() and "timed while the GPU was slowed down (hardware thermal slowdown)" in out.getvalue()
    _, findings = verify.timing(document)
    judged = [finding for finding in findings if "slowed down" in finding.got]
    assert judged and {finding.status for finding in judged} == {verify.NOT_COMPARED}


def test_results_from_before_there_was_a_state_are_read(tmp_path: Path) -> None:
    record = Record("measured", {"v": 1.0})
    assert record.gpu_state is None and record.slowed_by == "" and record.cell("v", 2.0, SHOWN).slowed_by == ""


def test_several_states_in_sentences() -> None:
    hot, cool = summarise([sample(HW_THERMAL, 1200)], 700.0), summarise([sample(CAP), sample(CAP, 1900)], 700.0)
    assert sampling.describe([hot, cool]) == [
        "SM clock 1200–1980 MHz (median 1570), memory clock 3201 MHz, power 650 W, temperature 55 °C, "
        "power limit 700 W; 3 samples in 2 of 2 timed measurements",
        "clocks held by: software power cap",
        "slowed down by hardware thermal slowdown in 1 of them",
    ]
    assert sampling.describe([]) == []
    assert sampling.describe([{"samples": 0, "why": "NVML: x"}]) == [
        "state of the GPU while it was timed: not known (NVML: x)"
    ]
