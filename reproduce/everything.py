"""``all``: every step, one after another or spread over several GPUs. A step that fails never keeps the others from
running."""

from __future__ import annotations

import contextlib
import errno
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.text import Text

from reproduce import process, provenance, results
from reproduce.overview import show_summary
from reproduce.report import show_document
from reproduce.results import Document
from reproduce.schedule import Ended, Job, Schedule
from reproduce.tables import NOT_MEASURED

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass
class Outcome:
    """What became of one step; ``problem`` says why it has no (new) results."""

    step: str
    seconds: float = 0.0
    status: int = 0
    document: Document | None = None
    problem: str = ""


@dataclass
class Campaign:
    """The steps of one ``all`` as they end. ``first_verdict_s``: seconds until a row of the paper was first judged."""

    folder: Path
    to: Console
    started: float = field(default_factory=time.monotonic)
    when: str = field(default_factory=provenance.now)
    outcomes: list[Outcome] = field(default_factory=list)
    first_verdict_s: float | None = None

    def add(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        if (
            outcome.document
            and self.first_verdict_s is None
            and set(results.verdicts(outcome.document)) - {NOT_MEASURED}
        ):
            self.first_verdict_s = time.monotonic() - self.started

    @contextlib.contextmanager
    def summary_if_interrupted(self) -> Iterator[None]:
        """Ctrl-C: shows what the steps before it gave, and goes on."""
        try:
            yield
        except KeyboardInterrupt:
            if self.outcomes:
                self.conclude()
            raise

    def conclude(self) -> int:
        """Shows the table of steps and the times; returns the exit status: the worst of the steps'."""
        total = time.monotonic() - self.started
        show_summary(self.outcomes, total, self.first_verdict_s, self.folder, self.to)
        return max((outcome.status for outcome in self.outcomes), default=0)


def one_after_another(
    names: Sequence[str],
    run: Callable[[str], Document],
    status_of: Callable[[Document], int],
    explain: Callable[[Exception], tuple[str, int]],
    campaign: Campaign,
) -> int:
    full = False
    with campaign.summary_if_interrupted():
        for name in names:
            started = time.monotonic()
            outcome = Outcome(name)
            process.allow()
            try:
                outcome.document = run(name)
                outcome.status = status_of(outcome.document)
            except Exception as error:
                outcome.problem, outcome.status = explain(error)
                print(f"{name}: {outcome.problem}", file=sys.stderr)
                if isinstance(error, OSError) and error.errno in DISK_FULL:
                    campaign.to.print(Text("The steps after it were not started: they could not be written either."))
                    full = True
            outcome.seconds = time.monotonic() - started
            campaign.add(outcome)
            if full:
                break
    return campaign.conclude()


def side_by_side(
    jobs: Sequence[Job], gpus: Sequence[str], campaign: Campaign, *, tables: bool, expected_statuses: Sequence[int]
) -> int:
    """Lines of the steps are shown as they come, each after its step's name; a step's tables when it ends."""
    last: dict[str, str] = {}

    def line(name: str, text: str) -> None:
        last[name] = text or last.get(name, "")
        campaign.to.print(Text(f"{name:11} | {text}"), soft_wrap=True)

    def ended(end: Ended) -> None:
        name, where = end.job.name, "no GPU" if end.gpu is None else f"GPU {end.gpu}"
        campaign.to.print(Text(f"{name:11} | ended after {end.seconds:.1f} s ({where})"))
        outcome = Outcome(name, end.seconds, end.status if end.status >= 0 else 128 - end.status)
        try:
            document = results.load(campaign.folder, name) if end.status in expected_statuses else None
        except results.ResultsError as error:
            outcome.problem = str(error)
        else:
            # A step that broke leaves the file of an earlier run.
            outcome.document = document if document and document.provenance["started"] >= campaign.when else None
        if outcome.document is None:
            outcome.problem = outcome.problem or last.get(name, "") or f"exit status {end.status}"
            outcome.status = outcome.status or 1
        elif tables:
            show_document(outcome.document, campaign.to)
        campaign.add(outcome)

    with campaign.summary_if_interrupted():
        Schedule(jobs, gpus, line, ended).run()
    order = [job.name for job in jobs]
    campaign.outcomes.sort(key=lambda outcome: order.index(outcome.step))
    return campaign.conclude()


def report_bug(error: Exception, folder: Path) -> str:
    """Keeps the traceback of an error that is ours in the logs; returns one line for the reader."""
    path = folder / "logs" / "defect.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    return f"{type(error).__name__}: {error} (a defect of this project; traceback: {path})"
