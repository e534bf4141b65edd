from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from reproduce import versions
from tests.reproduce.conftest import FakeMachine


def program(folder: Path, text: str) -> Path:
    path = folder / "tool"
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_version_that_a_program_prints(tmp_path: Path) -> None:
    path = program(tmp_path, "echo 'NVIDIA (R) Nsight Compute'; echo 'Version 2025.3.1.0 (build 36398880)'")
    assert versions.printed_version(path) == "2025.3.1.0"
    assert versions.printed_version(tmp_path / "none") == ""


def test_only_what_a_step_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "compilers", lambda: {"nvcc sha256": "aa"})
    monkeypatch.setattr(importlib.metadata, "version", lambda name: {"triton": "3.6.0"}[name])
    path = program(tmp_path, "echo Version 2025.3.1")

    def missing(name: str) -> str:
        if name == "triton":
            return "3.6.0"
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "version", missing)
    machine = FakeMachine("NVIDIA H200", "13.0.88", path)
    assert versions.tools(machine, with_gpu=False, with_nvcc=False) == {"triton": "3.6.0"}
    found = versions.tools(machine, with_gpu=True, with_nvcc=True)
    assert found == {"triton": "3.6.0", "nvcc sha256": "aa", "ncu": "2025.3.1"}
    assert "nvcc sha256" not in versions.tools(FakeMachine(), with_gpu=True, with_nvcc=True)


@pytest.mark.nvcc
def test_checksums_of_the_toolchain() -> None:
    found = versions.compilers()
    assert len(found["ptxas sha256"]) == 64 and found["nvcc sha256"] != found["ptxas sha256"]
