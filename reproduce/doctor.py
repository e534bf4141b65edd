"""The kick-the-tires check: what this machine has, what it can therefore run, and one kernel through the compiler."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from reproduce import ROOT, kernels
from reproduce.choreo import Choreo
from reproduce.machine import Machine, Need

DISK_NEEDED_GIB = 2.0


@dataclass(frozen=True)
class Check:
    """``ok`` is None for a lack that only leaves some rows unmeasured here; ``advice`` says what would help."""

    what: str
    ok: bool | None
    found: str
    advice: str = ""


def examine(machine: Machine) -> list[Check]:
    checks = [_python(), _disk(), _nvcc(machine), _gpu(machine), _ncu(machine), _triton(machine)]
    return [*checks, _compiler()]


def _python() -> Check:
    ok = sys.version_info >= (3, 10)
    return Check("Python", ok, platform.python_version(), "" if ok else "Python 3.10 or newer is needed")


def _disk() -> Check:
    free = shutil.disk_usage(ROOT).free / 2**30
    ok = free >= DISK_NEEDED_GIB
    return Check("disk", ok, f"{free:.1f} GiB free", "" if ok else f"at least {DISK_NEEDED_GIB:g} GiB are needed")


def _nvcc(machine: Machine) -> Check:
    version = machine.nvcc_version
    if version is None:
        return Check(
            "nvcc", None, "none", "steps that need it install nvcc 13.0 from PyPI (104 MB), as `./ae build` does"
        )
    if version.startswith("13.0."):
        return Check("nvcc", True, version)
    advice = "bytes and occupancy are comparable, register counts are those of CUDA 13.0"
    return Check("nvcc", None, f"{version} (the references are for 13.0)", advice)


def _gpu(machine: Machine) -> Check:
    gpu = machine.gpu
    if gpu is None:
        advice = "exact results need none; timed rows need an sm_90 GPU (H100, H200, H800)"
        return Check("GPU", None, machine.missing(Need.GPU) or "none", advice)
    return Check("GPU", True, f"{gpu.index}: {gpu.name}, driver {gpu.driver}, {gpu.power_limit} W")


def _ncu(machine: Machine) -> Check:
    if machine.ncu is None:
        return Check("ncu", None, "none", "it measures active warps (Table 3); part of the CUDA toolkit")
    if profiling_is_restricted() and os.geteuid() != 0:
        advice = "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0"
        return Check("ncu", None, f"{machine.ncu}, but the driver allows profiling to administrators only", advice)
    return Check("ncu", True, str(machine.ncu))


def profiling_is_restricted() -> bool:
    """Whether the driver lets only administrators read performance counters."""
    try:
        return "RmProfilingAdminOnly: 1" in Path("/proc/driver/nvidia/params").read_text()
    except OSError:
        return False


def _triton(machine: Machine) -> Check:
    missing = machine.missing(Need.TRITON)
    advice = (
        "the Tawa rows of Table 2: table2 installs Triton (188 MB); to run on a GPU they need torch, too "
        "(.venv/bin/pip install torch)"
        if missing
        else ""
    )
    return Check("torch, triton", None if missing else True, missing or "installed", advice)


def _compiler() -> Check:
    try:
        choreo = Choreo.from_environment()
    except ValueError as error:
        return Check("one kernel", False, str(error), "unset CHOREO, or set it to a program")
    found = choreo.allocate(kernels.source("matmul_f16_dyn_sm90_warpspec_1p1c_64x128_4s"), sala=True, log=None)
    text = f"{choreo}: {found.bytes} B in {found.finished.duration_s:.2f} s" if found.bytes else found.message
    return Check("one kernel", found.bytes is not None, text, "" if found.bytes else "see the message")
