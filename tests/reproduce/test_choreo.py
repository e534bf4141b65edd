from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reproduce import kernels
from reproduce.choreo import Choreo, read_allocation
from reproduce.process import Finished

LINE = "cudaFuncAttributeMaxDynamicSharedMemorySize is set to `{}`\n"


def finished(stderr: str, returncode: int = 0) -> Finished:
    return Finished(("choreo",), returncode, "", stderr, 0.1)


def test_the_allocation_line() -> None:
    found = read_allocation(finished("warning: x\n" + LINE.format(98304)))
    assert (found.bytes, found.out_of_bound) == (98304, False)
    # The line may be broken, as the published compiler prints it.
    broken = LINE.format(98304).replace("is set", "is\nset")
    assert read_allocation(finished(broken)).bytes == 98304


def test_no_line_two_lines_and_a_failure_are_no_allocation() -> None:
    assert read_allocation(finished("")).message == "0 allocation lines on stderr, expected one"
    assert read_allocation(finished(LINE.format(1) + LINE.format(2))).bytes is None
    failed = read_allocation(finished("k.co:3:4: error: unknown name `x`\n", 1))
    assert (failed.bytes, failed.message) == (None, "k.co:3:4: error: unknown name `x`")
    # A size printed before a failure is not a result.
    assert read_allocation(finished(LINE.format(98304) + "error: other\n", 1)).bytes is None


def test_out_of_bound() -> None:
    text = (
        "choreo: note\nk.co:1:1: error: shared memory OUT OF BOUND: kernel 'f' needs 262144 bytes of shared memory and "
        "128 for alignment; a block has at most 232448\n  q_s 32768\n"
    )
    found = read_allocation(finished(text, 1))
    assert found.out_of_bound and found.bytes == 262144
    assert found.message.startswith("k.co:1:1: error: shared memory OUT OF BOUND") and "q_s" in found.message
    assert read_allocation(finished("error: shared memory OUT OF BOUND\n", 1)).bytes is None


def test_choreo_names_another_compiler(monkeypatch: pytest.MonkeyPatch, make_choreo: Callable[..., Choreo]) -> None:
    monkeypatch.delenv("CHOREO", raising=False)
    assert Choreo.from_environment().own
    other = make_choreo()
    monkeypatch.setenv("CHOREO", other.command[0])
    assert Choreo.from_environment() == other
    found = other.allocate(kernels.source("fa_tuned_1p2c"), sala=False, log=None)
    assert found.bytes == 196608


def test_a_missing_compiler_says_so(tmp_path: Path) -> None:
    gone = Choreo((str(tmp_path / "choreo"),), own=False)
    found = gone.allocate(Path("x.co"), sala=True, out=os.devnull, log=None)
    assert found.bytes is None and "cannot start" in found.message
