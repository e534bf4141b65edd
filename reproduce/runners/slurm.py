"""The Slurm runner: each step is a job of a cluster. submitit submits; docs/cluster.md says how to use it.

The project's folder must have the same path on the login node and on the compute nodes (a shared file system): the job
runs this Python environment, and writes the results where the host runner would.
"""

from __future__ import annotations

import codecs
import math
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from reproduce import ROOT, results
from reproduce.machine import Need
from reproduce.runners import apptainer, slurm_queue
from reproduce.runners.host import ENDING, HostRunner, interrupted_once
from reproduce.runners.slurm_job import SlurmJob
from reproduce.runners.slurm_options import SlurmOptions
from reproduce.runners.slurm_queue import State
from reproduce.step import Step
from reproduce.steps import STEPS

# The step's own limit must come before Slurm's, so that the step ends in order and says why.
MARGIN_S = 45.0
POLL_S = 0.25
ASK_S = (0.5, 10.0)  # how often the controller is asked: at first, and at most
HOPELESS_S = 10.0  # a controller that has just started may say so of any job
CANCEL_LIMIT_S = 45.0  # Slurm kills what has not ended after its KillWait, by default 30 s
_FOLDER = ROOT / "build" / "slurm"

EXIT_FAILED, EXIT_USAGE, EXIT_TIME, EXIT_INTERRUPTED, EXIT_MEMORY = 1, 2, 124, 130, 137


class SlurmError(Exception):
    """No job can run as asked for; the message says why, and what to do."""


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
        followed: list[_Followed] = []
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
    ) -> _Followed:
        """Submits one step, to start when the job ``previous`` has ended, however it ended: as on one machine, no other
        step runs beside a timed one.
        """
        import submitit
        from submitit.core.utils import FailedSubmissionError, UncompletedJobError

        step = STEPS[name]
        minutes = self.options.time or math.ceil((_limit(step, limit_s) + MARGIN_S) / 60) + 1
        limit = min(_limit(step, limit_s), 60 * minutes - MARGIN_S)
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
        return _Followed(name, submitted, _Log(Path(str(log).replace("%j", submitted.job_id))), place, 60.0 * minutes)


def _limit(step: Step, limit_s: float) -> float:
    """The limit of one job, in seconds: of `all`, a step needs a part only, and short jobs start sooner."""
    return min(limit_s, 60 * (4 * step.minutes + 10))


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
    path = Path(folder or os.environ.get("RESULTS") or ROOT / "results").resolve()
    return path, [*words, "--results", str(path)]


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Ctrl-C waits until a job that was submitted is known by its number: nothing else could cancel it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass
class _Log:
    """A job's log, printed as it grows. Opened anew each time: over a network file system, that shows what is new."""

    path: Path
    _read: int = 0
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    def drain(self) -> None:
        try:
            with self.path.open("rb") as file:
                file.seek(self._read)
                new = file.read()
        except OSError:  # not there yet
            return
        if new:
            self._read += len(new)
            sys.stdout.write(self._decoder.decode(new))
            sys.stdout.flush()


@dataclass
class _Followed:
    """A submitted job, and what of it has been shown. ``limit_s``: Slurm's limit of its running time; ``seconds``: what
    it ran for; ``problem``: why it did not end by itself.
    """

    step: str
    job: Any  # submitit.Job[int], where submitit is installed
    log: _Log
    place: Path
    limit_s: float
    seconds: float = 0.0
    problem: str = ""
    _running_since: float | None = None
    _shown: State = field(default_factory=lambda: State(""))
    _silent_since: float | None = None
    _hopeless_since: float | None = None

    def follow(self, limit_s: float = math.inf) -> int:
        """Shows the job's log and states until it has ended; returns the exit status of the step."""
        deadline, asked, pause = time.monotonic() + limit_s, -math.inf, ASK_S[0]
        while True:
            self.log.drain()
            finished = self._status() is not None
            if finished or time.monotonic() - asked >= pause:
                state = slurm_queue.ask(self.job.job_id)
                asked, pause = time.monotonic(), min(1.5 * pause, ASK_S[1])
                self._show(state)
                if (state.ended if state else finished) or asked >= deadline:
                    self.seconds = asked - (self._running_since or asked)
                    return self._conclude(state)
                if self._given_up():
                    return EXIT_FAILED
            time.sleep(POLL_S)

    def _status(self) -> int | None:
        """The step's exit status, once the job has written it."""
        if not self.job.paths.result_pickle.exists():
            return None
        try:
            return int(self.job.result())
        except Exception:  # the job's own exception; its traceback is in the log
            return EXIT_FAILED

    def _show(self, state: State | None) -> None:
        """Says on stderr what has changed; SlurmError for a job that will never start."""
        number = f"{self.step}: job {self.job.job_id}"
        if state is None:
            if self._silent_since is None:
                self._silent_since = time.monotonic()
                _say(f"{number}: Slurm's controller does not answer; the job goes on without it, and so does its log")
            return
        if self._silent_since is not None:
            self._silent_since = None
            _say(f"{number}: Slurm's controller answers again")
        if state.restarts > self._shown.restarts:
            _say(f"{number} was requeued (a node failed, or the job was preempted): it resumes from what was measured")
        if state.name == "PENDING" and (state.name, state.reason) != (self._shown.name, self._shown.reason):
            _say(f"{number} is queued: {slurm_queue.reason_in_words(state.reason)}")
        elif state.name != self._shown.name and state.name == "RUNNING":
            self._running_since = time.monotonic()
            _say(f"{number} runs on {state.node}; log: {self.log.path}")
        elif state.name != self._shown.name and state.name == "SUSPENDED":
            _say(f"{number} is suspended; it goes on when Slurm resumes it")
        self._shown = state
        if state.name != "PENDING" or state.reason not in slurm_queue.HOPELESS:
            self._hopeless_since = None
        elif self._hopeless_since is None:
            self._hopeless_since = time.monotonic()
        elif time.monotonic() - self._hopeless_since >= HOPELESS_S:
            raise SlurmError(f"{number} would wait for ever: {slurm_queue.reason_in_words(state.reason)}")

    def _given_up(self) -> bool:
        """Whether the job must have ended long ago, while nobody could say so."""
        if self._silent_since is None or time.monotonic() - self._silent_since < self.limit_s + 60:
            return False
        _say(f"{self.step}: no word of job {self.job.job_id} since its time is over: ask `squeue` when Slurm is back")
        return True

    def _conclude(self, state: State | None) -> int:
        """The status that the job ended with, and what to do if it did not end by itself."""
        self.log.drain()
        status = self._status()
        name = state.name if state else "COMPLETED"
        # Without an answer the job may still be about to end, and need its folder; after a failure, someone may.
        if state and state.ended and name != "FAILED":
            shutil.rmtree(self.place, ignore_errors=True)
        if status is not None and name in ("COMPLETED", "COMPLETING", "UNKNOWN"):
            return status
        ending, status_then = _ENDINGS.get(name, (f"ended as {name}", EXIT_FAILED))
        node = f" on {state.node}" if state and state.node else ""
        code = f", exit code {state.exit_code}" if state and name == "FAILED" else ""
        self.problem = f"job {self.job.job_id}{node} {ending}{code}"
        _say(f"{self.step}: {self.problem} (log: {self.log.path})")
        return status_then


_KEPT = "what was measured is kept: the same command goes on from there"
_ENDINGS = {
    "CANCELLED": (f"was cancelled; {_KEPT}", EXIT_INTERRUPTED),
    "TIMEOUT": (f"reached its time limit; {_KEPT} (--slurm time=MINUTES gives it more)", EXIT_TIME),
    "DEADLINE": (f"reached its deadline; {_KEPT}", EXIT_TIME),
    "OUT_OF_MEMORY": ("was ended for want of memory: give it more with --slurm mem=SIZE, e.g. mem=32G", EXIT_MEMORY),
    "NODE_FAIL": (f"ended because its node failed; {_KEPT}", EXIT_FAILED),
    "PREEMPTED": (f"was preempted by another job; {_KEPT}", EXIT_FAILED),
    "BOOT_FAIL": ("could not start: its node did not boot", EXIT_FAILED),
    "UNKNOWN": (f"is not known to Slurm any more, and wrote no exit status; {_KEPT}", EXIT_FAILED),
    "FAILED": (
        f"failed before the step ended. Do {ROOT} and {sys.executable} exist on the node, too? They must lie on a file "
        "system that it shares",
        EXIT_FAILED,
    ),
}


def _follow_all(followed: Sequence[_Followed], folder: Path) -> int:
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


def _cancel(followed: Sequence[_Followed]) -> int:
    """Cancels the jobs and shows how those that ran end; the status of an interrupted run."""
    going_on = []
    for each in reversed(followed):  # the last first: else each would start when the one before it has ended
        if (state := slurm_queue.ask(each.job.job_id)) is not None and state.ended:
            continue
        error = slurm_queue.cancel(each.job.job_id)
        if error:
            _say(
                f"{each.step}: job {each.job.job_id} could not be cancelled ({error}); later: scancel {each.job.job_id}"
            )
        elif state is not None and state.name != "PENDING":
            going_on.append(each)
        else:
            _say(f"{each.step}: job {each.job.job_id} was cancelled before it ran")
            shutil.rmtree(each.place, ignore_errors=True)
    for each in going_on:
        each.follow(CANCEL_LIMIT_S)
    return EXIT_INTERRUPTED


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
