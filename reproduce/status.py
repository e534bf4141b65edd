"""What has been done: the state of every step's results, and whether they still belong to the project as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reproduce import provenance, results
from reproduce.choreo import Choreo
from reproduce.lock import is_held
from reproduce.machine import Machine, Need
from reproduce.results import Document
from reproduce.step import Step
from reproduce.tables import FAILED, MEASURED, NO_RUN, NOT_MEASURED

DONE, PARTIAL, NEVER, RUNNING, UNREADABLE = "done", "partial", "never", "running", "unreadable"


@dataclass(frozen=True)
class StepStatus:
    """One step. Counts are of measurements (records), ``verdicts`` of table rows; ``stale`` says why a run would repeat
    what is there, "" if it would keep it.
    """

    step: str
    state: str
    when: str = ""
    commit: str = ""
    measured: int = 0
    failed: int = 0
    not_measured: int = 0
    verdicts: tuple[tuple[str, int], ...] = ()
    stale: str = ""


def of_steps(steps: Mapping[str, Step], folder: Path, machine: Machine, choreo: Choreo) -> list[StepStatus]:
    return [_of_step(step, folder, machine, choreo) for step in steps.values()]


def _of_step(step: Step, folder: Path, machine: Machine, choreo: Choreo) -> StepStatus:
    running = is_held(folder / f".lock-{step.name}")
    try:
        document = results.load(folder, step.name)
    except results.ResultsError as error:
        return StepStatus(step.name, RUNNING if running else UNREADABLE, stale=str(error))
    if document is None:
        return StepStatus(step.name, RUNNING if running else NEVER)
    now = provenance.fingerprint(machine, choreo, with_gpu=step.uses(Need.GPU), with_nvcc=step.uses(Need.NVCC))
    state = RUNNING if running else DONE if document.complete else PARTIAL
    return _describe(document, state, "" if document.fingerprint == now else "other sources, compiler or GPU")


def _describe(document: Document, state: str, stale: str) -> StepStatus:
    records = Counter(record.status for record in document.records.values())
    origin = document.provenance
    return StepStatus(
        document.step,
        state,
        max((record.when for record in document.records.values()), default="") or origin["started"],
        (origin["commit"] or "none")[:10] + ("+" if origin["dirty"] else ""),
        records[MEASURED],
        records[FAILED] + records[NO_RUN],
        records[NOT_MEASURED],
        tuple(results.verdicts(document).items()),
        stale,
    )
