"""What ``./ae`` says of a wrong command line: what, in which command, and where the right one is listed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from invoke.parser.context import ParserContext

from reproduce import ROOT
from reproduce.command_line import share_options


def ae(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tasks.py"), *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("figure2 --fesh", "figure2 has no option `--fesh`; did you mean `--fresh`?\n    ./ae figure2 --help"),
        ("figure2 --qqq=3", "figure2 has no option `--qqq`\n    ./ae figure2 --help"),
        ("figure2 extra", "figure2 has no argument `extra`\n"),
        ("table2 --show-race=1", "table2 has no argument `1`\n"),
        ("figure2 --dry-run --results", "figure2: --results needs a value\n    ./ae figure2 --help"),
        (
            "--dry-run",
            "./ae has no option `--dry-run` of its own: it goes behind a command, as in `./ae all --dry-run`",
        ),
        ("--nonsense", "./ae has no option `--nonsense`\n    ./ae --help"),
        ("figure2 --runner nowhere", "there is no runner `nowhere`"),
        ("figure2 --runner host --slurm partition=p", "with --runner host there are none: leave one of them out"),
        ("figure2 --results a table4 --results b", "--results holds for every command of the line, and is `a` and `b`"),
        ("figure2 --dry-run clean", "clean has no --dry-run and would really run: give the commands one by one"),
    ],
)
def test_a_wrong_command_line(words: str, message: str) -> None:
    done = ae(*words.split())
    assert done.returncode == 2 and message in done.stderr and not done.stdout, done.stderr
    assert "Traceback" not in done.stderr


def test_help_names_the_script() -> None:
    assert ae("figure2", "--help").stdout.startswith("Usage: ./ae ") and "--fresh" in ae("figure2", "--help").stdout


def test_modules_in_the_callers_folder_are_not_run(tmp_path: Path) -> None:
    """It may hold anything: another copy of the project, or a file that is called like a library."""
    for name in ("rich.py", "invoke.py", "reproduce.py", "json.py"):
        (tmp_path / name).write_text("raise SystemExit('a module of the caller')\n")
    done = ae("steps", cwd=tmp_path)
    assert done.returncode == 0 and "figure2" in done.stdout, done.stderr


def test_a_dry_run_for_another_place_says_whose_gpu_it_counts(tmp_path: Path) -> None:
    done = ae("figure2", "--runner", "slurm", "--dry-run", "--results", str(tmp_path / "results"))
    assert done.returncode == 0 and "are those of this machine" in done.stderr and "16 to measure" in done.stdout


def test_common_options_hold_for_every_command_of_the_line(tmp_path: Path) -> None:
    """Wherever they stand. Nothing must run here: not a command before `--dry-run`, and none after it."""
    for words in ("figure2 table4 --dry-run --results {0}", "figure2 --dry-run table4 --results {0}"):
        done = ae(*words.format(tmp_path / "results").split())
        assert done.returncode == 0 and done.stdout.count("Nothing was run or written") == 2, done.stdout + done.stderr
        assert "0 kept" in done.stdout and not list(tmp_path.iterdir())


def test_other_options_hold_for_their_own_command() -> None:
    done = ae("correctness", "--only", "gemm", "table2", "--only", "tawa", "--dry-run")
    assert done.returncode == 0 and "correctness\n" in done.stdout and "tawa/" in done.stdout, done.stderr
    assert "attention" not in done.stdout and "xcomp/" not in done.stdout


def test_a_folder_of_results_does_not_tell_clean_to_remove_results() -> None:
    step, clean = ParserContext("figure2"), ParserContext("clean")
    step.add_arg("results", kind=str)
    clean.add_arg("results", kind=bool)
    step.args["results"].value = "a"
    share_options([step, clean])
    assert clean.args["results"].value is None
