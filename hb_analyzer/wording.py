"""Findings in words: the verdict of a refused pair, and the race inside one buffer."""

from __future__ import annotations

from hb_analyzer.conditions import Finding
from hb_analyzer.interleave import interleaving
from hb_analyzer.model import Access
from hb_analyzer.report import Defect, Verdict
from hb_analyzer.unrolling import Unrolling


def verdict_of(finding: Finding, run: Unrolling) -> Verdict:
    """The refusal that the finding means for its pair."""
    first, second = run.accesses[finding.first], run.accesses[finding.second]
    a, b = run.site(first.begin), run.site(second.begin)
    return Verdict(
        *finding.pair,
        overlap=False,
        kind="clobber" if finding.kind == "clobber" else "conflict",
        why=sentence(finding, run),
        first=a,
        second=b,
        parameters=run.parameters(),
    )


def race_of(finding: Finding, run: Unrolling) -> Defect:
    """The race that a finding about one buffer means, with an interleaving."""
    first, second = run.accesses[finding.first], run.accesses[finding.second]
    return Defect(
        "race",
        f"race in {first.op.buffer}[{first.slot}]: {sentence(finding, run)}",
        run.site(first.begin),
        run.site(second.begin),
        buffer=first.op.buffer,
        parameters=run.parameters(),
        interleaving=interleaving(run, finding),
    )


def sentence(finding: Finding, run: Unrolling) -> str:
    """The finding in one sentence."""
    first, second = run.accesses[finding.first], run.accesses[finding.second]
    a, b = run.site(first.begin), run.site(second.begin)
    if finding.kind == "clobber":
        assert finding.between is not None
        between = run.accesses[finding.between]
        return (
            f"the value that {describe_access(first.op)} leaves ({a}) is still read ({b}) after "
            f"{describe_access(between.op)} ({run.site(between.begin)})"
        )
    what, then = describe_access(first.op), describe_access(second.op)
    if finding.kind == "proxy":
        return f"no proxy fence between {what} by threads ({a}) and the asynchronous {then} ({b})"
    never = next((f"; {describe_access(x.op)} is never awaited" for x in (first, second) if x.end is None), "")
    return f"{what} ({a}) and {then} ({b}) are not ordered{never}"


def describe_access(op: Access) -> str:
    """What the access does, and to which buffer."""
    kind = "read of" if op.mode == "r" else "copy into" if op.ends == "event" else "write of"
    return f"{kind} {op.buffer}"
