"""Versions and checksums of the tools that decide results: nvcc, ptxas, the host compiler, Nsight Compute, Triton."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
from functools import cache
from pathlib import Path

from croqtile import toolchain
from reproduce import process
from reproduce.machine import Machine


def tools(machine: Machine, *, with_gpu: bool, with_nvcc: bool) -> dict[str, str]:
    """What there is, by name; what a step does not use, or this machine lacks, is left out."""
    found: dict[str, str] = {}
    if with_nvcc and machine.nvcc_version:
        found |= compilers()
    if with_gpu and machine.ncu and (version := printed_version(machine.ncu)):
        found["ncu"] = version
    for package in ("triton", "torch"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@cache
def compilers() -> dict[str, str]:
    """nvcc's files by checksum, so that a rebuilt or wrapped tool of the same version shows; and the host compiler."""
    try:
        nvcc = Path(toolchain.find().nvcc)
    except toolchain.ToolchainError:
        return {}
    found = {}
    for name in ("nvcc", "ptxas"):
        path = nvcc.resolve().with_name(name)
        if path.is_file():
            found[f"{name} sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    host = printed_version(Path("g++"))
    return {**found, **({"g++": host} if host else {})}


@cache
def printed_version(program: Path) -> str:
    """The last number such as 1.2.3 that ``PROGRAM --version`` prints; "" if there is none."""
    asked = process.run([program, "--version"], timeout_s=30)
    numbers = re.findall(r"\b\d+\.\d+(?:\.\d+)+", asked.stdout) if asked.ok else []
    return numbers[-1] if numbers else ""
