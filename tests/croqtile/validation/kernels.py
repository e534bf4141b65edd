"""A kernel and its PTX for tests without nvcc: ``gemm.ptx.gz`` is what nvcc 13.0 makes of ``KERNEL``, without the other
kernels of the file. ``pytest --update-golden`` with nvcc writes it again."""

from __future__ import annotations

import functools
import gzip
from pathlib import Path

from croqtile.driver import Compilation, compile_file, generate
from croqtile.validation.ptx import find_entry
from croqtile.validation.validate import Validator

ROOT = Path(__file__).parents[3]
KERNEL = ROOT / "kernels" / "matmul" / "matmul_f16_dyn_sm90_warpspec_1p2c.co"
FIXTURE = Path(__file__).parent / "gemm.ptx.gz"
FUNCTION = "__choreo_device_matmul"


@functools.cache
def compilation(path: Path = KERNEL, sala: bool = True) -> Compilation:
    return compile_file(path, {}, sala)


@functools.cache
def cuda(path: Path = KERNEL, sala: bool = True) -> str:
    return generate(compilation(path, sala))


@functools.cache
def validator(path: Path = KERNEL, sala: bool = True) -> Validator:
    return Validator(compilation(path, sala).analyses[0], cuda(path, sala))


@functools.cache
def module() -> str:
    return gzip.decompress(FIXTURE.read_bytes()).decode()


def trimmed(text: str) -> str:
    """The header of a module and the kernel alone."""
    _, _, end = find_entry(text, FUNCTION)
    return text[: end + 1] + "\n"


def problem(text: str) -> str:
    """The first problem of a module, or ""."""
    problems = validator().validate(text, first_only=True).problems
    return str(problems[0]) if problems else ""
