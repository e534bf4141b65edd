"""Installs what exact results need on a bare machine: nvcc 13.0 from the pinned PyPI wheels."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from croqtile import toolchain
from reproduce.machine import Machine, Need
from reproduce.step import Options, Step

# The wheels of CUDA 13.0.88, whose nvcc, ptxas and cicc are those of the system package. The same pin is the extra
# `cuda` of pyproject.toml.
CUDA_WHEELS = "cuda-toolkit[nvcc,cccl]==13.0.3.0"
TRITON_WHEEL = "triton==3.6.0"  # decides the bytes of the Tawa rows; the same pin is in pyproject.toml


class ProvisionError(Exception):
    """nvcc could not be installed; the message says what to do."""


def to_install(step: Step, options: Options, machine: Machine) -> frozenset[Need]:
    """What a run of ``step`` installs first: nvcc if it alone keeps rows from being measured (a GPU cannot be
    installed), and Triton for the rows that it compiles."""
    found = set()
    gpu_missing = Need.GPU in step.needs and machine.missing(Need.GPU)
    if Need.NVCC in step.needs and machine.missing(Need.NVCC) and not gpu_missing:
        found.add(Need.NVCC)
    if step.uses(Need.TRITON) and triton_is_missing() and (not options.only or "tawa" in options.only):
        found.add(Need.TRITON)
    return frozenset(found)


def ensure_nvcc() -> str:
    """The version of nvcc; installs the wheels into this Python environment first if the machine has none."""
    version = Machine().nvcc_version
    if version is not None:
        return version
    print(f"no nvcc on this machine: installing {CUDA_WHEELS} (104 MB download, 271 MB on disk)", flush=True)
    installed = subprocess.run([sys.executable, "-m", "pip", "install", "-qq", CUDA_WHEELS], check=False)
    version = Machine().nvcc_version if installed.returncode == 0 else None
    if version is None:
        raise ProvisionError(
            "nvcc could not be installed. Connect this machine to PyPI, or install CUDA 13.0 and set CUDA_HOME."
        )
    return version


def _in_container() -> bool:
    """Where nothing can be fetched: no network, and a file system that is not written to."""
    return os.environ.get("SALA_RUNNER") == "docker"


def triton_is_missing() -> bool:
    return importlib.util.find_spec("triton") is None


def ensure_triton() -> None:
    """Installs Triton into this Python environment if it has none: without torch and a GPU, it compiles kernels."""
    if not triton_is_missing():
        return
    if _in_container():
        raise ProvisionError(
            "This image has no Triton (--no-torch): the rows of Table 2 that need it are not measured. "
            "`./ae build` makes an image with it."
        )
    print(f"no Triton in this environment: installing {TRITON_WHEEL} (188 MB download, 640 MB on disk)", flush=True)
    command = [sys.executable, "-m", "pip", "install", "-qq", "--retries", "1", TRITON_WHEEL]
    installed = subprocess.run(command, check=False)
    importlib.invalidate_caches()
    if installed.returncode or triton_is_missing():
        raise ProvisionError("Triton could not be installed: the rows of Table 2 that need it are not measured.")


def nvcc_of_minor(minor: str, folder: Path) -> Path:
    """nvcc of a CUDA minor ("13.1"): the one at hand if it is that minor, else from PyPI wheels kept in ``folder``.

    Raises ValueError for what is no CUDA 13 minor, ProvisionError if the wheels cannot be had.
    """
    found = find_minor(minor, folder)
    if found is not None:
        return found
    if _in_container():
        raise ProvisionError(f"CUDA {minor} is not in this image, and containers have no network: use --runner host")
    place = folder / minor
    wheels = CUDA_WHEELS if minor == "13.0" else f"cuda-toolkit[nvcc,cccl]=={minor}.*"
    print(f"installing {wheels} into {place}", flush=True)
    command = [sys.executable, "-m", "pip", "install", "-qq", "--target", str(place), wheels]
    if subprocess.run(command, check=False).returncode or not _kept(minor, folder).exists():
        shutil.rmtree(place, ignore_errors=True)
        raise ProvisionError(f"the wheels of CUDA {minor} could not be installed (pip's message is above)")
    return _kept(minor, folder)


def find_minor(minor: str, folder: Path) -> Path | None:
    """nvcc of a CUDA minor, if it is at hand or kept in ``folder``. Raises ValueError for what is no CUDA 13 minor."""
    if not re.fullmatch(r"13\.\d+", minor):
        raise ValueError(f"--cuda takes minors of CUDA 13, such as 13.0,13.1; got `{minor}`")
    try:
        found = toolchain.find()
        if found.release == minor:
            return Path(found.nvcc)
    except toolchain.ToolchainError:
        pass
    return _kept(minor, folder) if _kept(minor, folder).exists() else None


def _kept(minor: str, folder: Path) -> Path:
    return folder / minor / "nvidia" / "cu13" / "bin" / "nvcc"
