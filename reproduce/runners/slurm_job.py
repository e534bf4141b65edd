"""What a Slurm job runs on its node: the step as the host runner does, or in an Apptainer image."""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from reproduce import ROOT
from reproduce.runners import EXIT_USAGE, apptainer
from reproduce.runners.host import HostRunner, run_command


@dataclass(frozen=True)
class SlurmJob:
    """One step, called on the node; returns its exit status. ``limit_s`` ends it before Slurm's own limit would, with a
    message. ``gpu``: whether the step uses one. ``image``: an Apptainer image to run it in, and its ``digest``.
    """

    step: str
    arguments: tuple[str, ...]
    results: Path
    limit_s: float
    gpu: bool = False
    image: Path | None = None
    digest: str = ""

    def __call__(self) -> int:
        # submitit would requeue the job on the signal by which Slurm can announce the end; the step resumes by itself.
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        _choose_gpu()
        os.environ["SALA_RUNNER"] = "slurm"
        if self.image:
            os.environ["SALA_IMAGE"] = f"{self.image.name} sha256:{self.digest}"
        try:
            return self._in_image(self.image) if self.image else self._here()
        finally:
            sys.stdout.flush()

    def _here(self) -> int:
        return HostRunner().run(self.step, self.arguments, limit_s=self.limit_s)

    def _in_image(self, image: Path) -> int:
        program = apptainer.program()
        if program is None:
            node = socket.gethostname()
            print(
                f"{self.step}: there is neither apptainer nor singularity on PATH of node {node}. Load its module "
                "before you start this (the job has the same environment), or run without SALA_SIF.",
                file=sys.stderr,
            )
            return EXIT_USAGE
        for folder in (self.results, ROOT / "build" / "slurm"):
            folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=ROOT / "build" / "slurm", prefix="tmp-") as scratch:
            argv = apptainer.argv(
                program,
                image,
                ["python", "-m", "reproduce", self.step, *self.arguments],
                root=ROOT,
                results=self.results,
                scratch=Path(scratch),
                gpu=self.gpu,
            )
            environment = apptainer.environment(program, ROOT, os.environ)
            return run_command(argv, self.step, limit_s=self.limit_s, env=environment)


def _choose_gpu() -> None:
    """GPU=N is the one that Slurm gave to the job (the first of them): not device 0, where the node shows them all."""
    os.environ.pop("GPU", None)
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0]
    if first.isdigit():
        os.environ["GPU"] = first
