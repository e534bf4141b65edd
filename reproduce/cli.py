"""``python -m reproduce STEP``: the entry point that every runner executes."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reproduce import ROOT, claims
from reproduce.choreo import Choreo
from reproduce.execute import execute
from reproduce.lock import LockedError
from reproduce.machine import Machine
from reproduce.report import StepProgress, console, show_document
from reproduce.results import Document
from reproduce.step import Context, Options, Step
from reproduce.steps import STEPS
from reproduce.tables import DIFFERS, FAILED, NO_RUN

EXIT_DIFFERS, EXIT_USAGE, EXIT_LOCKED, EXIT_INTERRUPTED = 1, 2, 3, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 1 a row failed or differs from the paper, 2 wrong arguments, 3 locked, 130 interrupted."""
    options = _parser().parse_args(argv)
    if options.step == "list":
        return _list()
    signal.signal(signal.SIGTERM, _interrupt)
    names = list(STEPS) if options.step == "all" else [options.step]
    worst = 0
    for name in names:
        try:
            worst = max(worst, run_step(STEPS[name], context_for(name, options), tables=not options.no_table))
        except LockedError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return EXIT_LOCKED
        except KeyboardInterrupt:
            print(f"\n{name}: interrupted; what was measured is kept, run it again to go on", file=sys.stderr)
            return EXIT_INTERRUPTED
        except OSError as error:
            print(f"{name}: {error} (disk full, or no right to write there?)", file=sys.stderr)
            return EXIT_USAGE
    return worst


def run_step(step: Step, context: Context, *, tables: bool = True) -> int:
    to = console()
    progress = StepProgress(step, step.measurements(context), to)
    try:
        document = execute(step, context, progress)
    finally:
        progress.close()
    if tables:
        show_document(document, to)
    return outcome(document)


def outcome(document: Document) -> int:
    bad = (DIFFERS, FAILED, NO_RUN)
    return EXIT_DIFFERS if any(row.verdict in bad for table in document.tables for row in table.rows) else 0


def results_folder(chosen: str | None = None) -> Path:
    """--results, else $RESULTS, else results/ of the project."""
    return Path(chosen or os.environ.get("RESULTS") or ROOT / "results").resolve()


def context_for(name: str, options: Any) -> Context:
    return Context(
        step=name,
        results=results_folder(options.results),
        build=ROOT / "build" / "steps",
        machine=Machine(options.gpu),
        choreo=Choreo.from_environment(),
        claims=claims.load(),
        options=Options(tuple(options.only), options.fresh, tuple(options.cuda)),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reproduce", description="Runs one step: a figure, a table or a check of the paper."
    )
    parser.add_argument(
        "step", choices=[*STEPS, "all", "list"], metavar="STEP", help=", ".join([*STEPS, "all", "list"])
    )
    parser.add_argument("--fresh", action="store_true", help="measure again what an earlier run has measured")
    parser.add_argument(
        "--only", action="append", default=[], metavar="GROUP", help="rows of this group only (table2: xcomp)"
    )
    parser.add_argument("--results", metavar="DIR", help="where results go (default: results/, or $RESULTS)")
    parser.add_argument("--gpu", metavar="N", help="GPU to use (default: $GPU, else 0)")
    parser.add_argument("--cuda", type=_comma, default=[], metavar="13.0,…", help="CUDA minors that registers compares")
    parser.add_argument("--no-table", action="store_true", help="measure without printing the tables")
    return parser


def _comma(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _list() -> int:
    for step in STEPS.values():
        needs = ", ".join(sorted(need.value for need in step.needs)) or "nothing"
        extra = "".join(f" (+ {need.value})" for need in sorted(step.optional, key=lambda need: need.value))
        print(f"{step.name:12} {step.minutes:5.1f} min  needs {needs}{extra}: {step.title}")
    return 0


def _interrupt(signum: int, frame: Any) -> None:
    raise KeyboardInterrupt
