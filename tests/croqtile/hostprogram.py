"""Compiling and running host code of the runtime without nvcc and without a GPU (see ``cuda_stub.h``)."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from croqtile import runtime, toolchain

STUB = Path(__file__).with_name("cuda_stub.h")


def cuda_headers() -> Path:
    """The include directory of the toolkit; skips the test where there is none, or no g++."""
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    try:
        root = Path(toolchain.find().nvcc).resolve().parent.parent
    except toolchain.ToolchainError:
        pytest.skip("no CUDA headers")
    return root / "include"


def build(source: str, directory: Path) -> Path:
    """``source``, preceded by the runtime and the recording CUDA runtime, as an executable."""
    text = f'{runtime.prelude()}\n#include "{STUB}"\n#line 1 "test.co"\n{source}'
    program = directory / hashlib.sha256(text.encode()).hexdigest()[:16]
    if not program.exists():
        code = directory / f"{program.name}.cpp"
        code.write_text(text, encoding="utf-8")
        command = ["g++", "-std=c++17", "-O1", "-Wall", "-Werror", "-Wno-psabi"]
        command += ["-isystem", str(cuda_headers()), str(code)]
        done = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
    return program


def run(program: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )
