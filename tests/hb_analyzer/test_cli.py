"""The command: every subcommand, its JSON, its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hb_analyzer.cli import main
from hb_analyzer.examples import DIRECTORY, example_paths
from tests.hb_analyzer.patterns import KV_BUFFERS, document, kv_roles

KV = str(DIRECTORY / "choreo_fa_kv.json")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def run_json(run: Run) -> Callable[..., Any]:
    def call(*arguments: str) -> Any:
        code, out, err = run(*arguments, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)

    return call


def test_pattern_text(run: Run, golden: Callable[[str], None]) -> None:
    code, out, _ = run("pattern", "choreo_fa_kv")
    assert code == 0
    golden(out)


def test_pattern_text_of_a_kernel_with_loops_slots_and_a_barrier(run: Run, golden: Callable[[str], None]) -> None:
    golden(run("pattern", "choreo_gemm_1p3c")[1])


def test_pattern_text_of_a_file_with_defects(run: Run, golden: Callable[[str], None]) -> None:
    golden(run("pattern", str(Path(__file__).parent / "hazards" / "fewer_arrivals_than_consumers_racy.json"))[1])


def test_pattern_text_of_the_ablation(run: Run, golden: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBA_NO_ACYCLIC", "1")
    golden(run("pattern", "choreo_fa_kv")[1])


def test_pattern_json(run_json: Callable[..., Any]) -> None:
    found = run_json("pattern", KV)
    assert {
        "kernel": "fa_kv_overlap",
        "framework": "choreo",
        "smem_baseline": 40960,
        "smem_optimized": 32768,
        "lower_bound": 32768,
        "savings_bytes": 8192,
        "savings_pct": 20.0,
        "overlaps": [["K_s", "O_s", True], ["K_s", "V_s", False], ["O_s", "V_s", True]],
        "deadlocks": [],
        "overruns": [],
        "races": [],
        "groups": [["K_s", "O_s"]],
        "ablation": False,
    }.items() <= found.items()
    (refusal,) = found["refusals"]
    assert (refusal["pair"], refusal["kind"]) == (["K_s", "V_s"], "conflict")
    assert refusal["first"] and refusal["second"] and refusal["why"]
    assert found["phases"][3] == {
        "role": "consumer",
        "label": "use K",
        "loop": ["loop"],
        "waits": ["k_full"],
        "triggers": ["k_empty"],
        "buffers": ["K_s"],
    }
    assert found["placement"]["O_s"] == {"offset": 0, "size": 8192}
    assert {"kind": "carried", "name": "k_empty", "from": "consumer: use K", "to": "producer: load K"}.items() <= next(
        edge for edge in found["edges"] if edge["kind"] == "carried"
    ).items()


def test_compare(run: Run, golden: Callable[[str], None]) -> None:
    golden(run("compare", KV, "persistent_gemm", "persistent_gemm_epilogue_event", "cutlass_pingpong_64x128_4s")[1])


def test_compare_json(run_json: Callable[..., Any]) -> None:
    assert [entry["kernel"] for entry in run_json("compare", KV, KV)] == ["fa_kv_overlap"] * 2


def test_all_examples(run: Run) -> None:
    code, out, _ = run("all-examples")
    assert code == 0
    first = out.index("\nPhases")
    for path in example_paths():
        kernel = json.loads(path.read_text())["kernel"]
        assert kernel in out[:first], "in the comparison"
        assert f"\n{kernel}  (" in out, "and as a report of its own"
    assert "expected" in out[:first]


def test_all_examples_json(run_json: Callable[..., Any]) -> None:
    assert len(run_json("all-examples")) == len(example_paths())


def test_explain_a_conflict(run: Run, golden: Callable[[str], None]) -> None:
    golden(run("explain", KV, "V_s", "K_s")[1])


def test_explain_an_overlap(run: Run) -> None:
    code, out, _ = run("explain", KV, "K_s", "O_s")
    assert code == 0
    assert "fa_kv_overlap: K_s and O_s may overlap" in out
    assert "consumer: epilogue: may write O_s" in out.split("Path 1")[1]


def test_explain_json(run_json: Callable[..., Any]) -> None:
    found = run_json("explain", "persistent_gemm", "lhs_s", "out_s")
    assert (found["pair"], found["overlap"], found["kind"]) == (["lhs_s", "out_s"], False, "conflict")
    steps = found["interleaving"]
    assert [step["step"] for step in steps] == list(range(1, len(steps) + 1))
    assert {"role", "iteration", "operation"} <= set(steps[0])
    assert found["parameters"]["N_tile"] == 2
    assert run_json("explain", KV, "K_s", "O_s")["proof"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("K_s", "Q_s"), 'no buffer "Q_s" in it (it has: K_s, V_s, O_s)'),
        (("K_s", "K_s"), '"K_s" twice: a pair has two different buffers'),
    ],
)
def test_explain_needs_two_buffers(run: Run, names: tuple[str, str], message: str) -> None:
    assert run("explain", KV, *names) == (2, "", f"error: {KV}: {message}\n")


def test_explain_and_timeline_never_use_the_ablation(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HBA_NO_ACYCLIC", "1")
    assert "may not overlap (conflict)" in run("explain", KV, "K_s", "V_s")[1]
    run("timeline", KV, "-o", str(tmp_path / "k.svg"))
    assert "→ 32768 B" in (tmp_path / "k.svg").read_text()


def test_dot(run: Run, run_json: Callable[..., Any], tmp_path: Path) -> None:
    code, out, _ = run("dot", KV)
    assert (code, out.startswith("digraph")) == (0, True)
    assert run_json("dot", KV) == {"dot": out}
    file = tmp_path / "k.dot"
    assert run("dot", KV, "-o", str(file)) == (0, f"wrote {file}\n", "")
    assert file.read_text() == out


def test_timeline(run: Run, run_json: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "k.svg"
    assert run("timeline", KV, "-o", str(file)) == (0, f"wrote {file}\n", "")
    short = file.read_text()
    assert run_json("timeline", KV, "-o", str(file), "--set", "N=5") == {"output": str(file)}
    assert len(file.read_text()) > len(short)


@pytest.mark.parametrize("command", ["dot", "timeline"])
def test_the_input_is_not_overwritten(run: Run, tmp_path: Path, command: str) -> None:
    file = tmp_path / "kernel.json"
    file.write_text(Path(KV).read_text())
    code, out, error = run(command, str(file), "-o", str(tmp_path / "." / "kernel.json"))
    assert (code, out) == (2, "") and "is the input file: it would be overwritten" in error
    assert file.read_text() == Path(KV).read_text()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("M=3", '--set: no trip count "M" (known: N)'),
        ("N", '--set: "N": expected N=COUNT with a count of at most 64'),
        ("N=1000", '--set: "N=1000": expected N=COUNT with a count of at most 64'),
    ],
)
def test_bad_trip_counts(run: Run, tmp_path: Path, setting: str, message: str) -> None:
    file = tmp_path / "k.svg"
    assert run("timeline", KV, "-o", str(file), "--set", setting) == (2, "", f"error: {message}\n")
    assert not file.exists()


def test_output_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "no" / "k.svg"
    assert run("timeline", KV, "-o", str(file)) == (2, "", f"error: {file}: No such file or directory\n")


def test_ptx(run: Run, run_json: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "k.ptx"
    file.write_text(".version 8.8\n.visible .entry k()\n{\n bar.sync 0;\n ret;\n}\n")
    code, out, _ = run("ptx", str(file))
    assert (code, "bar.sync" in out) == (0, True)
    assert run_json("ptx", str(file)) == [
        {"kernel": "k", "static_shared_bytes": 0, "instructions": {"barrier": {"bar.sync": 1}}}
    ]


@pytest.mark.parametrize("command", [["pattern"], ["compare"], ["dot"], ["ptx"], ["timeline", "-o", "x.svg"]])
def test_a_missing_file(run: Run, command: list[str]) -> None:
    assert run(*command, "missing/k.json") == (2, "", "error: missing/k.json: No such file or directory\n")


def test_a_malformed_file_is_one_line(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "k.json"
    value = document(kv_roles(), KV_BUFFERS)
    value["shared_buffers"]["K_s"]["size_bytes"] = "16K"
    file.write_text(json.dumps(value))
    for command in (["pattern", str(file)], ["pattern", str(file), "--json"], ["compare", KV, str(file)]):
        code, out, err = run(*command)
        assert (code, out) == (2, "")
        assert err == f'error: {file}: $.shared_buffers.K_s.size_bytes: expected an integer, got "16K"\n'


def test_arguments_that_do_not_parse(run: Run) -> None:
    for arguments in ([], ["nothing"], ["pattern"], ["explain", KV, "K_s"]):
        with pytest.raises(SystemExit) as caught:
            run(*arguments)
        assert caught.value.code == 2


def test_as_a_module_from_anywhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hb_analyzer", "pattern", "choreo_fa_kv.json", "--json"]
    root = str(Path(__file__).parents[2])
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": root}, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["smem_optimized"] == 32768


def test_a_terminal_without_unicode(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hb_analyzer", "pattern", KV]
    env = {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    command = f'"{sys.executable}" -m hb_analyzer all-examples | head -1'
    env = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], env=env, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_output_that_cannot_be_written_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "hb_analyzer", "pattern", "choreo_fa_kv.json"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and done.stderr == "error: standard output: No space left on device\n"


def test_simulate_a_program_that_cannot_be_run(run: Run, tmp_path: Path) -> None:
    roles = kv_roles()
    roles["producer"][0]["signal_in"] = {"event": "k_empty", "slot": 1}
    file = tmp_path / "slots.json"
    file.write_text(json.dumps(document(roles, KV_BUFFERS, events={"k_empty": {"slots": 1}})))
    for more in ((), ("--exhaustive",)):
        code, out, error = run("simulate", str(file), *more)
        assert (code, out) == (2, "") and "cannot be run: producer: slot 1 of event k_empty is out of range" in error


def test_simulate_a_program_that_is_too_long(run: Run) -> None:
    code, out, error = run("simulate", "persistent_gemm", "--set", "N_k=64", "--set", "N_tile=64")
    assert (code, out) == (2, "") and "too long to be run at these trip counts: smaller ones with --set" in error
