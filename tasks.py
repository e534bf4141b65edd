"""Invoke tasks: one per figure, table and check of the paper, and the everyday commands. ``./ae --list`` shows them.

Every task starts ``python -m reproduce`` through a runner and ends with its exit status.
"""

from __future__ import annotations

import inspect
import os
import sys
from typing import Any, NoReturn

from invoke.collection import Collection
from invoke.context import Context
from invoke.tasks import Task, task

from reproduce import ROOT
from reproduce.clean import clean as clean_up
from reproduce.lock import LockedError
from reproduce.machine import Need
from reproduce.prepare import Wishes, prepare
from reproduce.report import console
from reproduce.runners import EXIT_USAGE, Runner
from reproduce.runners.choose import ChoiceError, choose
from reproduce.runners.host import HostRunner
from reproduce.step import Step, time_limit_s
from reproduce.steps import STEPS

_HELP = {
    "fresh": "measure again what an earlier run has measured",
    "results": "folder of the results (default: results/)",
    "gpu": "GPU to use (default: $GPU, else 0)",
    "only": "rows of these groups only (table2: xcomp,cutlass,tawa; correctness: gemm,attention,conv,launches; "
    "soundness: simulator,stress)",
    "seeds": "soundness: seeds of each build under stress (default: 100)",
    "show_race": "also run the unions that the engine refuses, and count what is wrong",
    "cuda": "CUDA minors to compare, e.g. 13.0,13.1",
    "check": "as in the paper's guide: check outputs (every run does, so that this changes nothing)",
    "dry_run": "say what would run, where, and how long it takes; run nothing",
    "runner": "where steps run: docker, host or slurm (default: $RUNNER, else docker if it is ready)",
    "slurm": "what jobs ask for, such as partition=P,account=A,gres=gpu:h100:1 (default: $SALA_SLURM); --runner slurm",
}
_OPTIONS = {
    "table2": ("only", "show_race", "check"),
    "correctness": ("only",),
    "registers": ("cuda",),
    "soundness": ("only", "seeds"),
}
_FLAGS = ("fresh", "show_race", "check", "dry_run")
# Commands that measure nothing, and write where a container may not.
_HERE = ("list", "status", "golden", "csv", "report", "bundle", "cutlass")


def _reproduce(
    step: str, *words: str, minutes: float = 5.0, runner: str = "", slurm: str = "", **options: str | bool
) -> None:
    """Runs ``python -m reproduce STEP`` with the options that are set; ends this program if it fails."""
    if slurm:
        if runner not in ("", "slurm"):
            _stop(f"--slurm says what Slurm jobs ask for; with --runner {runner} there are none: leave one of them out")
        runner, os.environ["SALA_SLURM"] = "slurm", slurm
    arguments = list(words)
    for name, value in options.items():
        if value is True:
            arguments.append(f"--{name.replace('_', '-')}")
        elif value:
            arguments += [f"--{name}", str(value)]
    chosen: Runner = HostRunner()
    if step not in _HERE:
        try:
            chosen = choose(runner)
        except ChoiceError as error:
            _stop(error)
        print(chosen.why, file=sys.stderr, flush=True)
    if options.get("dry_run"):
        if chosen.name != "host":
            print("GPU, compiler and packages below are those of this machine, not of that place", file=sys.stderr)
        chosen = HostRunner()  # what is only said is said here
    status = chosen.run(step, arguments, limit_s=time_limit_s(minutes))
    if status:
        sys.exit(status)


def _stop(problem: str | Exception) -> NoReturn:
    print(problem, file=sys.stderr)
    sys.exit(EXIT_USAGE)


def _task(step: Step) -> Task[Any]:
    """The task of a step, with the options that mean something to it."""

    def run(c: Context, **options: str | bool) -> None:
        _reproduce(step.name, minutes=step.minutes, **options)  # type: ignore[arg-type]  # runner, slurm: str

    names = [
        "fresh",
        "results",
        "runner",
        "slurm",
        "dry_run",
        *(["gpu"] if step.uses(Need.GPU) else []),
        *_OPTIONS.get(step.name, ()),
    ]
    parameters = [inspect.Parameter("c", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for name in names:
        default = False if name in _FLAGS else ""
        parameters.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    needs = ", ".join(sorted(need.value for need in step.needs)) or "nothing"
    run.__doc__ = f"{step.title} ({step.minutes:g} min; needs {needs})"
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # Invoke makes its options of this
    made: Task[Any] = task(name=step.name, help={name: _HELP[name] for name in names})(run)
    return made


@task(
    name="all",
    help={
        **{name: _HELP[name] for name in ("fresh", "results", "seeds", "runner", "slurm", "dry_run")},
        "gpu": "GPU, or GPUs to spread over: 0,1",
    },
)
def all_(
    c: Context,
    fresh: bool = False,
    results: str = "",
    gpu: str = "",
    seeds: str = "",
    runner: str = "",
    slurm: str = "",
    dry_run: bool = False,
) -> None:
    """Every step that this machine can run; goes on after a step that fails."""
    minutes = sum(step.minutes for step in STEPS.values())
    where = {"runner": runner, "slurm": slurm}
    _reproduce("all", minutes=minutes, fresh=fresh, results=results, gpu=gpu, seeds=seeds, dry_run=dry_run, **where)


@task(
    help={
        "base_image": "image to build on (default: the CUDA 13.0 image that docker/Dockerfile names)",
        "extra_ca": "CA certificate (PEM) of a network that intercepts TLS",
        "torch": "leave out torch and Triton: without them there are no Tawa rows",
        "network": "network of the build: host, or the engine's own (default)",
        "runner": _HELP["runner"],
    }
)
def build(
    c: Context, base_image: str = "", extra_ca: str = "", torch: bool = True, network: str = "", runner: str = ""
) -> None:
    """Fetch all that steps need, so that they need no network: as an image, or without Docker into this environment."""
    try:
        sys.exit(prepare(runner, Wishes(base_image, extra_ca, torch, network), console()))
    except ChoiceError as error:
        _stop(error)


@task(
    help={
        "kind": "exact (default; makes what is missing) or timing",
        "results": _HELP["results"],
        "runner": _HELP["runner"],
    }
)
def verify(c: Context, kind: str = "exact", results: str = "", runner: str = "") -> None:
    """Compare results to expected/."""
    _reproduce("verify", kind, minutes=STEPS["registers"].minutes, results=results, runner=runner)


@task
def cutlass(c: Context) -> None:
    """CUTLASS' headers, which table2 and census need: fetch them once."""
    _reproduce("cutlass")


@task(help={"runner": _HELP["runner"]})
def doctor(c: Context, runner: str = "") -> None:
    """What this machine has, and what it can therefore run (under a minute)."""
    _reproduce("doctor", runner=runner)


@task(help={"results": _HELP["results"]})
def status(c: Context, results: str = "") -> None:
    """What is done: every step's results, and whether they are of the sources as they are."""
    _reproduce("status", results=results)


@task(help={"gpu": _HELP["gpu"], "runner": _HELP["runner"]})
def shell(c: Context, gpu: str = "", runner: str = "") -> None:
    """A shell where the steps run, with their environment: in a container or here."""
    try:
        sys.exit(choose(runner).shell(gpu))
    except (ChoiceError, ValueError) as error:
        _stop(error)


@task(help={"results": "remove results/, too"})
def clean(c: Context, results: bool = False) -> None:
    """Remove build/ (with --results also results/); refuses while a run uses them."""
    try:
        print("\n".join(clean_up(ROOT, results=results)))
    except (LockedError, ValueError) as error:
        _stop(error)
    except OSError as error:
        _stop(f"build/ or results/ cannot be removed: {error.strerror} ({error.filename})")


@task
def steps(c: Context) -> None:
    """The steps with their time and needs."""
    _reproduce("list")


@task(
    help={
        "steps": "exact references of these steps only, separated by commas",
        "update": "rewrite expected/ (shows the difference first)",
        "paper": "the timing profiles that the paper's own figures give",
        "timing": "results folders of repeated runs, separated by commas: the profile of this machine",
    }
)
def golden(
    c: Context, steps: str = "", update: bool = False, paper: bool = False, timing: str = "", results: str = ""
) -> None:
    """How the results differ from expected/; the only way to rewrite it."""
    words = steps.split(",") if steps else []
    words += ["--timing", *timing.split(",")] if timing else []
    _reproduce("golden", *words, update=update, paper=paper, results=results)


@task(help={"results": _HELP["results"]})
def csv(c: Context, results: str = "") -> None:
    """Every table of the results as results/csv/<step>-<table>.csv."""
    _reproduce("csv", results=results)


@task(help={"results": _HELP["results"], "out": "folder of the page (default: report/ in the results)"})
def report(c: Context, results: str = "", out: str = "") -> None:
    """All results as one HTML page, with figures and tables as files."""
    _reproduce("report", results=results, out=out)


@task(help={"results": _HELP["results"], "out": "the archive (default: sala-reproduction.zip in the results)"})
def bundle(c: Context, results: str = "", out: str = "") -> None:
    """Report, results, logs and references as one archive."""
    _reproduce("bundle", results=results, out=out)


namespace = Collection(
    *(_task(step) for step in STEPS.values()),
    all_,
    build,
    verify,
    cutlass,
    csv,
    report,
    bundle,
    doctor,
    status,
    steps,
    golden,
    shell,
    clean,
)

if __name__ == "__main__":
    from reproduce.command_line import main

    main(namespace)
