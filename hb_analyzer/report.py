"""What the engine answers: verdicts per pair of buffers, defects of the synchronisation itself, and the placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Site:
    """An operation as a person finds it: role, iteration (loop counters, outermost first), label, source position."""

    role: str
    label: str
    iteration: tuple[int, ...] = ()
    where: str | None = None

    def __str__(self) -> str:
        iteration = "" if not self.iteration else f" [iteration {', '.join(map(str, self.iteration))}]"
        return f"{self.role}{iteration}: {self.label}" + (f" ({self.where})" if self.where else "")


@dataclass(frozen=True)
class ScheduleStep:
    """One row of an interleaving: ``step`` counts from 1."""

    step: int
    site: Site
    note: str = ""  # e.g. "begins", "ends", "value lost here"


@dataclass(frozen=True)
class Verdict:
    """May ``a`` and ``b`` (a < b) share addresses?

    ``kind`` is "" for yes, else "conflict", "clobber" or "unknown". ``proof`` (yes) is a list of ordering paths, each
    a list of sites; ``interleaving`` (no) is an execution that observes the overlap, at trip counts ``parameters``.
    """

    a: str
    b: str
    overlap: bool
    kind: str = ""
    why: str = ""
    first: Site | None = None
    second: Site | None = None
    proof: tuple[tuple[Site, ...], ...] = ()
    interleaving: tuple[ScheduleStep, ...] = ()
    parameters: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Defect:
    """A deadlock, an event overrun, a race inside one buffer, an arrival count that cannot be right, or a bulk copy
    that may still be under way when the CTA ends."""

    kind: str  # "deadlock" | "overrun" | "race" | "arrivals" | "unawaited"
    why: str
    first: Site | None = None
    second: Site | None = None
    buffer: str | None = None
    event: str | None = None
    parameters: tuple[tuple[str, int], ...] = ()  # smallest trip counts at which it happens
    interleaving: tuple[ScheduleStep, ...] = ()


@dataclass(frozen=True)
class Placement:
    """Byte offsets; ``size`` is the peak, ``lower_bound`` the heaviest set of mutually interfering buffers found."""

    offsets: Mapping[str, int]
    sizes: Mapping[str, int]
    size: int
    lower_bound: int
    exact: bool  # the search was exhaustive, so no smaller placement exists

    def intersect(self, a: str, b: str) -> bool:
        """Do two buffers share bytes?"""
        low_a, low_b = self.offsets[a], self.offsets[b]
        return low_a < low_b + self.sizes[b] and low_b < low_a + self.sizes[a]


@dataclass(frozen=True)
class Report:
    program: str
    framework: str
    baseline: int  # bytes with every buffer in its own place (alignment included)
    verdicts: tuple[Verdict, ...]  # every pair, sorted
    placement: Placement
    deadlocks: tuple[Defect, ...] = ()
    overruns: tuple[Defect, ...] = ()
    races: tuple[Defect, ...] = ()
    arrivals: tuple[Defect, ...] = ()
    unawaited: tuple[Defect, ...] = ()
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    undecided: str = ""  # why the program is refused as a whole, without a look at its defects

    def verdict(self, a: str, b: str) -> Verdict:
        """The verdict for an unordered pair. Raises KeyError if a name is unknown or a == b."""
        low, high = sorted((a, b))
        for verdict in self.verdicts:
            if (verdict.a, verdict.b) == (low, high):
                return verdict
        raise KeyError((a, b))

    def to_json(self) -> dict[str, Any]:
        """The published report format (keys as in the guide), with our extensions."""
        saved = self.baseline - self.placement.size
        return {
            "kernel": self.program,
            "framework": self.framework,
            "smem_baseline": self.baseline,
            "smem_optimized": self.placement.size,
            "lower_bound": self.placement.lower_bound,
            "savings_bytes": saved,
            "savings_pct": round(100 * saved / self.baseline, 1) if self.baseline else 0.0,
            "overlaps": [[v.a, v.b, v.overlap] for v in self.verdicts],
            "refusals": [
                {
                    "pair": [v.a, v.b],
                    "kind": v.kind,
                    "why": v.why,
                    "first": str(v.first) if v.first else None,
                    "second": str(v.second) if v.second else None,
                }
                for v in self.verdicts
                if not v.overlap
            ],
            "deadlocks": [d.why for d in self.deadlocks],
            "overruns": [d.why for d in self.overruns],
            "races": [d.why for d in self.races],
            "arrivals": [d.why for d in self.arrivals],
            "unawaited": [d.why for d in self.unawaited],
            "assumptions": list(self.assumptions),
            "placement": {
                name: {"offset": offset, "size": self.placement.sizes[name]}
                for name, offset in sorted(self.placement.offsets.items(), key=lambda item: (item[1], item[0]))
            },
        }
