"""Compare a report with what the author of a pattern file expects of it (its ``expect`` object).

Keys, all optional: ``smem_baseline`` and ``smem_optimized`` (bytes); ``overlaps`` (exactly the pairs that may
overlap); ``kinds`` (``[a, b, kind]`` of refused pairs); ``races``, ``overruns``, ``arrivals``, ``unawaited`` (names of
the buffers or events concerned; none where absent); ``deadlock`` (default false); ``no_acyclic`` (the same for the
ablation).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .json_reader import Node

if TYPE_CHECKING:
    from .pattern_report import PatternAnalysis

_KEYS = (
    "smem_baseline",
    "smem_optimized",
    "overlaps",
    "kinds",
    "races",
    "overruns",
    "arrivals",
    "unawaited",
    "deadlock",
)


def read_expectations(node: Node) -> dict[str, Any]:
    """Check an ``expect`` object; returns it as it is. Raises PatternError."""
    for key, member in node.items():
        if key in ("smem_baseline", "smem_optimized"):
            member.integer(0)
        elif key in ("overlaps", "kinds"):
            length = 2 if key == "overlaps" else 3
            for entry in member.elements():
                if len([part.string() for part in entry.elements()]) != length:
                    raise entry.error(f"expected a list of {length} strings")
        elif key in ("races", "overruns", "arrivals", "unawaited"):
            for part in member.elements():
                part.string()
        elif key == "deadlock":
            member.boolean()
        elif key == "no_acyclic":
            read_expectations(member)
        else:
            raise node.error(f'"{key}" is no expectation (known: {", ".join((*_KEYS, "no_acyclic"))})')
    return node.mapping()


def unmet_expectations(analysis: PatternAnalysis) -> list[str] | None:
    """What differs from the file's ``expect``, one line each; None where it expects nothing."""
    expect = analysis.pattern.expect
    if expect is not None and analysis.ablation:
        expect = expect.get("no_acyclic")
    if not isinstance(expect, Mapping):
        return None
    found = _facts(analysis)
    wanted = {"races": [], "overruns": [], "arrivals": [], "unawaited": [], "deadlock": False, **expect}
    wanted.pop("no_acyclic", None)
    if analysis.ablation:
        found = {key: value for key, value in found.items() if key in expect}
        wanted = dict(expect)
    lines = []
    for key, value in wanted.items():
        if key == "kinds":
            lines += [f"expected {entry} among the refusals" for entry in value if entry not in found["kinds"]]
        elif _normal(value) != _normal(found[key]):
            lines.append(f"{key}: expected {value}, got {found[key]}")
    return lines


def expectation_lines(analysis: PatternAnalysis) -> list[str]:
    """For the text report: nothing where the file expects nothing."""
    unmet = unmet_expectations(analysis)
    return [] if unmet is None else unmet or ["all of it holds"]


def _facts(analysis: PatternAnalysis) -> dict[str, Any]:
    report = analysis.report
    return {
        "smem_baseline": report.baseline,
        "smem_optimized": report.placement.size,
        "overlaps": [[v.a, v.b] for v in report.verdicts if v.overlap],
        "kinds": [[v.a, v.b, v.kind] for v in report.verdicts if not v.overlap],
        "races": sorted({defect.buffer or "?" for defect in report.races}),
        "overruns": sorted({defect.event or "?" for defect in report.overruns}),
        "arrivals": sorted({defect.event or "?" for defect in report.arrivals}),
        "unawaited": sorted({defect.buffer or "?" for defect in report.unawaited}),
        "deadlock": bool(report.deadlocks),
    }


def _normal(value: Any) -> Any:
    """Lists as sets, pairs in any order."""
    if isinstance(value, list):
        return sorted(str(_normal(item)) for item in value)
    return value
