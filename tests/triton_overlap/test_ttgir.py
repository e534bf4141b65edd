"""TTGIR goes through Triton, which may be missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from triton_overlap.__main__ import main


def test_without_triton_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "triton"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "triton", None)
    file = tmp_path / "kernel.ttgir"
    file.write_text("module {}\n")
    assert main([str(file)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.endswith("which is not installed: pip install triton==3.6.0\n")
