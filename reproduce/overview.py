"""What a person sees in a terminal of several steps or of the machine: checks, plans, states, and how a run ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from reproduce import layout, results
from reproduce.report import print_fields, print_note
from reproduce.tables import DIFFERS, EQUAL, EQUAL_IN_PART, FAILED, NO_RUN, NOT_MEASURED, SHOWN, SLOWED

if TYPE_CHECKING:
    from reproduce.doctor import Check
    from reproduce.everything import Outcome
    from reproduce.plan import Plan
    from reproduce.status import StepStatus

_ORDER = (DIFFERS, FAILED, NO_RUN, SLOWED, EQUAL, EQUAL_IN_PART, SHOWN, NOT_MEASURED)
_LEGEND = (
    "equal: as the paper prints it. equal, in part: so is everything that could be measured here. shown: stands beside "
    "the paper's, or has none there; not judged."
)


def show_checks(checks: Sequence[Check], seconds: float, to: Console) -> None:
    """The doctor's findings, one line each, with what would help, and what they mean together."""
    words = {True: Text("ok", "green"), False: Text("NOT OK", "bold red"), None: Text("limited", "yellow")}
    fields = (
        layout.Field("", tuple(Text(check.what) for check in checks), whole=True),
        layout.Field("", tuple(words[check.ok] for check in checks), whole=True),
        layout.Field("found", tuple(Text(check.found) for check in checks), text=True),
        layout.Field("what helps", tuple(Text(check.advice) for check in checks), text=True),
    )
    print_fields(fields, to)
    if any(check.ok is False for check in checks):
        verdict = "What is NOT OK keeps rows from being measured, or measures them wrong"
    elif any(check.ok is None for check in checks):
        verdict = "Ready; rows that need what is limited here are shown as not measured, never as passed"
    else:
        verdict = "Ready for every row"
    print_note(f"{verdict}. {duration(seconds)}.", to)


def show_summary(
    outcomes: Sequence[Outcome], seconds: float, first_verdict_s: float | None, folder: Path, to: Console
) -> None:
    """After `all`: what became of the rows of each step, how long it took, and where everything is."""
    to.print(Text("Summary", style="bold"))
    rows = tuple(
        Text(outcome.problem, "bold red")
        if outcome.problem
        else Text(_counts(results.verdicts(outcome.document) if outcome.document else {}))
        for outcome in outcomes
    )
    fields = (
        layout.Field("", tuple(Text(outcome.step) for outcome in outcomes), whole=True),
        layout.Field("time", tuple(Text(duration(outcome.seconds)) for outcome in outcomes), right=True, whole=True),
        layout.Field("rows", rows, text=True),
    )
    print_fields(fields, to)
    print_note(_LEGEND, to)
    first = "no row was judged" if first_verdict_s is None else f"first verdicts after {duration(first_verdict_s)}"
    print_note(f"{duration(seconds)} in all; {first}.", to)
    print_note(f"Results: {folder}; one step's tables again: ./ae STEP; as CSV: ./ae csv; as a page: ./ae report", to)


def duration(seconds: float) -> str:
    """Time as people say it.

    >>> duration(4.23), duration(75), duration(3720)
    ('4.2 s', '1 min 15 s', '62 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds >= 600 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def _counts(verdicts: Mapping[str, int]) -> str:
    found = sorted(verdicts, key=lambda verdict: _ORDER.index(verdict) if verdict in _ORDER else len(_ORDER))
    return "; ".join(f"{verdicts[verdict]} {verdict}" for verdict in found)


def show_status(found: Sequence[StepStatus], folder: Path, to: Console) -> None:
    """One line per step: what there is, of which state of the project, and what came out."""

    def column(heading: str, texts: Iterable[str], **form: bool) -> layout.Field:
        return layout.Field(heading, tuple(Text(text) for text in texts), **form)

    def number(each: StepStatus, value: int) -> str:
        return str(value) if each.when else ""

    fields = (
        column("", (each.step for each in found), whole=True),
        column("state", (each.state + (", stale" if each.stale and each.when else "") for each in found), text=True),
        column("last measured", (each.when[:16].replace("T", " ") for each in found), whole=True),
        column("commit", (each.commit for each in found), whole=True),
        column("measured", (number(each, each.measured) for each in found), right=True),
        column("failed", (number(each, each.failed) for each in found), right=True),
        column("not measured", (number(each, each.not_measured) for each in found), right=True),
        column("rows", (_counts(dict(each.verdicts)) for each in found), text=True),
    )
    print_fields(fields, to)
    for why in dict.fromkeys(each.stale for each in found if each.stale):
        names = ", ".join(each.step for each in found if each.stale == why)
        print_note(f"stale: {why} ({names}): a run measures it again", to)
    place = f"{folder}{'' if folder.exists() else ' (does not exist)'}"
    legend = "times in UTC; + with local changes; counts are of measurements, rows of their tables"
    print_note(f"Results: {place}; {legend}.", to)


def show_plans(plans: Sequence[Plan], to: Console) -> None:
    """What a run would do, for ``--dry-run``."""
    for plan in plans:
        time = f", about {duration(plan.seconds)}" if plan.keys else ""
        cannot = sum(count for _, count in plan.cannot)
        to.print(Text(plan.step, style="bold"))
        print_note(f"{len(plan.keys)} to measure{time}; {plan.kept} kept; {cannot} that cannot be measured here", to)
        for name in plan.installs:
            print_note(f"would first install {name}", to)
        if plan.note:
            print_note(plan.note, to)
        for reason, count in plan.cannot:
            print_note(f"not here: {count} ({reason})", to)
        if plan.keys:
            print_note(f"to measure: {', '.join(_brief(plan.keys))}", to)
    to.print()
    print_note(f"In all about {duration(sum(plan.seconds for plan in plans))}. Nothing was run or written.", to)


def _brief(keys: Sequence[str]) -> list[str]:
    """Names of measurements; many of them by what stands before the first dot, with their number."""
    if len(", ".join(keys)) <= 300:
        return list(keys)
    groups = Counter(key.partition(".")[0] for key in keys)
    return [f"{group} ({count})" if count > 1 else group for group, count in groups.items()]
