"""Invoke tasks: one per figure, table and check of the paper, and the everyday commands. ``inv --list`` shows them.

Every task starts ``python -m reproduce`` through a runner and ends with its exit status.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

from invoke.collection import Collection
from invoke.context import Context
from invoke.tasks import Task, task

from reproduce.machine import Need
from reproduce.provision import ProvisionError, ensure_nvcc
from reproduce.runners.choose import choose
from reproduce.step import Step
from reproduce.steps import STEPS

_HELP = {
    "fresh": "measure again what an earlier run has measured",
    "results": "folder of the results (default: results/)",
    "gpu": "GPU to use (default: $GPU, else 0)",
    "only": "rows of this group only (table2: xcomp, cutlass, tawa; correctness: gemm, attention, conv, launches)",
    "show_race": "also run the unions that the engine refuses, and count what is wrong",
    "cuda": "CUDA minors to compare, e.g. 13.0,13.1",
}
_OPTIONS = {"table2": ("only", "show_race"), "correctness": ("only",), "registers": ("cuda",)}
# A step gets four times what it takes on our machine, and ten minutes to compile.
_SLACK, _COMPILE_MINUTES = 4.0, 10.0


def _reproduce(step: str, *words: str, minutes: float = 5.0, **options: str | bool) -> None:
    """Runs ``python -m reproduce STEP`` with the options that are set; ends this program if it fails."""
    arguments = list(words)
    for name, value in options.items():
        if value is True:
            arguments.append(f"--{name.replace('_', '-')}")
        elif value:
            arguments += [f"--{name}", str(value)]
    limit = 60.0 * (_SLACK * minutes + _COMPILE_MINUTES)
    status = choose().run(step, arguments, limit_s=limit)
    if status:
        sys.exit(status)


def _task(step: Step) -> Task[Any]:
    """The task of a step, with the options that mean something to it."""

    def run(c: Context, **options: str | bool) -> None:
        _reproduce(step.name, minutes=step.minutes, **options)

    names = ["fresh", "results", *(["gpu"] if step.uses(Need.GPU) else []), *_OPTIONS.get(step.name, ())]
    parameters = [inspect.Parameter("c", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for name in names:
        default = False if name in ("fresh", "show_race") else ""
        parameters.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    needs = ", ".join(sorted(need.value for need in step.needs)) or "nothing"
    run.__doc__ = f"{step.title} ({step.minutes:g} min; needs {needs})"
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # Invoke makes its options of this
    made: Task[Any] = task(name=step.name, help={name: _HELP[name] for name in names})(run)
    return made


@task(name="all", help={name: _HELP[name] for name in ("fresh", "results", "gpu")})
def all_(c: Context, fresh: bool = False, results: str = "", gpu: str = "") -> None:
    """Every step that this machine can run, one after another."""
    minutes = sum(step.minutes for step in STEPS.values())
    _reproduce("all", minutes=minutes, fresh=fresh, results=results, gpu=gpu)


@task
def build(c: Context) -> None:
    """Prepare the toolchain: find nvcc, or install nvcc 13.0 from PyPI into this environment."""
    try:
        print(f"nvcc {ensure_nvcc()} is ready; steps run on this machine")
    except ProvisionError as error:
        sys.exit(str(error))


@task
def doctor(c: Context) -> None:
    """What this machine has, and what it can therefore run (under a minute)."""
    _reproduce("doctor")


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
    *(_task(step) for step in STEPS.values()), all_, build, csv, report, bundle, doctor, steps, golden
)
