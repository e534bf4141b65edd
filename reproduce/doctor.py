"""The kick-the-tires check: what this machine has, what it can therefore run, and one kernel from end to end."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from reproduce import ROOT
from reproduce.choreo import Choreo
from reproduce.machine import Machine, Need
from reproduce.trial import Trial

DISK_NEEDED_GIB = 2.0
DRIVER_NEEDED = 580  # the first branch with CUDA 13.0
CUDA_NEEDED = 13000  # as cuDriverGetVersion counts: 1000 * major + 10 * minor


@dataclass(frozen=True)
class Check:
    """``ok`` is None for a lack that only leaves some rows unmeasured here; ``advice`` says what would help."""

    what: str
    ok: bool | None
    found: str
    advice: str = ""


def examine(machine: Machine) -> list[Check]:
    """Everything that is asked of the machine, then the stages of one kernel. Writes below build/ only."""
    checks = [_python(), _disk(), _engine(), _nvcc(machine), _gpu(machine)]
    checks += [_driver(machine)] if machine.gpu else []
    return [*checks, _ncu(machine), _triton(machine), *_one_kernel(machine)]


def _python() -> Check:
    ok = sys.version_info >= (3, 10)
    return Check("Python", ok, platform.python_version(), "" if ok else "Python 3.10 or newer is needed")


def _disk() -> Check:
    free = shutil.disk_usage(ROOT).free / 2**30
    ok = free >= DISK_NEEDED_GIB
    return Check("disk", ok, f"{free:.1f} GiB free", "" if ok else f"at least {DISK_NEEDED_GIB:g} GiB are needed")


def _engine() -> Check:
    """Steps run in containers if an engine answers and the image is there; without, on this machine."""
    inside = os.environ.get("SALA_IMAGE")
    if inside:
        return Check("engine", True, f"this runs in a container of {inside}")
    from reproduce import engine, image

    if engine.address() is None:
        return Check("engine", True, "no Docker engine: steps run on this machine")
    try:
        found = engine.connect()
        made = image.find(found)
    except engine.EngineError as error:
        return Check("engine", None, str(error), "steps run on this machine until then")
    return Check("engine", True, f"{'Podman' if found.podman else 'Docker'} {found.version}, image {made.tag}")


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


def _driver(machine: Machine) -> Check:
    """A compatibility package lets an older driver run newer programs: what counts is what the CUDA driver says."""
    assert machine.gpu is not None
    driver, cuda = machine.gpu.driver, cuda_of_driver()
    major = driver.partition(".")[0]
    enough = cuda >= CUDA_NEEDED if cuda else major.isdigit() and int(major) >= DRIVER_NEEDED
    text = f"{driver}, CUDA {cuda // 1000}.{cuda % 1000 // 10}" if cuda else driver
    if enough:
        return Check("driver", True, text)
    advice = (
        f"CUDA 13.0 needs driver {DRIVER_NEEDED} or newer (or the package cuda-compat-13-0); exact results need none"
    )
    return Check("driver", False, f"{text}: too old for CUDA 13.0", advice)


def cuda_of_driver() -> int | None:
    """The CUDA version that the driver's library supports, e.g. 13000; None if there is no such library."""
    version = ctypes.c_int()
    try:
        status = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return None
    return version.value if status == 0 and version.value else None


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
        return "RmProfilingAdminOnly: 1" in Path("/proc/driver/nvidia/params").read_text(encoding="utf-8")
    except OSError:
        return False


def _triton(machine: Machine) -> Check:
    missing = machine.missing(Need.TRITON)
    advice = ""
    if missing:
        advice = "the Tawa rows of Table 2: torch to run them on a GPU (.venv/bin/pip install torch)"
        advice += "; table2 installs Triton (188 MB)" if "triton" in missing else ""
    return Check("torch, triton", None if missing else True, missing or "installed", advice)


def _one_kernel(machine: Machine) -> list[Check]:
    try:
        choreo = Choreo.from_environment()
    except ValueError as error:
        return [Check("one kernel: CUDA", False, str(error), "unset CHOREO, or set it to a program")]
    stages = Trial(machine, choreo).run()
    return [
        Check(f"one kernel: {stage.name}", stage.ok, stage.found, "" if stage.ok else stage.advice) for stage in stages
    ]
