"""What a person sees in a terminal: progress and the tables. Plain text on pipes, in CI and with NO_COLOR."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text

from reproduce.results import Document, Record
from reproduce.tables import DIFFERS, EQUAL, FAILED, MEASURED, NO_RUN, NOT_MEASURED, Cell, Column, Row, Table

if TYPE_CHECKING:
    from reproduce.doctor import Check
    from reproduce.step import Measurement, Step

PLAIN_WIDTH = 200  # of pipes and CI logs, where nothing says how wide a line may be

_STYLES = {EQUAL: "green", DIFFERS: "bold red", NO_RUN: "bold red", FAILED: "bold red", NOT_MEASURED: "yellow"}


def console() -> Console:
    """The console for this process's stdout; colours only on a terminal that wants them."""
    interactive = sys.stdout.isatty() and not os.environ.get("CI")
    plain = not interactive or "NO_COLOR" in os.environ
    return Console(
        width=None if interactive else PLAIN_WIDTH,
        no_color=plain,
        color_system=None if plain else "auto",
        force_terminal=interactive,
        highlight=False,
        soft_wrap=False,
    )


def value_text(cell: Cell, column: Column) -> Text:
    """A cell as the tables print it. What was not measured says so, with the reason."""
    if cell.status == NOT_MEASURED:
        return Text(f"not measured here: {cell.reason}", style="yellow")
    if cell.status == NO_RUN:
        return Text("[NO-RUN]", style="bold red")
    if cell.status == FAILED:
        return Text("FAILED", style="bold red")
    return Text(value_format(cell, column), style="bold red" if cell.verdict == DIFFERS else "")


def value_format(cell: Cell, column: Column) -> str:
    """A value in the digits and the unit that the tables print; a star marks a reservation."""
    value = cell.value
    star = "*" if cell.reason else ""  # a measured value with a reservation; the row's notes explain it
    if isinstance(value, bool):
        text = "yes" if value else "no"
    elif isinstance(value, int) and column.unit == "KiB":  # stored in bytes
        text = f"{value / 1024:g}"
    elif isinstance(value, float):
        text = f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
    else:
        text = str(value)
    return text + star


def _verdict_text(row: Row) -> Text:
    return Text(row.verdict, style=_STYLES.get(row.verdict, "yellow" if row.verdict.startswith(EQUAL) else ""))


def heading(column: Column) -> str:
    """The column's title with its unit."""
    return f"{column.title} [{column.unit}]" if column.unit else column.title


def show_table(table: Table, to: Console) -> None:
    rich = RichTable(title=table.title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    rich.add_column("", no_wrap=True)
    for column in table.columns:
        text = column.kind == "text"
        rich.add_column(Text(heading(column)), justify="left" if text else "right", no_wrap=text)
    rich.add_column("paper", no_wrap=True)
    rich.add_column("verdict", no_wrap=True)
    for row in table.rows:
        cells = [
            value_text(row.cells[column.key], column) if column.key in row.cells else Text("")
            for column in table.columns
        ]
        rich.add_row(Text(row.label), *cells, Text(row.paper), _verdict_text(row))
    to.print(rich)
    notes = [f"{row.label}: {note}" for row in table.rows for note in (*row.notes, *failures(row))]
    notes += table.notes
    for note in notes:
        to.print(Text(f"  {note}"), soft_wrap=True)
    if notes:
        to.print()


def failures(row: Row) -> list[str]:
    """Why cells of the row have no value, each reason once, with the log that tells the rest."""
    found: dict[str, str] = {}
    for cell in row.cells.values():
        if cell.status in (NO_RUN, FAILED) and cell.reason:
            place = f" (log: results/{cell.log})" if cell.log else ""
            found.setdefault(cell.reason, f"{cell.status}: {cell.reason}{place}")
    return list(found.values())


def show_document(document: Document, to: Console) -> None:
    for table in document.tables:
        show_table(table, to)
    origin = document.provenance
    commit = (origin["commit"] or "no git commit")[:12] + (" + local changes" if origin["dirty"] else "")
    parts = [f"compiler: {origin['compiler']}", f"commit {commit}"]
    if origin.get("nvcc"):
        parts.append(f"nvcc {origin['nvcc']}")
    if origin.get("gpu"):
        parts.append(f"{origin['gpu']['name']}, driver {origin['gpu']['driver']}")
    parts.append(f"{origin['duration_s']:.1f} s")
    if origin.get("kept_from"):
        parts.append(f"in part or whole from the run of {origin['kept_from']} (--fresh repeats it)")
    to.print(Text("; ".join(parts), style="dim"), soft_wrap=True)


def show_checks(checks: Sequence[Check], to: Console) -> None:
    """The doctor's findings, one line each, with what would help."""
    rich = RichTable(box=box.SIMPLE_HEAD)
    for heading in ("", "found", "", "what helps"):
        rich.add_column(heading)
    words = {True: Text("ok", "green"), False: Text("NOT OK", "bold red"), None: Text("limited", "yellow")}
    for check in checks:
        rich.add_row(Text(check.what), Text(check.found), words[check.ok], Text(check.advice))
    to.print(rich)


class StepProgress:
    """Progress of one step: a bar with the remaining time on a terminal, one line per measurement elsewhere."""

    def __init__(self, step: Step, measurements: Sequence[Measurement], to: Console) -> None:
        self.console = to
        self.total = sum(item.seconds for item in measurements)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        if to.is_terminal and measurements:
            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), console=to, transient=True
            )
            self._task = self._bar.add_task(step.name, total=self.total)
            self._bar.start()

    def kept(self, measurements: Sequence[Measurement], note: str) -> None:
        if note:
            self.console.print(Text(note))
        self._advance(sum(item.seconds for item in measurements))

    def finished(self, measurement: Measurement, record: Record) -> None:
        self._advance(measurement.seconds)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=measurement.key)
        elif record.duration_s > 5:  # long enough for a reader of a log to wonder what goes on
            outcome = record.status if record.status == MEASURED else f"{record.status}: {record.reason}"
            self.console.print(Text(f"  {measurement.key}: {outcome} ({record.duration_s:.1f} s)"), soft_wrap=True)

    def _advance(self, seconds: float) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, seconds)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
