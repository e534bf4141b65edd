from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reproduce import cli, results
from reproduce.choreo import Choreo
from reproduce.html import page
from reproduce.lock import lock


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RESULTS", str(tmp_path / "results"))


def test_a_step_from_end_to_end(make_choreo: Callable[..., Choreo], tmp_path: Path) -> None:
    """In a process of its own, through a pipe: plain text, the paper's form, status 0, a valid results file."""
    environment = {**os.environ, "CHOREO": make_choreo().command[0]}
    command = [sys.executable, "-m", "reproduce", "figure2"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "\x1b" not in done.stdout
    assert "8 FA 3s 256* 224 12 256*->224 (-12%) equal" in " ".join(done.stdout.split())
    document = results.load(tmp_path / "results", "figure2")
    assert document is not None and document.complete and document.provenance["environment"]["CHOREO"]


def test_a_row_that_differs_is_status_1(make_choreo, monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    choreo = make_choreo(sizes={("conv2d_fprop_ws_1p1c", "sala"): 81920})
    monkeypatch.setenv("CHOREO", choreo.command[0])
    assert cli.main(["figure2"]) == 1
    assert "differs" in capsys.readouterr().out


def test_a_locked_step_is_status_3(make_choreo, monkeypatch, capsys, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("CHOREO", make_choreo().command[0])
    with lock(tmp_path / "results" / ".lock-figure2", "x"):
        assert cli.main(["figure2"]) == 3
    assert "is in use by another run" in capsys.readouterr().err


def test_wrong_arguments_are_one_line_and_status_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["table2", "--only", "nonsense"]) == 2
    assert capsys.readouterr().err.startswith("table2 has no rows `nonsense`")
    assert cli.main(["table2", "--only", "xcomp,nonsense"]) == 2
    assert capsys.readouterr().err.startswith("table2 has no rows `nonsense`")
    assert cli.main(["golden", "--timing", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"no results in {tmp_path}\n"
    with pytest.raises(SystemExit, match="2"):
        cli.main(["figure9"])


def test_a_compiler_that_is_not_there_is_one_line_and_status_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("CHOREO", "/nowhere/choreo")
    assert cli.main(["figure2"]) == 2
    assert capsys.readouterr().err == "CHOREO=/nowhere/choreo: there is no such program\n"
    assert not (tmp_path / "results" / "figure2.json").exists()


def test_a_place_that_cannot_be_written_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "in"
    assert cli.main(["figure2", "--results", str(place)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"cannot write {place}") and "--results DIR" in error and error.count("\n") == 1


def test_all_stops_at_once_where_it_cannot_write(
    two_steps: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Before anything is installed for a step, and not once for every step."""
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(cli, "provide", lambda *arguments: pytest.fail("something is installed"))
    assert cli.main(["all", "--results", str(tmp_path / "file" / "in")]) == 2
    assert capsys.readouterr().err.count("cannot write") == 1


def test_build_folder_that_cannot_be_written_is_not_blamed_on_the_results() -> None:
    text, status = cli.explain(OSError(errno.EROFS, "Read-only file system", str(cli.ROOT / "build" / "steps")))
    assert status == 2 and "use a clone of the project that you may write to; only the results may lie" in text


def test_a_defect_is_one_line_and_a_log(
    make_choreo: Callable[..., Choreo],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    def broken(context: object) -> list[object]:
        raise KeyError("a defect")

    monkeypatch.setenv("CHOREO", make_choreo().command[0])
    monkeypatch.setitem(cli.STEPS, "figure2", replace(cli.STEPS["figure2"], measurements=broken))
    assert cli.main(["figure2"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "KeyError: 'a defect' (a defect of this project; traceback: " in error
    assert "Traceback" in (tmp_path / "results" / "logs" / "defect.log").read_text()


def test_csv_of_no_results_and_of_one_that_cannot_be_read(
    make_choreo: Callable[..., Choreo],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    assert cli.main(["csv"]) == 2 and "run a step first" in capsys.readouterr().err
    monkeypatch.setenv("CHOREO", make_choreo().command[0])
    assert cli.main(["figure2"]) == 0
    (tmp_path / "results" / "table4.json").write_text("{")
    capsys.readouterr()
    assert cli.main(["csv"]) == 2
    out, err = capsys.readouterr()
    assert "figure2-figure2.csv" in out and "table4.json: cannot be read" in err and err.count("\n") == 1


def test_an_archive_is_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["bundle", "--out", str(tmp_path)]) == 2
    assert "it takes the name of the archive" in capsys.readouterr().err


def test_a_locale_that_knows_ascii_only(make_choreo: Callable[..., Choreo], tmp_path: Path) -> None:
    """Files are UTF-8 whatever the terminal is."""
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    environment = {**os.environ, "CHOREO": make_choreo().command[0]}
    for command, more in (("figure2", {}), ("status", ascii_only), ("csv", ascii_only), ("report", ascii_only)):
        done = subprocess.run(
            [sys.executable, "-m", "reproduce", command], env={**environment, **more}, capture_output=True
        )
        assert done.returncode == 0 and b"unreadable" not in done.stdout, done.stderr


def test_a_reader_that_has_gone_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-m", "reproduce", "list"], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.returncode == 1 and not done.stderr


def test_all_ends_with_a_summary(
    make_choreo: Callable[..., Choreo], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHOREO", make_choreo().command[0])
    monkeypatch.setattr(cli, "STEPS", {name: cli.STEPS[name] for name in ("figure2", "table4")})
    assert cli.main(["all"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Summary" in shown and re.search(r"figure2 [\d.]+ s 9 equal", shown) and "./ae csv" in shown
    assert re.search(r"[\d.]+ s in all; first verdicts after [\d.]+ s\.", shown)


@pytest.fixture
def two_steps(make_choreo: Callable[..., Choreo], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHOREO", make_choreo().command[0])
    monkeypatch.setattr(cli, "STEPS", {name: cli.STEPS[name] for name in ("figure2", "table4")})


def test_all_goes_on_after_a_step_that_fails(two_steps, monkeypatch, capsys, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    def broken(context: object) -> list[object]:
        raise KeyError("a defect")

    monkeypatch.setitem(cli.STEPS, "figure2", replace(cli.STEPS["figure2"], measurements=broken))
    assert cli.main(["all"]) == 1
    out, err = capsys.readouterr()
    assert (
        err.startswith("figure2: KeyError: 'a defect' (a defect of this project; traceback: ")
        and "Traceback" not in err
    )
    assert "KeyError" in (tmp_path / "results" / "logs" / "defect.log").read_text()
    assert re.search(r"table4 [\d.]+ s \d+ equal", " ".join(out.split()))


def test_all_goes_on_after_a_step_that_is_in_use(two_steps, capsys, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with lock(tmp_path / "results" / ".lock-figure2", "x"):
        assert cli.main(["all"]) == 3
    assert "Ablation" in capsys.readouterr().out or results.load(tmp_path / "results", "table4")


def test_a_full_disk_ends_all_and_keeps_what_there_is(two_steps, monkeypatch, capsys, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    saved = results.save
    count = []

    def save(document, folder):  # type: ignore[no-untyped-def]
        count.append(1)
        if len(count) > 3:
            raise OSError(errno.ENOSPC, "No space left on device", str(results.path_of(folder, document.step)))
        return saved(document, folder)

    monkeypatch.setattr(results, "save", save)
    assert cli.main(["all"]) == 2
    out, err = capsys.readouterr()
    path = tmp_path / "results" / "figure2.json"
    assert err.startswith(f"figure2: cannot write {path}: the disk is full") and "measured so far is kept" in err
    assert "Traceback" not in err and "were not started" in out and not (tmp_path / "results" / "table4.json").exists()
    kept = results.load(tmp_path / "results", "figure2")
    assert kept is not None and len(kept.records) == 3
    monkeypatch.setattr(results, "save", saved)
    assert cli.main(["figure2"]) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_disk_that_is_really_full(make_choreo: Callable[..., Choreo], tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("may not mount a file system here")
    try:
        command = [sys.executable, "-m", "reproduce", "figure2", "--results", str(place)]
        environment = {**os.environ, "CHOREO": make_choreo().command[0]}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 2 and "the disk is full" in done.stderr and "measured so far is kept" in done.stderr
        assert "Traceback" not in done.stderr
        assert results.load(place, "figure2") is None or not list(place.glob(".figure2*"))
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ("x", "--gpu x: GPUs are named by their numbers in nvidia-smi, such as 0 or 0,1"),
        ("GPU-12ab", "--gpu GPU-12ab: GPUs are named by their numbers in nvidia-smi, such as 0 or 0,1"),
        ("9", "--gpu 9: there is no GPU 9; this machine has GPUs 0, 1"),
        ("0,0", "--gpu 0,0 names a GPU twice"),
        ("1,01", "--gpu 1,01 names a GPU twice"),
        ("0,1", "--gpu 0,1: a step uses one GPU; `all` spreads steps over several"),
    ],
)
def test_gpus_that_cannot_be_used(monkeypatch, capsys, chosen: str, message: str) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(cli.Machine, "gpu_indices", property(lambda machine: ["0", "1"]))
    assert cli.main(["figure3", "--gpu", chosen]) == 2
    assert capsys.readouterr().err == f"{message}\n"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("first", "GPU=first: GPUs are named by their numbers in nvidia-smi, such as 0 or 0,1"),
        ("0,0", "GPU=0,0 names a GPU twice"),
        ("0,9", "GPU=0,9: there is no GPU 9; this machine has GPUs 0, 1"),
    ],
)
def test_a_gpu_setting_that_cannot_be_used(monkeypatch, capsys, setting: str, message: str) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(cli.Machine, "gpu_indices", property(lambda machine: ["0", "1"]))
    monkeypatch.setenv("GPU", setting)
    assert cli.main(["all", "--dry-run"]) == 2
    assert capsys.readouterr().err == f"{message}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("soundness --seeds abc", "--seeds abc: a number from 1 to 999999 is needed"),
        ("soundness --seeds=-1", "--seeds -1: a number from 1 to 999999 is needed"),
        ("all --seeds 0", "--seeds 0: a number from 1 to 999999 is needed"),
        ("verify nonsense", "verify compares exact or timing results; got `nonsense`"),
        ("golden", "no results in {}: run a step first, for example ./ae figure2"),
        ("golden table2", "no results in {}: run a step first, for example ./ae table2"),
        ("golden figure3", "figure3 has no exact reference, since it needs a GPU: --timing makes a GPU's profile"),
        ("golden nothing", "there is no step `nothing`: figure2, table4, "),
        ("status --results {}/file", "{}/file is a file: --results and RESULTS take a folder"),
    ],
)
def test_wrong_words_are_one_line(words: str, message: str, tmp_path: Path, capsys, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("RESULTS", str(tmp_path))
    (tmp_path / "file").touch()
    assert cli.main([word.format(tmp_path) for word in words.split()]) == 2
    out, err = capsys.readouterr()
    assert err.startswith(message.format(tmp_path)) and err.count("\n") == 1 and not out


@pytest.mark.parametrize("command", ["status", "csv", "verify timing", "golden", "bundle", "figure2 --dry-run"])
@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b'{"format": 1}'])
def test_damaged_results_are_one_line(command: str, content: bytes, tmp_path: Path, capsys, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("COLUMNS", "500")
    monkeypatch.setattr(page, "write", lambda steps, folder, out: folder / "report" / "report.html")
    (tmp_path / "figure2.json").write_bytes(content)
    shows_all = command.split()[0] in ("status", "figure2")
    assert cli.main([*command.split(), "--results", str(tmp_path)]) == (0 if shows_all else 2)
    out, err = capsys.readouterr()
    assert "figure2.json: " in (out if shows_all else err) and "defect" not in err
    assert (tmp_path / "figure2.json").read_bytes() == content


def test_the_guides_check_option(two_steps, capsys) -> None:  # type: ignore[no-untyped-def]
    assert cli.main(["figure2", "--check"]) == 0
    assert capsys.readouterr().out.startswith("Every run checks its outputs")


def test_verify_timing_without_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["verify", "timing"]) == 2
    assert "run figure3, table3 or fa on a GPU first" in capsys.readouterr().out


def test_list_names_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(cli.STEPS) and lines[0].startswith("figure2") and "needs nothing" in lines[0]


def test_commands_start_without_compiler_and_engine() -> None:
    """They are imported by what uses them: a third of a second, twice per `./ae` command."""
    code = "import sys, reproduce.cli; print({'lark', 'hb_analyzer.decide', 'pandas', 'matplotlib'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_step_beside_others_has_the_options_of_all(tmp_path: Path) -> None:
    words = ["all", "--gpu", "0,1", "--fresh", "--show-race", "--only", "xcomp", "--seeds", "7", "--cuda", "13.0,13.1"]
    options = cli._parser().parse_args(words)
    job = cli._job(cli.STEPS["table2"], options, tmp_path)
    again = cli._parser().parse_args(job.command[3:])
    for name in ("fresh", "show_race", "only", "seeds", "cuda"):
        assert getattr(again, name) == getattr(options, name)
    assert again.steps == ["table2"] and again.results == str(tmp_path)


def test_the_status_of_a_folder_that_is_not_there_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status", "--results", str(tmp_path / "typo")]) == 0
    assert "typo (does not exist); times in UTC" in " ".join(capsys.readouterr().out.split())
