"""``python -m reproduce``: the entry point that every runner, task and session executes."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from reproduce import ROOT, doctor, everything, plan, process, references, results, schedule, status
from reproduce.choreo import Choreo
from reproduce.cutlass import headers
from reproduce.cutlass.errors import CutlassError
from reproduce.lock import LockedError
from reproduce.machine import Machine, Need, gpu_numbers
from reproduce.overview import show_checks, show_plans, show_status
from reproduce.provision import ProvisionError
from reproduce.report import console, show_document
from reproduce.results import Document
from reproduce.running import (
    EXIT_DIFFERS,
    EXIT_INTERRUPTED,
    EXIT_LOCKED,
    EXIT_USAGE,
    NEEDS_CLONE,
    check_writable,
    context_for,
    outcome,
    provide,
    results_folder,
    run_step,
)
from reproduce.step import Options, Step
from reproduce.steps import STEPS

EXPECTED_ERRORS = (LockedError, ProvisionError, results.ResultsError, results.NoResultsError, ValueError, OSError)

EPILOG = (
    "Exit status: 0 done, 1 a row failed or differs, 2 wrong arguments or no way to write, 3 locked, 130 interrupted."
)


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` ignores the closed terminal
            signal.signal(number, _interrupt)
    process.allow()
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except KeyboardInterrupt:
        print("\ninterrupted; what was measured is kept: the same command goes on from there", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # who reads what we print has gone: `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains at exit
        return EXIT_DIFFERS
    except Exception as error:
        text, status = (
            explain(error) if _expected(error) else (everything.report_bug(error, _log_folder(options)), EXIT_DIFFERS)
        )
        print(text, file=sys.stderr)
        return status


def explain(error: Exception) -> tuple[str, int]:
    """What a person is told of an error that the machine or the command line caused, and the exit status."""
    if isinstance(error, LockedError):
        return str(error), EXIT_LOCKED
    if isinstance(error, results.ResultsError):
        return f"{error}: ./ae STEP measures it again, ./ae status names the step", EXIT_USAGE
    if not isinstance(error, OSError):
        return str(error), EXIT_USAGE
    place = f" {error.filename}" if error.filename else ""
    if error.errno in everything.DISK_FULL:
        return (
            f"cannot write{place}: the disk is full ({error.strerror}). What was measured so far is kept: "
            "make room, and the same command goes on from there.",
            EXIT_USAGE,
        )
    written = Path(os.fsdecode(error.filename)) if error.filename else ROOT
    if written.is_relative_to(ROOT / "build") or written.is_relative_to(ROOT / "expected"):
        advice = NEEDS_CLONE
    else:
        advice = "--results DIR or RESULTS=DIR chooses another place"
    return f"cannot write{place}: {error.strerror} ({advice})", EXIT_USAGE


def _expected(error: Exception) -> bool:
    """Errors that the machine or the command line causes; others are defects of this project."""
    return isinstance(error, EXPECTED_ERRORS) and not isinstance(error, UnicodeError)


def _log_folder(options: argparse.Namespace) -> Path:
    """Where a defect is described: with the results, or, where they cannot be written, with other temporary files."""
    folder = results_folder(options.results)
    return folder if os.access(folder, os.W_OK) else Path(tempfile.gettempdir())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reproduce", description=__doc__, epilog=EPILOG)
    commands = parser.add_subparsers(
        required=True, metavar="STEP | all | list | status | verify | golden | csv | report | bundle | cutlass | doctor"
    )
    for name, text in [(step.name, step.title) for step in STEPS.values()] + [("all", "every step, one after another")]:
        step = commands.add_parser(name, help=text, description=text, epilog=EPILOG)
        step.add_argument("--fresh", action="store_true", help="measure again what an earlier run has measured")
        step.add_argument(
            "--only", default="", metavar="GROUP,…", help="rows of these groups (table2: xcomp, cutlass, tawa)"
        )
        step.add_argument("--gpu", metavar="N", help="GPU to use (default: $GPU, else 0); all: several, such as 0,1")
        step.add_argument("--dry-run", action="store_true", help="say what would run and how long; run nothing")
        step.add_argument("--seeds", metavar="N", help="soundness: seeds of each stressed build")
        step.add_argument("--cuda", default="", metavar="13.0,…", help="CUDA minors that `registers` compares")
        step.add_argument(
            "--show-race", action="store_true", help="table2: also run the unions that the engine refuses"
        )
        step.add_argument(
            "--check", action="store_true", help="as in the paper's guide: check outputs, which every run does"
        )
        step.add_argument("--no-table", action="store_true", help="measure without printing the tables")
        step.set_defaults(command=_run_steps, steps=list(STEPS) if name == "all" else [name])
    _add(commands, "status", _status, "what is done: every step's results and whether they are of these sources")
    _add(commands, "list", _list, "the steps with their time and needs")
    check = _add(commands, "verify", references.check, "compare results to expected/, making what is missing")
    check.add_argument("kind", metavar="exact | timing")
    reference = _add(
        commands, "golden", references.rewrite, "how the results differ from expected/; --update rewrites it"
    )
    reference.add_argument("steps", nargs="*", metavar="STEP", help="these steps only")
    reference.add_argument("--update", action="store_true")
    reference.add_argument("--paper", action="store_true", help="the profiles that the paper's own figures give")
    reference.add_argument("--timing", nargs="+", metavar="DIR", help="results folders of repeated runs on one machine")
    _add(commands, "csv", _csv, "every table of the results as CSV")
    page = _add(commands, "report", _report, "one HTML page of all results, with figures and tables as files")
    page.add_argument("--out", metavar="DIR", help="where the report goes (default: report/ in the results)")
    archive = _add(commands, "bundle", _bundle, "report, results, logs and references as one archive")
    archive.add_argument("--out", metavar="FILE", help="the archive (default: sala-reproduction.zip in the results)")
    _add(commands, "cutlass", _cutlass, "fetch CUTLASS' headers, which table2 and census need")
    _add(commands, "doctor", _doctor, "what this machine has, and what it can therefore run")
    for each in commands.choices.values():
        each.add_argument("--results", metavar="DIR", help="where results go (default: $RESULTS, else results/)")
    return parser


def _add(commands: Any, name: str, command: Callable[[Any], int], text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(command=command)
    return parser


# --------------------------------------------------------------------------------------------------------------
# Steps


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def _seeds(text: str | None) -> int:
    if text is None:
        return 0
    if not re.fullmatch(r"0*[1-9]\d{0,5}", text, re.ASCII):
        raise ValueError(f"--seeds {text}: a number from 1 to 999999 is needed")
    return int(text)


def _run_steps(options: argparse.Namespace) -> int:
    chosen = Options(
        _words(options.only),
        options.fresh,
        _words(options.cuda),
        options.show_race,
        _seeds(options.seeds),
    )
    folder, gpus = results_folder(options.results), _gpus(options)
    gpu = gpus[0] if gpus else None
    if options.dry_run:
        plans = [plan.plan(STEPS[name], context_for(name, folder, chosen, gpu)) for name in options.steps]
        show_plans(plans, console())
        return 0
    check_writable(folder)  # before anything is installed, and not once for every step
    if options.check and not options.show_race:
        print("Every run checks its outputs; --show-race also runs the unions that the engine refuses.")

    def run(name: str) -> Document:
        provide(STEPS[name], chosen, gpu)
        document = run_step(STEPS[name], context_for(name, folder, chosen, gpu))
        if not options.no_table:
            show_document(document, console())
        return document

    if len(options.steps) == 1:
        return outcome(run(options.steps[0]))
    campaign = everything.Campaign(folder, console())
    if len(gpus) < 2:
        return everything.one_after_another(options.steps, run, outcome, partial(_explain_step, folder), campaign)
    for name in options.steps:  # once, before several children would do it at once
        provide(STEPS[name], chosen, gpu)
    jobs = [_job(STEPS[name], options, folder) for name in options.steps]
    return everything.side_by_side(
        jobs, gpus, campaign, tables=not options.no_table, expected_statuses=(0, EXIT_DIFFERS)
    )


def _gpus(options: argparse.Namespace) -> list[str]:
    """The GPUs that were asked for; raises ValueError for what is none, or more than one for one step."""
    text = os.environ.get("GPU", "").strip() if options.gpu is None else options.gpu
    if options.gpu is None and not text:
        return []
    said = f"GPU={text}" if options.gpu is None else f"--gpu {text}"
    found = gpu_numbers(text, said)
    if len(found) > 1 and len(options.steps) == 1:
        raise ValueError(f"{said}: a step uses one GPU; `all` spreads steps over several")
    if options.gpu is None and len(found) == 1:  # a setting may stay where that GPU is not: its cells say so
        return found
    present = Machine().gpu_indices
    for number in found:
        if number not in present:
            there = f"GPUs {', '.join(present)}" if present else "no GPU (leave it out: exact results need none)"
            raise ValueError(f"{said}: there is no GPU {number}; this machine has {there}")
    return found


def _job(step: Step, options: argparse.Namespace, folder: Path) -> schedule.Job:
    """A step as a process of its own, with the options of this run."""
    words = [*process.module_command("reproduce"), step.name, "--results", str(folder), "--no-table"]
    words += [f"--{name.replace('_', '-')}" for name in ("fresh", "show_race") if getattr(options, name)]
    for name in ("only", "seeds", "cuda"):
        words += [f"--{name}", str(getattr(options, name))] if getattr(options, name) else []
    return schedule.Job(step.name, tuple(words), step.uses(Need.GPU))


def _explain_step(folder: Path, error: Exception) -> tuple[str, int]:
    return explain(error) if _expected(error) else (everything.report_bug(error, folder), EXIT_DIFFERS)


def _list(options: argparse.Namespace) -> int:
    for step in STEPS.values():
        needs = ", ".join(sorted(need.value for need in step.needs)) or "nothing"
        extra = "".join(f", better with {need.value}" for need in sorted(step.optional, key=lambda need: need.value))
        print(f"{step.name:12} {step.minutes:5.1f} min  {step.title} (needs {needs}{extra})")
    return 0


def _status(options: argparse.Namespace) -> int:
    folder = results_folder(options.results)
    show_status(status.of_steps(STEPS, folder, Machine(), Choreo.from_environment()), folder, console())
    return 0


def _csv(options: argparse.Namespace) -> int:
    from reproduce import frames  # pandas takes half a second to import

    folder = results_folder(options.results)
    documents, status = _readable(folder)
    if not documents and not status:
        raise results.NoResultsError(folder)
    for path in frames.write_csv(documents, folder / "csv"):
        print(path)
    return status


def _report(options: argparse.Namespace) -> int:
    from reproduce.html import page  # matplotlib takes half a second to import

    folder = results_folder(options.results)
    status = _readable(folder)[1]
    written = page.write(STEPS, folder, Path(options.out).resolve() if options.out else folder / "report")
    print(f"{written} (opens in any browser, also without a network; figures/ and csv/ lie beside it)")
    return status


def _bundle(options: argparse.Namespace) -> int:
    from reproduce import bundle
    from reproduce.html import page

    folder = results_folder(options.results)
    target = Path(options.out).resolve() if options.out else folder / "sala-reproduction.zip"
    if target.is_dir():
        raise ValueError(f"--out {options.out}: a folder; it takes the name of the archive, such as results.zip")
    status = _readable(folder)[1]
    report = page.write(STEPS, folder, folder / "report").parent
    written = bundle.write(folder, report, target)
    print(f"{written} ({written.stat().st_size / 1e6:.1f} MB): report, results, logs, references")
    return status


def _readable(folder: Path) -> tuple[list[Document], int]:
    """The results that can be read; says of the others why not, with the exit status that this gives."""
    documents, problems = results.load_all(folder, STEPS)
    for error in problems.values():
        print(explain(error)[0], file=sys.stderr)
    return list(documents.values()), EXIT_USAGE if problems else 0


def _cutlass(options: argparse.Namespace) -> int:
    try:
        found = headers.find(ROOT / "build" / "steps" / "cutlass")
    except CutlassError as error:
        print(error, file=sys.stderr)
        return EXIT_USAGE
    print(f"{found}: {found.include}")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    started = time.monotonic()
    checks = doctor.examine(Machine())
    show_checks(checks, time.monotonic() - started, console())
    return EXIT_DIFFERS if any(check.ok is False for check in checks) else 0


def _interrupt(signum: int, frame: Any) -> None:
    raise KeyboardInterrupt
