"""The Slurm runner: each step is a job of a cluster. submitit submits; docs/cluster.md says how to use it.

The project's folder must have the same path on the login node and on the compute nodes (a shared file system): the job
runs this Python environment, and writes the results where the host runner would.
"""

from __future__ import annotations

import math
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path

from reproduce import ROOT, results
from reproduce.machine import Need
from reproduce.runners import EXIT_INTERRUPTED, EXIT_USAGE, apptainer, slurm_queue
from reproduce.runners.host import ENDING, HostRunner, interrupted_once
from reproduce.runners.slurm_follow import EXIT_FAILED, Followed, Log, say
from reproduce.runners.slurm_job import SlurmJob
from reproduce.runners.slurm_options import SlurmOptions
from reproduce.runners.slurm_queue import SlurmError
from reproduce.running import results_folder
from reproduce.steps import STEPS

# The step's own limit must come before Slurm's, so that the step ends in order and says why.
MARGIN_S = 45.0
CANCEL_LIMIT_S = 45.0  # Slurm kills what has not ended after its KillWait, by default 30 s
_FOLDER = ROOT / "build" / "slurm"


class SlurmRunner:
    """Submits a step as a job, shows its log while it runs, and returns its exit status.

    ``image``: an Apptainer image in which the jobs run the step, instead of on the node's own toolchain.
    """

    name = "slurm"

    def __init__(self, options: SlurmOptions, image: Path | None = None, why: str = "") -> None:
        self.options, self.image = options, image
        self.why = why or f"steps run as Slurm jobs{f' in {image.name}' if image else ''}"

    @staticmethod
    def from_environment(options: str = "", why: str = "") -> SlurmRunner:
        """With the options of ``--slurm``, or of $SALA_SLURM, and the image $SALA_SIF; ValueError for wrong ones."""
        image = os.environ.get("SALA_SIF")
        if image and not Path(image).exists():
            raise ValueError(f"SALA_SIF={image}: there is no such image (docs/cluster.md says how to make it)")
        chosen = SlurmOptions.parse(options or os.environ.get("SALA_SLURM", ""))
        return SlurmRunner(chosen, Path(image).resolve() if image else None, why)

    def run(self, step: str, arguments: Sequence[str], *, limit_s: float) -> int:
        if step not in STEPS and step != "all":  # reports and references: seconds, and no node is needed
            return HostRunner().run(step, arguments, limit_s=limit_s)
        names = list(STEPS) if step == "all" else [step]
        followed: list[Followed] = []
        try:
            folder, arguments = _results_folder(arguments)
            known = self._check(folder)
            with interrupted_once():
                try:
                    for name in names:
                        with _signals_blocked():
                            previous = followed[-1].job.job_id if followed else ""
                            followed.append(self._submit(name, arguments, folder, limit_s, previous, known))
                    if step == "all":
                        return _follow_all(followed, folder)
                    return followed[0].follow()
                except KeyboardInterrupt:
                    return _cancel(followed)
        except (SlurmError, ValueError) as error:
            _cancel(followed)
            print(error, file=sys.stderr)
            return EXIT_USAGE

    def shell(self, gpu: str) -> int:
        print("the slurm runner has no shell: --runner host or docker has one", file=sys.stderr)
        return EXIT_USAGE

    def _check(self, folder: Path) -> list[str]:
        """The partitions of the cluster; SlurmError if there is none, or no way to submit."""
        known = slurm_queue.partitions()
        if isinstance(known, str):
            raise SlurmError(known)
        try:
            import submitit  # noqa: F401
        except ImportError:
            raise SlurmError(
                "--runner slurm needs the Python package submitit: install it once with\n"
                f"  {shlex.quote(sys.executable)} -m pip install submitit"
            ) from None
        if "\n" in str(folder):
            raise SlurmError("the name of the results folder contains a line break")
        if self.image:
            apptainer.check_paths(ROOT, folder, self.image)
        return known

    def _submit(
        self, name: str, arguments: Sequence[str], folder: Path, limit_s: float, previous: str, known: list[str]
    ) -> Followed:
        """Submits one step, to start when the job ``previous`` has ended, however it ended: as on one machine, no other
        step runs beside a timed one.
        """
        import submitit
        from submitit.core.utils import FailedSubmissionError, UncompletedJobError

        step = STEPS[name]
        limit = min(limit_s, step.limit_s)  # of `all`, a step needs a part only, and short jobs start sooner
        minutes = self.options.time or math.ceil((limit + MARGIN_S) / 60) + 1
        limit = min(limit, 60 * minutes - MARGIN_S)
        gpu = step.uses(Need.GPU)
        log = folder / "logs" / name / "slurm-%j.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        _FOLDER.mkdir(parents=True, exist_ok=True)
        parameters = self.options.parameters(gpu=gpu)
        parameters["additional_parameters"] |= {"output": str(log).replace("%", "%%").replace("%%j", "%j")}
        if previous:
            parameters["dependency"] = f"afterany:{previous}"
        digest = apptainer.digest(self.image, _FOLDER) if self.image else ""
        job = SlurmJob(name, tuple(arguments), folder, limit, gpu, self.image, digest)
        place = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=_FOLDER))
        said = StringIO()
        try:
            with redirect_stderr(said):  # submitit prints what sbatch says, which is explained here
                executor = submitit.SlurmExecutor(folder=place)
                executor.update_parameters(
                    job_name=f"sala-{name}",
                    time=minutes,
                    stderr_to_stdout=True,
                    # One process on one node needs no srun, which would not hand on the job's CPUs to it.
                    use_srun=False,
                    setup=_setup(),
                    **parameters,
                )
                submitted = executor.submit(job)
        except (UncompletedJobError, FailedSubmissionError, RuntimeError) as error:
            shutil.rmtree(place, ignore_errors=True)
            asked = ", ".join(f"{key}={value}" for key, value in parameters.items() if isinstance(value, (str, int)))
            line = ([text for text in (said.getvalue() + str(error)).splitlines() if text.strip()] or ["no answer"])[-1]
            raise SlurmError(f"{name}: not submitted. {slurm_queue.explain(line, asked, known)}") from None
        return Followed(name, submitted, Log(Path(str(log).replace("%j", submitted.job_id))), place, 60.0 * minutes)


def _setup() -> list[str]:
    """Lines of the job's script before Python starts."""
    # The job needs this project, and its log no messages of submitit. The terminal is not the job's, but its width is.
    columns = shutil.get_terminal_size((120, 24)).columns
    return [
        f"export PYTHONPATH={shlex.quote(str(ROOT))}${{PYTHONPATH:+:$PYTHONPATH}}",
        f"export SUBMITIT_LOG_LEVEL=CRITICAL COLUMNS={columns}",
    ]


def _results_folder(arguments: Sequence[str]) -> tuple[Path, list[str]]:
    """The folder of the results, and the arguments with its absolute path."""
    words, folder = list(arguments), ""
    for position, word in enumerate(words):
        if word == "--gpu" or word.startswith("--gpu="):
            raise SlurmError(
                "--gpu: Slurm chooses the GPU of a job. --slurm gres=gpu:TYPE:1 asks for a type of GPU, "
                "--slurm nodelist=NODE for a node."
            )
        if word == "--results" and position + 1 < len(words):
            folder = words[position + 1]
        elif word.startswith("--results="):
            folder = word.partition("=")[2]
    path = results_folder(folder)
    return path, [*words, "--results", str(path)]


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Ctrl-C waits until a job that was submitted is known by its number: nothing else could cancel it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _follow_all(followed: Sequence[Followed], folder: Path) -> int:
    """Shows one job after another, in the order in which they run, and the summary that `all` ends with everywhere."""
    from reproduce.everything import Campaign, Outcome
    from reproduce.report import console

    campaign = Campaign(folder, console())
    for each in followed:
        status = each.follow()
        outcome = Outcome(each.step, each.seconds, status, problem=each.problem)
        if status in (0, EXIT_FAILED) and not each.problem:
            try:
                outcome.document = results.load(folder, each.step)
            except results.ResultsError as error:
                outcome.problem = str(error)
        if outcome.document is None:
            outcome.problem = outcome.problem or f"exit status {status}; log: {each.log.path}"
            outcome.status = status or EXIT_FAILED
        campaign.add(outcome)
    return campaign.conclude()


def _cancel(followed: Sequence[Followed]) -> int:
    """Cancels the jobs and shows how those that ran end; the status of an interrupted run."""
    going_on = []
    for each in reversed(followed):  # the last first: else each would start when the one before it has ended
        if (state := slurm_queue.ask(each.job.job_id)) is not None and state.ended:
            continue
        error = slurm_queue.cancel(each.job.job_id)
        if error:
            say(
                f"{each.step}: job {each.job.job_id} could not be cancelled ({error}); later: scancel {each.job.job_id}"
            )
        elif state is not None and state.name != "PENDING":
            going_on.append(each)
        else:
            say(f"{each.step}: job {each.job.job_id} was cancelled before it ran")
            shutil.rmtree(each.place, ignore_errors=True)
    for each in going_on:
        each.follow(CANCEL_LIMIT_S)
    return EXIT_INTERRUPTED
