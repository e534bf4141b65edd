"""What this machine can do: GPU, driver, nvcc, Nsight Compute, torch and Triton; each with the reason if it cannot."""

from __future__ import annotations

import enum
import hashlib
import importlib.util
import os
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from reproduce import process


class Need(enum.Enum):
    """What a measurement needs of the machine; a step that declares none runs anywhere."""

    NVCC = "nvcc"
    GPU = "gpu"
    NCU = "ncu"
    TRITON = "torch+triton"


@dataclass(frozen=True)
class Gpu:
    """One GPU as nvidia-smi reports it: clocks in MHz, power in watts, temperature in °C."""

    index: str
    name: str
    driver: str
    compute_capability: str
    sm_clock_max: str
    sm_clock: str
    power_limit: str
    temperature: str
    uuid_hash: str = ""  # tells two GPUs apart without naming them


def cores() -> int:
    """Cores that this process may use: in a container or a job fewer than the machine has."""
    return len(os.sched_getaffinity(0))


def profile_of(name: str) -> str | None:
    """The machine profile (``expected/timing``) of a GPU by its name, or None for a GPU that has none."""
    return next((profile for profile in ("h800", "h100", "h200") if profile in name.lower()), None)


def gpu_numbers(text: str, said: str) -> list[str]:
    """The numbers in ``0,1``. Raises ValueError for anything else, or a number twice; ``said`` is how it was said."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"{said}: GPUs are named by their numbers in nvidia-smi, such as 0 or 0,1")
    found = [part.lstrip("0") or "0" for part in parts]
    if len(set(found)) < len(found):
        raise ValueError(f"{said} names a GPU twice")
    return found


_QUERY = "index,name,driver_version,compute_cap,clocks.max.sm,clocks.sm,power.limit,temperature.gpu,uuid"


def _read_gpu(line: str) -> Gpu:
    fields = [field.strip() for field in line.split(",")]
    fields[-1] = hashlib.sha256(fields[-1].encode()).hexdigest()[:16]
    return Gpu(*fields)


class Machine:
    """Detected once per run and only when asked, so that a step that needs no GPU never starts nvidia-smi."""

    def __init__(self, gpu_index: str | None = None) -> None:
        self.gpu_index = gpu_index or os.environ.get("GPU") or None

    def missing(self, need: Need) -> str | None:
        """Why ``need`` cannot be met here, in a few words; None if it can."""
        if need is Need.GPU:
            return None if self.gpu else self._gpu_reason
        if need is Need.NVCC:
            return None if self.nvcc_version else "no nvcc"
        if need is Need.NCU:
            return self.missing(Need.GPU) or (None if self.ncu else "no ncu")
        lacking = [name for name in ("torch", "triton") if importlib.util.find_spec(name) is None]
        return f"no {' and '.join(lacking)}" if lacking else None

    def gpu_environment(self) -> dict[str, str]:
        """Environment of programs that use the GPU: GPU=N makes device N the only one that they see."""
        if not self.gpu_index:
            return {}
        # CUDA numbers the fastest GPU 0 unless told to count as nvidia-smi does.
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": self.gpu_index}

    @cached_property
    def _all_gpus(self) -> tuple[list[Gpu], str]:
        """Every GPU of the machine; or none, and why."""
        if not shutil.which("nvidia-smi"):
            return [], "no GPU"
        asked = process.run(["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"], timeout_s=30)
        if not asked.ok:
            return [], f"no GPU (nvidia-smi: {asked.last_line()})"
        return [_read_gpu(line) for line in asked.stdout.splitlines() if line], ""

    @property
    def gpu_indices(self) -> list[str]:
        """Numbers of all GPUs of the machine, chosen or not."""
        return [gpu.index for gpu in self._all_gpus[0]]

    @cached_property
    def _gpu_query(self) -> tuple[Gpu | None, str]:
        gpus, why = self._all_gpus
        if why:
            return None, why
        index = self.gpu_index or "0"
        chosen = [gpu for gpu in gpus if gpu.index == index]
        if not chosen:
            return None, f"no GPU {index} (there are {len(gpus)})"
        if not chosen[0].compute_capability.startswith("9."):
            return None, f"no sm_90 GPU ({chosen[0].name} is sm_{chosen[0].compute_capability.replace('.', '')})"
        return chosen[0], ""

    @property
    def gpu(self) -> Gpu | None:
        return self._gpu_query[0]

    @property
    def _gpu_reason(self) -> str:
        return self._gpu_query[1]

    @cached_property
    def ncu(self) -> Path | None:
        """Nsight Compute: $NCU, PATH, or the place where the CUDA packages put it."""
        places = [os.environ.get("NCU"), shutil.which("ncu"), "/usr/local/cuda/bin/ncu", "/usr/local/cuda-13.0/bin/ncu"]
        places += [str(path) for path in sorted(Path("/opt/nvidia/nsight-compute").glob("*/ncu"), reverse=True)]
        return next((Path(place) for place in places if place and Path(place).is_file()), None)

    @cached_property
    def nvcc_version(self) -> str | None:
        """Release of the nvcc that the compiler uses ("13.0.88"), or None."""
        from croqtile import toolchain

        try:
            return toolchain.find().version
        except toolchain.ToolchainError:
            return None
