"""Where a result comes from: state of the project, toolchain, GPU, command line; and the fingerprint of its inputs."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import sys
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from reproduce import ROOT, process, versions
from reproduce.choreo import Choreo
from reproduce.machine import Machine

# What a measurement depends on: the tools, the kernels, and how the steps measure.
_INPUTS = (
    "croqtile",
    "hb_analyzer",
    "kernels",
    "reproduce/steps",
    "reproduce/stress",
    "reproduce/cutlass",
    "reproduce/tawa",
    "triton_overlap",
)
_SUFFIXES = {".py", ".lark", ".json", ".co", ".cu", ".h", ".hpp", ".cuh", ".yaml"}


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def commit() -> tuple[str | None, bool | None]:
    """The git commit and whether the tree differs from it; (None, None) outside a git checkout."""
    head = process.run(["git", "-C", ROOT, "rev-parse", "HEAD"], timeout_s=10)
    if not head.ok:
        return None, None
    status = process.run(["git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no"], timeout_s=30)
    return head.stdout.strip(), bool(status.stdout.strip()) if status.ok else None


def describe(machine: Machine, choreo: Choreo, *, with_gpu: bool, with_nvcc: bool) -> dict[str, Any]:
    """Provenance of a run that starts now; asks for the GPU and nvcc only if the step uses them."""
    head, dirty = commit()
    gpu = machine.gpu if with_gpu else None
    return {
        "commit": head,
        "dirty": dirty,
        "command": shlex.join(["python", "-m", "reproduce", *sys.argv[1:]]),
        "environment": {
            name: os.environ[name]
            for name in ("CHOREO", "GPU", "NCU", "CUDA_HOME", "CUTLASS_HOME")
            if name in os.environ
        },
        # Only the runner knows where it started this.
        "runner": os.environ.get("SALA_RUNNER", "host"),
        "image": os.environ.get("SALA_IMAGE"),
        "started": now(),
        "duration_s": 0.0,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "compiler": str(choreo),
        "nvcc": machine.nvcc_version if with_nvcc else None,
        "tools": versions.tools(machine, with_gpu=with_gpu, with_nvcc=with_nvcc),
        "gpu": asdict(gpu) if gpu else None,
    }


def fingerprint(machine: Machine, choreo: Choreo, *, with_gpu: bool, with_nvcc: bool) -> str:
    """A digest that changes whenever records taken before must not be mixed with records taken now."""
    digest = hashlib.sha256()
    for folder in _INPUTS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in _SUFFIXES and path.is_file():
                digest.update(f"{path.relative_to(ROOT)}\0".encode())
                digest.update(path.read_bytes())
    digest.update(f"CUTLASS {os.environ.get('CUTLASS_HOME')}".encode())
    digest.update(repr(choreo.command if not choreo.own else "own").encode())
    if with_gpu and machine.gpu:
        digest.update(f"{machine.gpu.name} {machine.gpu.driver}".encode())
    if with_nvcc:
        digest.update(str(machine.nvcc_version).encode())
    return digest.hexdigest()
