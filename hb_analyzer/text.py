"""The report of a pattern as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from .expectations import expectation_lines
from .expressions import bare
from .model import WHOLE
from .pattern import Phase, PhaseAccess, PhaseId, Signal
from .pattern_report import PatternAnalysis, described_edges, ignored_notes, sharing_groups
from .report import Defect, Placement, Report, Verdict
from .table import kib, percent, table

_WIDTH = 100
_ASSUMPTIONS = "Assumptions"
_BAR = 48  # columns of a memory map


def pattern_text(analysis: PatternAnalysis) -> str:
    """Phases, edges, pairs, groups, placement, savings, defects, assumptions."""
    pattern, report = analysis.pattern, analysis.report
    sections = [_title(analysis), _phases(analysis), _edges(analysis), *_pairs(report)]
    sections += [_defects(title, found) for title, found in _defect_kinds(report) if found]
    sections += [_placement(report), _summary(report)]
    if report.assumptions:
        sections.append(f"{_ASSUMPTIONS}\n" + _bullets(report.assumptions))
    notes = [*report.notes, *ignored_notes(pattern)]
    if notes:
        sections.append("Notes\n" + _bullets(notes))
    if expected := expectation_lines(analysis):
        sections.append("Expected by the file\n" + _bullets(expected))
    return "\n\n".join(sections) + "\n"


def _defect_kinds(report: Report) -> list[tuple[str, tuple[Defect, ...]]]:
    return [
        ("Deadlocks", report.deadlocks),
        ("Event overruns (while there are any, no pair is proved to be safe)", report.overruns),
        ("Races inside one buffer", report.races),
        ("Arrival counts", report.arrivals),
        ("Copies that nobody waits for", report.unawaited),
    ]


def _title(analysis: PatternAnalysis) -> str:
    pattern = analysis.pattern
    origin = ", ".join(part for part in (pattern.framework, pattern.arch) if part)
    lines = [pattern.kernel + (f"  ({origin})" if origin else "")]
    lines.append("═" * len(lines[0]))
    if analysis.ablation:
        lines.append("UNSOUND ABLATION: one iteration, no acyclic constraint. Do not place buffers by this.")
    lines += textwrap.wrap(pattern.notes, _WIDTH)
    return "\n".join(lines)


def _bullets(texts: Iterable[str]) -> str:
    return "\n".join(textwrap.fill(text, _WIDTH, initial_indent="  - ", subsequent_indent="    ") for text in texts)


# ---------------------------------------------------------------------------------------------------------------
# Phases and edges


def _phases(analysis: PatternAnalysis) -> str:
    pattern, inference = analysis.pattern, analysis.inference
    rows = []
    for group in pattern.groups:
        for i, phase in enumerate(group.phases):
            loops = "".join(f"{name} " for name in inference.loops[PhaseId(group.name, i)])
            label = phase.label + (f" (if {bare(phase.when)})" if phase.when else "")
            rows.append(
                (
                    group.name if i == 0 else "",
                    f"{'↻ ' + loops if loops else '  '}".strip() or "once",
                    label,
                    _signals(phase.waits, phase.barriers),
                    _uses(phase),
                    _signals(phase.triggers),
                )
            )
    title = "Phases" if pattern.marked or not any(inference.loops.values()) else "Phases (loops inferred)"
    return title + "\n" + table(("role", "runs", "phase", "waits for", "buffers", "triggers"), rows)


def _signals(signals: Iterable[Signal], barriers: Iterable[str] = ()) -> str:
    names = [signal.event + (f"[{bare(signal.slot)}]" if signal.slot else "") for signal in signals]
    return ", ".join([*names, *(f"barrier {name}" for name in barriers)]) or "·"


def _uses(phase: Phase) -> str:
    verbs = {"r": "reads", "w": "writes", "rw?": "uses"}
    by_verb: dict[str, list[str]] = {}
    for access in phase.accesses:
        by_verb.setdefault(verbs[access.mode], []).append(_use(access))
    parts = [f"{verb} {', '.join(dict.fromkeys(names))}" for verb, names in by_verb.items()]
    if phase.opaque:
        parts.append(f"opaque: {phase.opaque.reason}")
    return "; ".join(parts) or "·"


def _use(access: PhaseAccess) -> str:
    region = ""
    if access.region is None:
        region = "[?]"
    elif access.region != WHOLE:
        region = "[" + ", ".join(f"{low}:{high}" for low, high in access.region) + "]"
    return access.buffer + region + {"event": "…", "group": "…", "never": " (never awaited)"}.get(access.ends, "")


def _edges(analysis: PatternAnalysis) -> str:
    """Program order as chains; other edges grouped by event and target, so that several sources share a line."""
    pattern = analysis.pattern
    orders = [("program", group.name, " → ".join(phase.label for phase in group.phases)) for group in pattern.groups]
    grouped: dict[tuple[str, str, str, str], list[str]] = {}
    for edge in described_edges(pattern, analysis.inference):
        if edge.kind != "program":
            grouped.setdefault((edge.kind, edge.name, edge.target, edge.why), []).append(edge.source)
    reasons = [why for kind, _, _, why in grouped if kind == "carried"]
    for (kind, name, target, why), sources in grouped.items():
        note = f"   ({why})" if why and len(why) < _WIDTH // 2 else f"   (see {_ASSUMPTIONS})" if why else ""
        orders.append((kind, name, f"{', '.join(dict.fromkeys(sources))} → {target}{note}"))
    rows = []
    for kind, name, order in orders:
        lines = textwrap.wrap(order, _WIDTH - 20, subsequent_indent="  ") or [""]
        rows += [(kind, name, lines[0]), *(("", "", line) for line in lines[1:])]
    text = "Edges\n" + table(("kind", "of", "order"), rows)
    if reasons:
        text += "\n  (carried: the wait of one iteration is satisfied by an earlier iteration)"
    return text


# ---------------------------------------------------------------------------------------------------------------
# Verdicts and defects


def _pairs(report: Report) -> list[str]:
    yes = [verdict for verdict in report.verdicts if verdict.overlap]
    no = [verdict for verdict in report.verdicts if not verdict.overlap]
    total = len(report.verdicts)
    texts = []
    for title, verdicts in (("Overlappable pairs", yes), ("Non-overlappable pairs", no)):
        body = "\n".join(_verdict(verdict) for verdict in verdicts) or "  none"
        texts.append(f"{title} ({len(verdicts)} of {total})\n{body}")
    return texts


def _verdict(verdict: Verdict) -> str:
    head = f"({verdict.a}, {verdict.b})"
    reason = ": ".join(part for part in (verdict.kind, verdict.why) if part)
    lines = [textwrap.fill(f"{head}  {reason}", _WIDTH, initial_indent="  ", subsequent_indent="      ")]
    for name, site in (("first", verdict.first), ("second", verdict.second)):
        if site is not None and str(site) not in verdict.why:
            lines.append(f"      {name + ':':<7} {site}")
    if verdict.parameters and not verdict.overlap:
        lines.append("      with   " + ", ".join(f"{name} = {value}" for name, value in verdict.parameters))
    return "\n".join(lines)


def _defects(title: str, defects: Iterable[Defect]) -> str:
    lines = [title]
    for defect in defects:
        at = ", ".join(f"{name} = {value}" for name, value in defect.parameters)
        text = defect.why + (f" (from {at})" if at and at not in defect.why else "")
        lines.append(textwrap.fill(text, _WIDTH, initial_indent="  - ", subsequent_indent="    "))
    return "\n".join(lines)


# ---------------------------------------------------------------------------------------------------------------
# Memory


def _placement(report: Report) -> str:
    placement = report.placement
    optimal = "no smaller layout exists" if placement.exact or placement.size == placement.lower_bound else "best found"
    lines = [
        f"Placement: {kib(placement.size)}, lower bound {placement.lower_bound} B, {optimal}",
        memory_map(placement),
    ]
    for group in sharing_groups(placement):
        lines.append(f"  share addresses: {', '.join(group)}")
    return "\n".join(lines)


def memory_map(placement: Placement, indent: str = "  ") -> str:
    """One bar per buffer over the addresses 0 … size, to scale."""
    order = sorted(placement.offsets, key=lambda name: (placement.offsets[name], -placement.sizes[name], name))
    names = max((len(name) for name in order), default=0)
    scale = _BAR / max(placement.size, 1)
    lines = []
    for name in order:
        low, high = placement.offsets[name], placement.offsets[name] + placement.sizes[name]
        start = min(round(low * scale), _BAR - 1)
        stop = max(round(high * scale), start + 1)
        bar = "·" * start + "█" * (stop - start) + "·" * (_BAR - stop)
        lines.append(f"{indent}{name:<{names}}  {bar}  {low:>6} … {high:<6}  {high - low:>6} B")
    return "\n".join(lines)


def _summary(report: Report) -> str:
    saved = report.baseline - report.placement.size
    return "\n".join(
        (
            f"baseline   {kib(report.baseline)}",
            f"optimised  {kib(report.placement.size)}",
            f"saved      {kib(saved)}, {percent(saved, report.baseline)}",
        )
    )
