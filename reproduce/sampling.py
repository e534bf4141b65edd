"""The GPU's state while a program is timed: clocks, power, temperature, and what slows it down; read through NVML."""

from __future__ import annotations

import statistics
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

# A timed run may be a tenth of a second; NVML answers in well under a millisecond.
INTERVAL_S = 0.02

# Bits of NVML's clocks event reasons (nvml.h, nvmlClocksEventReasons), once called throttle reasons.
_IDLE = 0x1
_SW_POWER_CAP, _HW_SLOWDOWN = 0x4, 0x8
_SW_THERMAL, _HW_THERMAL, _HW_POWER_BRAKE = 0x20, 0x40, 0x80
_REASONS = {
    0x2: "application clocks setting",
    _SW_POWER_CAP: "software power cap",
    _HW_SLOWDOWN: "hardware slowdown",
    0x10: "sync boost",
    _SW_THERMAL: "software thermal slowdown",
    _HW_THERMAL: "hardware thermal slowdown",
    _HW_POWER_BRAKE: "hardware power brake",
    0x100: "display clock setting",
}
# What makes a time say more about the machine's cooling or supply than about the program. The software power cap is not
# among them: a matrix kernel on an H200 runs at its 700 W by design, and base and SALA alike. NVML's documentation says
# of the hardware slowdown (clocks halved or worse, by heat, power brake or overcurrent) that it "may be also reported
# during PState or clock change", so that one sample of it alone says nothing.
_SLOWDOWNS = {_HW_SLOWDOWN: 2, _SW_THERMAL: 1, _HW_THERMAL: 1, _HW_POWER_BRAKE: 1}  # bit: samples that it takes


class SamplingError(Exception):
    """The GPU's state cannot be read here; the message says why. What is timed is timed all the same."""


@dataclass(frozen=True)
class Sample:
    """Clocks in MHz, power in W, temperature in °C, reasons as NVML's bits; None for what the GPU does not tell."""

    sm_clock: float | None
    memory_clock: float | None
    power: float | None
    temperature: float | None
    reasons: int


class Source(Protocol):
    """Where samples come from; ``power_limit`` in W."""

    @property
    def power_limit(self) -> float | None: ...

    def read(self) -> Sample:
        """The state now. Raises SamplingError."""
        ...


class Nvml:
    """A GPU by the number that nvidia-smi gives it. Raises SamplingError where NVML cannot be had."""

    def __init__(self, index: int) -> None:
        try:
            import pynvml  # installs as nvidia-ml-py
        except ImportError:
            raise SamplingError("nvidia-ml-py is not installed") from None
        self._nvml: Any = pynvml
        try:
            pynvml.nvmlInit()
            self._gpu = pynvml.nvmlDeviceGetHandleByIndex(index)
        except pynvml.NVMLError as error:
            raise SamplingError(f"NVML: {error}") from None

    @property
    def power_limit(self) -> float | None:
        return self._scaled(0.001, "nvmlDeviceGetEnforcedPowerLimit")  # mW

    def read(self) -> Sample:
        try:
            reasons = int(self._nvml.nvmlDeviceGetCurrentClocksEventReasons(self._gpu))
        except self._nvml.NVMLError as error:
            raise SamplingError(f"NVML: {error}") from None
        return Sample(
            self._scaled(1.0, "nvmlDeviceGetClockInfo", self._nvml.NVML_CLOCK_SM),
            self._scaled(1.0, "nvmlDeviceGetClockInfo", self._nvml.NVML_CLOCK_MEM),
            self._scaled(0.001, "nvmlDeviceGetPowerUsage"),  # mW
            self._scaled(1.0, "nvmlDeviceGetTemperature", self._nvml.NVML_TEMPERATURE_GPU),
            reasons,
        )

    def _scaled(self, scale: float, function: str, *arguments: Any) -> float | None:
        try:
            return scale * float(getattr(self._nvml, function)(self._gpu, *arguments))
        except self._nvml.NVMLError:
            return None


def open_source(index: str) -> Source:
    return Nvml(int(index))


@dataclass
class Watch:
    """What was seen while the block ran; ``summary`` is complete after it."""

    summary: dict[str, Any] = field(default_factory=dict)


@contextmanager
def watch(index: str, interval_s: float = INTERVAL_S) -> Iterator[Watch]:
    """Samples the state of GPU ``index`` during the block. Never fails: where it cannot, the summary says why."""
    found = Watch()
    try:
        source = open_source(index)
    except SamplingError as error:
        found.summary = {"samples": 0, "why": str(error)}
        yield found
        return
    samples: list[Sample] = []
    problem: list[str] = []
    done = threading.Event()

    def sample() -> None:
        while not done.is_set():
            try:
                samples.append(source.read())
            except SamplingError as error:
                problem.append(str(error))
                return
            done.wait(interval_s)

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join(5.0)
        found.summary = summarise(samples, source.power_limit, problem[0] if problem else "")


def summarise(samples: Sequence[Sample], power_limit: float | None, problem: str = "") -> dict[str, Any]:
    """[least, median, greatest] of every quantity while the GPU was busy, and what slowed it down.

    Samples taken while it was idle (a program starts, allocates, checks) say nothing about what was timed, and are left
    out unless there are no others. ``reasons`` gives the share of samples with each reason in percent.
    """
    busy = [each for each in samples if not each.reasons & _IDLE] or list(samples)
    if not busy:
        return {"samples": 0, "why": problem or "it ended before the first sample"}
    summary: dict[str, Any] = {"samples": len(busy)}
    for name, attribute in _QUANTITIES.items():
        values = [value for each in busy if (value := getattr(each, attribute)) is not None]
        if values:
            summary[name] = [round(each, 1) for each in (min(values), statistics.median(values), max(values))]
    if power_limit is not None:
        summary["power_limit_w"] = round(power_limit, 1)
    seen = {bit: sum(bool(each.reasons & bit) for each in busy) for bit in _REASONS}
    summary["reasons"] = {_REASONS[bit]: round(100 * count / len(busy), 1) for bit, count in seen.items() if count}
    summary["slowed_by"] = [_REASONS[bit] for bit, needed in _SLOWDOWNS.items() if seen[bit] >= needed]
    return summary


_QUANTITIES = {
    "sm_clock_mhz": "sm_clock",
    "memory_clock_mhz": "memory_clock",
    "power_w": "power",
    "temperature_c": "temperature",
}


def describe(states: Sequence[dict[str, Any]]) -> list[str]:
    """The states of several timed measurements, in sentences for a reader; empty if nothing was timed."""
    if not states:
        return []
    sampled = [state for state in states if state["samples"]]
    if not sampled:
        return [f"state of the GPU while it was timed: not known ({states[0].get('why', '')})"]
    parts = []
    for name, (label, unit) in _LABELS.items():
        ranges = [state[name] for state in sampled if name in state]
        if ranges:
            low, high = min(each[0] for each in ranges), max(each[2] for each in ranges)
            middle = statistics.median(each[1] for each in ranges)
            parts.append(
                f"{label} {low:g}–{high:g} {unit} (median {middle:g})" if low < high else f"{label} {low:g} {unit}"
            )
    limits = {state["power_limit_w"] for state in sampled if "power_limit_w" in state}
    parts += [f"power limit {', '.join(f'{limit:g}' for limit in sorted(limits))} W"] if limits else []
    count = sum(state["samples"] for state in sampled)
    lines = [f"{', '.join(parts)}; {count} samples in {len(sampled)} of {len(states)} timed measurements"]
    reasons = sorted({reason for state in sampled for reason in state["reasons"]} - _slowed(sampled).keys())
    lines += [f"clocks held by: {', '.join(reasons)}"] if reasons else []
    lines += [f"slowed down by {reason} in {number} of them" for reason, number in _slowed(sampled).items()]
    return lines


_LABELS = {
    "sm_clock_mhz": ("SM clock", "MHz"),
    "memory_clock_mhz": ("memory clock", "MHz"),
    "power_w": ("power", "W"),
    "temperature_c": ("temperature", "°C"),
}


def _slowed(states: Sequence[dict[str, Any]]) -> Counter[str]:
    return Counter(reason for state in states for reason in state["slowed_by"])
