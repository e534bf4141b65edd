"""``--explain``: which shared buffers may overlap and why, or what forbids it, for whoever writes the kernel."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hb_analyzer
from croqtile.analyse import Analysis
from croqtile.repair import repairs
from hb_analyzer.report import Site, Verdict
from hb_analyzer.table import table

_WIDTH = 100


def as_json(analyses: Sequence[Analysis]) -> str:
    """The engine's report of the file's kernel; a list of reports if it has several."""
    reports: list[dict[str, Any]] = [analysis.report.to_json() for analysis in analyses]
    return json.dumps(reports[0] if len(reports) == 1 else reports, indent=2, ensure_ascii=False) + "\n"


def as_text(analyses: Sequence[Analysis]) -> str:
    return "\n".join(_kernel(analysis) for analysis in analyses)


def _kernel(analysis: Analysis) -> str:
    report = analysis.report
    title = f"{analysis.kernel.name} ({analysis.kernel.span})"
    sections = [title, "═" * len(title), "", _summary(analysis), "", _placement(analysis)]
    for problem in analysis.diagnostics:
        sections += ["", f"{problem.severity}: {problem.message}"]
    for note in (*report.assumptions, *report.notes):
        sections += ["", textwrap.fill(f"Note: {note}", _WIDTH)]
    lines = "\n".join(sections) + "\n"
    for verdict in report.verdicts:
        lines += "\n" + _pair(analysis, verdict)
    return lines


def _summary(analysis: Analysis) -> str:
    apart, placement = analysis.separate.size, analysis.report.placement
    bound = "no smaller placement exists" if placement.exact else f"at least {placement.lower_bound} are needed"
    saved = f"{100 * (apart - placement.size) / apart:.1f} % less" if apart else "nothing to place"
    return f"{apart} bytes with every buffer in its own place, {placement.size} with overlap: {saved} ({bound})."


def _placement(analysis: Analysis) -> str:
    offsets = analysis.report.placement.offsets
    rows = [
        (b.name, str(offsets[b.name]), str(b.bytes), _over(analysis, b.name))
        for b in sorted(analysis.kernel.buffers, key=lambda b: (offsets[b.name], b.name))
    ]
    return table(("buffer", "offset", "bytes", "shares addresses with"), rows, right=(1, 2)).rstrip()


def _over(analysis: Analysis, name: str) -> str:
    placement = analysis.report.placement
    low, high = placement.offsets[name], placement.offsets[name] + placement.sizes[name]
    return ", ".join(
        other
        for other, offset in placement.offsets.items()
        if other != name and offset < high and low < offset + placement.sizes[other]
    )


def _pair(analysis: Analysis, verdict: Verdict) -> str:
    evidence = hb_analyzer.explain_pair(analysis.program, verdict.a, verdict.b)
    answer = "may overlap" if verdict.overlap else f"may not overlap ({verdict.kind})"
    title = f"{verdict.a} and {verdict.b} {answer}"
    lines = [title, "─" * len(title), *(_proof(evidence) if verdict.overlap else _refutation(analysis, evidence))]
    return "\n".join(lines) + "\n"


def _proof(verdict: Verdict) -> list[str]:
    """The chains that order every access of one with every access of the other."""
    lines = ["Every access of one is ordered with every access of the other, and no value is lost:"]
    for path in verdict.proof:
        lines += ["", f"    {_site(path[0])}", *(f"  → {_site(site)}" for site in path[1:])]
    return lines


def _refutation(analysis: Analysis, verdict: Verdict) -> list[str]:
    lines: list[str] = []
    if verdict.first is None or verdict.second is None:
        lines.append(textwrap.fill(verdict.why, _WIDTH))
    else:
        lines.append(_CAUSES.get(verdict.kind, verdict.why))
        for site in (verdict.first, verdict.second):
            lines += ["", f"  {_site(site)}", *_source_line(site)]
    if verdict.interleaving:
        at = ", ".join(f"{name} = {value}" for name, value in verdict.parameters)
        title = f"An execution that shows it, in the steps that matter{f' (with {at})' if at else ''}:"
        lines += ["", title, "", _schedule(verdict)]
    found = next(repairs(analysis.program, analysis.report, verdict), None)
    if found is not None:
        lines += ["", textwrap.fill(f"They may overlap with {found.text} (confirmed by the analysis).", _WIDTH)]
    return lines


_CAUSES = {
    "conflict": "Nothing orders these two accesses, and one of them writes:",
    "clobber": "The first value would be overwritten before it is read:",
}


def _schedule(verdict: Verdict) -> str:
    rows = [
        (
            str(step.step),
            step.site.role,
            ", ".join(map(str, step.site.iteration)) or "–",
            step.site.label,
            _line(step.site),
            step.note,
        )
        for step in verdict.interleaving
    ]
    return table(("step", "role", "iteration", "operation", "line", ""), rows, right=(0,))


def _site(site: Site) -> str:
    iteration = f" [iteration {', '.join(map(str, site.iteration))}]" if site.iteration else ""
    line = _line(site)
    return f"{site.role}{iteration}: {site.label}" + (f", line {line}" if line else "")


def _line(site: Site) -> str:
    return site.where.rsplit(":", 2)[1] if site.where is not None else ""


def _source_line(site: Site) -> list[str]:
    if site.where is None:
        return []
    file, line, _ = site.where.rsplit(":", 2)
    try:
        text = Path(file).read_text(encoding="utf-8", errors="replace").split("\n")[int(line) - 1]
    except (OSError, IndexError):
        return []
    return [f"  {line:>5} | {text.strip()}"]
