"""Shared fixtures: golden files, and skipping by what the machine can do."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files of the tests that run")
    parser.addoption("--slow", action="store_true", help="also run tests marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips what this machine cannot run; asks for the GPU and nvcc only if a test wants them."""
    reasons = {"slurm": _no_slurm, "gpu": _no_gpu, "nvcc": _no_nvcc, "engine": _no_engine}
    for marker, why in reasons.items():
        marked = [item for item in items if item.get_closest_marker(marker)]
        reason = why() if marked else None
        for item in marked if reason else []:
            item.add_marker(pytest.mark.skip(reason=reason))
    if not config.getoption("--slow"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: run with --slow"))


def _no_gpu() -> str | None:
    from reproduce.machine import Machine, Need

    return Machine().missing(Need.GPU)


def _no_slurm() -> str | None:
    from reproduce.runners import slurm_queue

    found = slurm_queue.partitions()
    return None if isinstance(found, list) else "no Slurm: .ci/slurm starts one for these tests"


def _no_engine() -> str | None:
    return None if os.environ.get("SALA_TEST_ENGINE") else "no engine to test with: .ci/engine starts one"


def _no_nvcc() -> str | None:
    from croqtile import toolchain

    try:
        toolchain.find()
    except toolchain.ToolchainError:
        return "no nvcc"
    return None


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """``golden(text)`` compares with ``golden/<module>/<test name>.txt`` beside the test module.

    ``--update-golden`` writes the file instead; a missing file fails.
    """
    module = Path(request.node.path)
    name = re.sub(r"[^\w.-]+", "_", request.node.name).strip("_")
    path = module.parent / "golden" / module.stem / f"{name}.txt"

    def compare(text: str) -> None:
        text = text if text.endswith("\n") else text + "\n"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(
                f"no golden file {path}: run pytest with --update-golden and review what it writes", pytrace=False
            )
        wanted = path.read_text(encoding="utf-8")
        if text != wanted:
            difference = difflib.unified_diff(
                wanted.splitlines(), text.splitlines(), str(path), "this run", lineterm=""
            )
            pytest.fail("\n".join(difference), pytrace=False)

    return compare
