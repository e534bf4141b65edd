"""Why two buffers may overlap (the ordering paths) or may not (an interleaving), as text."""

from __future__ import annotations

import textwrap
from typing import Any

from .report import ScheduleStep, Site, Verdict
from .table import table

_WIDTH = 100


def explain_text(kernel: str, verdict: Verdict) -> str:
    """The verdict on one pair, with the proof or the counterexample that it carries."""
    answer = "may overlap" if verdict.overlap else f"may not overlap ({verdict.kind})"
    sections = [f"{kernel}: {verdict.a} and {verdict.b} {answer}"]
    if verdict.why:
        sections.append(textwrap.fill(verdict.why, _WIDTH))
    if verdict.overlap:
        sections += _paths(verdict)
    else:
        sections += _conflict(verdict)
    return "\n\n".join(sections) + "\n"


def _paths(verdict: Verdict) -> list[str]:
    texts = []
    for number, path in enumerate(verdict.proof, start=1):
        lines = [f"Path {number}"]
        lines += [("    " if i == 0 else "  → ") + str(site) for i, site in enumerate(path)]
        texts.append("\n".join(lines))
    return texts


def _conflict(verdict: Verdict) -> list[str]:
    texts = []
    sites = [f"  {name:<7} {site}" for name, site in (("first", verdict.first), ("second", verdict.second)) if site]
    if sites:
        texts.append("\n".join(["The two accesses", *sites]))
    if verdict.interleaving:
        at = ", ".join(f"{name} = {value}" for name, value in verdict.parameters)
        rows = [_row(step) for step in verdict.interleaving]
        header = ("step", "role", "iteration", "operation", "")
        title = f"An execution that shows it, in the steps that matter{f' ({at})' if at else ''}"
        texts.append(f"{title}\n{table(header, rows, right=(0,)).rstrip()}")
    return texts


def _row(step: ScheduleStep) -> tuple[str, str, str, str, str]:
    site = step.site
    iteration = ", ".join(map(str, site.iteration)) if site.iteration else "–"
    operation = site.label + (f"  {site.where}" if site.where else "")
    return str(step.step), site.role, iteration, operation, step.note


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict with its evidence, for ``explain --json``."""

    def site_json(site: Site | None) -> dict[str, Any] | None:
        if site is None:
            return None
        return {"role": site.role, "iteration": list(site.iteration), "operation": site.label, "where": site.where}

    return {
        "pair": [verdict.a, verdict.b],
        "overlap": verdict.overlap,
        "kind": verdict.kind,
        "why": verdict.why,
        "first": site_json(verdict.first),
        "second": site_json(verdict.second),
        "proof": [[site_json(site) for site in path] for path in verdict.proof],
        "interleaving": [
            {"step": step.step, **(site_json(step.site) or {}), "note": step.note} for step in verdict.interleaving
        ],
        "parameters": dict(verdict.parameters),
    }
