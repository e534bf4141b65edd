"""Installs what exact results need on a bare machine: nvcc 13.0 from the pinned PyPI wheels."""

from __future__ import annotations

import subprocess
import sys

from reproduce.machine import Machine

# The wheels of CUDA 13.0.88, whose nvcc, ptxas and cicc are those of the system package. The same pin is the extra
# `cuda` of pyproject.toml.
CUDA_WHEELS = "cuda-toolkit[nvcc,cccl]==13.0.3.0"


class ProvisionError(Exception):
    """nvcc could not be installed; the message says what to do."""


def ensure_nvcc() -> str:
    """The version of nvcc; installs the wheels into this Python environment first if the machine has none."""
    version = Machine().nvcc_version
    if version is not None:
        return version
    print(f"no nvcc on this machine: installing {CUDA_WHEELS} (104 MB download, 271 MB on disk)", flush=True)
    installed = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", CUDA_WHEELS], check=False)
    version = Machine().nvcc_version if installed.returncode == 0 else None
    if version is None:
        raise ProvisionError(
            "nvcc could not be installed. Connect this machine to PyPI, or install CUDA 13.0 and set CUDA_HOME."
        )
    return version
