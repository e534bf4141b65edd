"""What a run would do (``--dry-run``): what it keeps, measures, or cannot measure here, and how long it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from reproduce.execute import kept_records, unmet
from reproduce.machine import Need, cores
from reproduce.provision import triton_is_missing
from reproduce.step import Context, Measurement, Step


@dataclass(frozen=True)
class Plan:
    """``cannot`` counts measurements by reason; ``installs`` names what the run would install first.

    ``seconds`` is the sum of the measurements' estimates, those that run beside each other divided by the cores.
    """

    step: str
    keys: tuple[str, ...]
    kept: int
    cannot: tuple[tuple[str, int], ...]
    installs: tuple[str, ...]
    seconds: float
    note: str = ""


def plan(step: Step, context: Context) -> Plan:
    """Asks the machine and reads the earlier results; writes and runs nothing. Raises ValueError for wrong options."""
    items = step.measurements(context)
    kept, _, note = kept_records(step, context)
    installs = _installs(step, context)
    would, cannot = [], Counter[str]()
    for item in items:
        if item.key in kept:
            continue
        reason = unmet(item, context, assuming=installs)
        if reason:
            cannot[reason] += 1
        else:
            would.append(item)
    names = tuple(_INSTALLED[need] for need in installs if any(need in item.needs for item in would))
    if step.uses(Need.TRITON) and triton_is_missing() and _wants_tawa(context):
        names = (*names, "Triton 3.6.0 (188 MB)")
    return Plan(
        step.name,
        tuple(item.key for item in would),
        sum(item.key in kept for item in items),
        tuple(cannot.items()),
        names,
        seconds_of(would),
        note,
    )


_INSTALLED = {Need.NVCC: "nvcc 13.0 (104 MB)"}


def _installs(step: Step, context: Context) -> frozenset[Need]:
    """What the step would install before it measures: nvcc, where nothing else keeps its rows from being measured."""
    machine = context.machine
    gpu_missing = Need.GPU in step.needs and machine.missing(Need.GPU)
    lacking = Need.NVCC in step.needs and machine.missing(Need.NVCC) and not gpu_missing
    return frozenset({Need.NVCC}) if lacking else frozenset()


def _wants_tawa(context: Context) -> bool:
    return not context.options.only or "tawa" in context.options.only


def seconds_of(items: Sequence[Measurement]) -> float:
    together = sum(item.seconds for item in items if item.parallel)
    return together / cores() + sum(item.seconds for item in items if not item.parallel)
