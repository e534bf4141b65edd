"""What every command that runs a step does: where results are, what is installed first, how it shows and ends."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from reproduce import ROOT, claims
from reproduce.choreo import Choreo
from reproduce.execute import execute
from reproduce.machine import Machine, Need
from reproduce.provision import ProvisionError, ensure_nvcc, ensure_triton, nvcc_of_minor, to_install
from reproduce.report import StepProgress, console
from reproduce.results import Document
from reproduce.step import Context, Options, Step
from reproduce.tables import DIFFERS, FAILED, NO_RUN

NEEDS_CLONE = "use a clone of the project that you may write to; only the results may lie elsewhere: --results DIR"
EXIT_DIFFERS, EXIT_USAGE, EXIT_LOCKED, EXIT_INTERRUPTED = 1, 2, 3, 130


def provide(step: Step, options: Options, gpu: str | None) -> None:
    """Installs what alone keeps rows of ``step`` from being measured; without it they say what is missing. The CUDA
    minors that were asked for, one after the other: ValueError and ProvisionError as in `nvcc_of_minor`."""
    missing = to_install(step, options, Machine(gpu))
    try:
        if Need.NVCC in missing:
            ensure_nvcc()
        if Need.TRITON in missing:
            ensure_triton()
    except ProvisionError as error:
        print(error, file=sys.stderr)
    for minor in options.cuda:
        nvcc_of_minor(minor, ROOT / "build" / "cuda")


def run_step(step: Step, context: Context) -> Document:
    progress = StepProgress(step, step.measurements(context), console())
    try:
        return execute(step, context, progress)
    finally:
        progress.close()


def outcome(document: Document) -> int:
    """Exit status of a step: what this machine cannot measure is no failure, a wrong or missing result is one."""
    bad = (DIFFERS, FAILED, NO_RUN)
    return EXIT_DIFFERS if any(row.verdict in bad for table in document.tables for row in table.rows) else 0


def results_folder(chosen: str | None = None) -> Path:
    """Raises ValueError for a file."""
    folder = Path(chosen or os.environ.get("RESULTS") or ROOT / "results").resolve()
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: --results and RESULTS take a folder")
    return folder


def check_writable(folder: Path) -> None:
    """Makes the folder of the results; raises OSError, which names it, if nothing can be written there."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from None


def context_for(name: str, folder: Path, options: Options, gpu: str | None = None) -> Context:
    return Context(
        step=name,
        results=folder,
        build=ROOT / "build" / "steps",
        machine=Machine(gpu),
        choreo=Choreo.from_environment(),
        claims=claims.load(),
        options=options,
    )
