"""The page on the tile language tells the truth: its code compiles, and its commands run.

The first block is a whole program, with one `{ … }` for each of the blocks after it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from croqtile.cli import main
from croqtile.options import parse as parse_options
from croqtile.parse import parse
from croqtile.preprocess import preprocess

PAGE = (Path(__file__).parents[2] / "docs" / "tile-language.md").read_text(encoding="utf-8")
PROGRAM, *FRAGMENTS = re.findall(r"^```choreo\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = re.findall(r"^ {4}choreo (.*?)(?:  +#.*)?$", PAGE, re.MULTILINE)
STATEMENTS = re.findall(r"`([a-z][^`]*;)`", PAGE)


@pytest.fixture
def page_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's program as kernel.co, in the working directory."""
    text = PROGRAM
    for fragment in FRAGMENTS:
        text = text.replace("{ … }", "{\n" + fragment + "}", 1)
    path = tmp_path / "kernel.co"
    path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return path


def test_every_block_is_checked() -> None:
    assert PAGE.count("```") == 2 * (1 + len(FRAGMENTS)), "a block that is not marked as choreo"
    assert PROGRAM.count("{ … }") == len(FRAGMENTS) > 0


def test_the_program_compiles(page_program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "…" not in page_program.read_text(encoding="utf-8")
    assert main(["-gs", "kernel.co", "-o", "script"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(r"cudaFuncAttributeMaxDynamicSharedMemorySize is set to `\d+`\n", said.err), "and no warning"


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command: str, page_program: Path) -> None:
    arguments = command.split()
    options = parse_options(arguments)
    assert options.input == "kernel.co"
    if options.mode != "executable":  # those need nvcc
        assert main(arguments) == 0


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_in_the_text(statement: str, tmp_path: Path) -> None:
    path = tmp_path / "statement.co"
    path.write_text(f"__co__ void f(global f16 [M, K] x) {{\n{statement.replace('…', '0')}\n}}\n", encoding="utf-8")
    (function,) = preprocess(str(path), ()).all_functions()
    assert len(parse(function).body) >= 1


def test_there_is_something_to_test() -> None:
    assert len(COMMANDS) >= 5
    assert len(STATEMENTS) >= 5
