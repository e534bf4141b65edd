"""What a run would do (``--dry-run``): what it keeps, measures, or cannot measure here, and how long it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from reproduce.execute import kept_records, unmet
from reproduce.machine import Need, cores
from reproduce.provision import find_minor, to_install
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
    installs = to_install(step, context.options, context.machine)
    would, cannot = [], Counter[str]()
    for item in items:
        if item.key in kept:
            continue
        reason = unmet(item, context, assuming=installs - {Need.TRITON})  # which is torch, too
        if reason:
            cannot[reason] += 1
        else:
            would.append(item)
    nvcc = Need.NVCC in installs and any(Need.NVCC in item.needs for item in would)
    minors = [minor for minor in context.options.cuda if find_minor(minor, context.build.parent / "cuda") is None]
    names = ((_NVCC,) if nvcc else ()) + ((_TRITON,) if Need.TRITON in installs else ())
    names += tuple(f"nvcc {minor}" for minor in minors)
    return Plan(
        step.name,
        tuple(item.key for item in would),
        sum(item.key in kept for item in items),
        tuple(cannot.items()),
        names,
        seconds_of(would),
        note,
    )


_NVCC, _TRITON = "nvcc 13.0 (104 MB)", "Triton 3.6.0 (188 MB)"


def seconds_of(items: Sequence[Measurement]) -> float:
    together = sum(item.seconds for item in items if item.parallel)
    return together / cores() + sum(item.seconds for item in items if not item.parallel)
