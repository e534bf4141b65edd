"""What a person sees in a terminal: progress and the tables. Plain text on pipes, in CI and with NO_COLOR."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from reproduce import layout, sampling
from reproduce.results import Document, Record
from reproduce.tables import (
    DIFFERS,
    EQUAL,
    FAILED,
    MEASURED,
    NO_RUN,
    NOT_MEASURED,
    SHOWN,
    SLOWED,
    Cell,
    Column,
    Row,
    Table,
)

if TYPE_CHECKING:
    from reproduce.step import Measurement, Step

PLAIN_WIDTH = 120  # of pipes and CI logs, where nothing but $COLUMNS says how wide a line may be

_STYLES = {
    SLOWED: "yellow",
    EQUAL: "green",
    DIFFERS: "bold red",
    NO_RUN: "bold red",
    FAILED: "bold red",
    NOT_MEASURED: "yellow",
}


def console() -> Console:
    """The console for this process's stdout; colours only on a terminal that wants them."""
    interactive = sys.stdout.isatty() and not os.environ.get("CI")
    plain = not interactive or "NO_COLOR" in os.environ
    return Console(
        width=None if interactive or os.environ.get("COLUMNS", "").isdigit() else PLAIN_WIDTH,
        no_color=plain,
        color_system=None if plain else "auto",
        force_terminal=interactive,
        highlight=False,
        soft_wrap=False,
    )


class Marks:
    """Short marks for the reasons why cells were not measured, explained once below the table: (a), (b), …"""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    def of(self, reason: str) -> str:
        return self._reasons.setdefault(reason, f"({chr(ord('a') + len(self._reasons) % 26)})")

    def notes(self) -> list[str]:
        return [f"{mark} not measured here: {reason}" for reason, mark in self._reasons.items()]


def value_text(cell: Cell, column: Column, marks: Marks) -> Text:
    """A cell as the tables print it. What was not measured has a mark instead, which ``marks`` explains."""
    if cell.status == NOT_MEASURED:
        return Text(marks.of(cell.reason), style="yellow")
    if cell.status == NO_RUN:
        return Text("[NO-RUN]", style="bold red")
    if cell.status == FAILED:
        return Text("FAILED", style="bold red")
    return Text(value_format(cell, column), style="bold red" if cell.verdict == DIFFERS else "")


def value_format(cell: Cell, column: Column) -> str:
    """A value in the digits and the unit that the tables print; a star marks a reservation."""
    value = cell.value
    star = "*" if cell.reason else ""  # a measured value with a reservation; the row's notes explain it
    star += "†" if cell.slowed_by else ""  # likewise
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
    marks = Marks()
    to.print(Text(table.title, style="bold"), soft_wrap=True)
    print_fields(_fields(table, marks), to)
    notes = marks.notes()
    notes += [f"{row.label}: {note}" for row in table.rows for note in (*row.notes, *failures(row))]
    notes += table.notes
    for note in notes:
        print_note(note, to)
    if notes:
        to.print()


def print_fields(fields: Sequence[layout.Field], to: Console) -> None:
    for block in layout.lines(fields, to.width, "─" if to.encoding.startswith("utf") else "-"):
        for line in block:
            to.print(line, soft_wrap=True)
        to.print()


def _fields(table: Table, marks: Marks) -> list[layout.Field]:
    """The columns of the table and, unless they would say nothing, what the paper prints and the verdict."""
    found = [layout.Field("", tuple(Text(row.label) for row in table.rows), text=True)]
    for column in table.columns:
        cells = tuple(
            value_text(row.cells[column.key], column, marks) if column.key in row.cells else Text("")
            for row in table.rows
        )
        text = column.kind == "text"
        found.append(layout.Field(heading(column), cells, text=text, right=not text))
    if any(row.paper for row in table.rows):
        found.append(layout.Field("paper", tuple(Text(row.paper) for row in table.rows), text=True))
    if any(row.paper or row.verdict != SHOWN for row in table.rows):
        verdicts = tuple(_verdict_text(row) for row in table.rows)
        found.append(layout.Field("verdict", verdicts, whole=True, joins=found[-1].heading == "paper"))
    return found


def print_note(note: str, to: Console) -> None:
    """A note, wrapped between words with its further lines indented; whole on a pipe, where it can be searched."""
    if not to.is_terminal:
        to.print(Text(f"  {note}"), soft_wrap=True)
        return
    for line in textwrap.wrap(
        note,
        to.width,
        initial_indent="  ",
        subsequent_indent="      ",
        break_long_words=False,
        break_on_hyphens=False,
    ):
        to.print(Text(line), soft_wrap=True)


def failures(row: Row) -> list[str]:
    """Why cells of the row have no value, or one not to rely on, each reason once, with the log that tells the rest."""
    found: dict[str, str] = {}
    for cell in row.cells.values():
        if cell.slowed_by:
            text = f"† timed while the GPU was slowed down ({cell.slowed_by}): not judged; --fresh repeats it"
            found.setdefault(cell.slowed_by, text)
        if cell.status in (NO_RUN, FAILED) and cell.reason:
            place = f" (log: results/{cell.log})" if cell.log else ""
            found.setdefault(cell.reason, f"{cell.status}: {cell.reason}{place}")
    return list(found.values())


def show_document(document: Document, to: Console) -> None:
    for table in document.tables:
        show_table(table, to)
    origin = document.provenance
    commit = (origin["commit"] or "unknown")[:12] + (" + local changes" if origin["dirty"] else "")
    parts = [f"compiler: {origin['compiler']}", f"commit {commit}"]
    if origin.get("nvcc"):
        parts.append(f"nvcc {origin['nvcc']}")
    if origin.get("gpu"):
        parts.append(f"{origin['gpu']['name']}, driver {origin['gpu']['driver']}")
    if origin.get("runner", "host") != "host":
        parts.append(f"{origin['runner']}{': ' + origin['image'] if origin.get('image') else ''}")
    parts += sampling.describe(document.gpu_states)
    parts.append(f"{origin['duration_s']:.1f} s")
    if origin.get("kept_from"):
        parts.append(f"measured earlier in part or whole, from {origin['kept_from']} on (--fresh repeats it)")
    to.print(Text("; ".join(parts), style="dim"), soft_wrap=True)
    to.print()


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
