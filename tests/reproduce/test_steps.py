"""The steps on a stand-in compiler: what they call, what they conclude, what they say about what they cannot do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reproduce.choreo import Choreo
from reproduce.execute import execute
from reproduce.results import Document
from reproduce.running import outcome
from reproduce.step import Context, Options
from reproduce.steps import STEPS
from reproduce.tables import Cell, Row
from tests.reproduce.conftest import FakeMachine
from tests.reproduce.test_ncu import VALUES, output

GPU = FakeMachine("NVIDIA H200", "13.0.88")


@pytest.fixture
def run(make_context: Callable[..., Context], quiet) -> Callable[..., Document]:  # type: ignore[no-untyped-def]
    def run_step(name: str, choreo: Choreo, machine: FakeMachine | None = None, **options: object) -> Document:
        context = make_context(name, choreo, machine, Options(fresh=True, **options))  # type: ignore[arg-type]
        return execute(STEPS[name], context, quiet)

    return run_step


def rows(document: Document, table: int = 0) -> dict[str, Row]:
    return {row.label: row for row in document.tables[table].rows}


def cell(document: Document, label: str, column: str) -> Cell:
    return rows(document)[label].cells[column]


def test_figure_2_with_the_papers_bytes(run, make_choreo, calls) -> None:  # type: ignore[no-untyped-def]
    document = run("figure2", make_choreo())
    assert [row.verdict for row in rows(document).values()] == ["equal"] * 9 and outcome(document) == 0
    assert len(calls()) == 14  # seven kernels, two modes
    starred = rows(document)["8 FA 3s"]
    assert starred.cells["base"].value == 262144 and starred.cells["base"].reason == "does not compile"
    assert "shared memory OUT OF BOUND" in starred.notes[0]


def test_figure_2_with_one_other_byte(run, make_choreo) -> None:  # type: ignore[no-untyped-def]
    kernel = "matmul_f16_dyn_sm90_warpspec_1p2c"
    document = run("figure2", make_choreo(sizes={(kernel, "sala"): 98305}))
    assert rows(document)["3 1P2C f16"].verdict == "differs" and outcome(document) == 1


def test_figure_2_judges_the_star(run, make_choreo) -> None:  # type: ignore[no-untyped-def]
    """A baseline that compiles where the paper's does not, and the other way round."""
    document = run("figure2", make_choreo(sizes={("fa_3s", "base"): 229376, ("fa_tuned_1p2c", "base"): 262144}))
    assert rows(document)["8 FA 3s"].verdict == "differs"
    assert rows(document)["7 FA tuned"].verdict == "differs"


def test_figure_2_with_a_hanging_compiler(run, make_choreo, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("reproduce.choreo.COMPILE_LIMIT_S", 1.0)
    document = run("figure2", make_choreo(hang=("conv2d_fprop_ws_1p1c",)))
    verdicts = [row.verdict for row in rows(document).values()]
    assert verdicts == ["equal"] * 8 + ["no run"] and outcome(document) == 1


def test_table_4_refuses_without_a_barrier_and_shows_the_unsound_ablation(run, make_choreo) -> None:  # type: ignore[no-untyped-def]
    document = run("table4", make_choreo())
    safety = {row.label: row for row in document.tables[1].rows}
    ablation = safety["+HB w/o acyclic"]
    assert ablation.cells["overlap"].value is True and ablation.cells["sound"].value is False
    assert "refuted by the complete analysis: K_s and V_s stay apart (conflict)" in ablation.notes[0]
    assert safety["+HB w/ acyclic"].cells["safe_pairs"].value == 2


def test_steps_without_a_gpu_say_so_in_every_cell(run, make_choreo, calls) -> None:  # type: ignore[no-untyped-def]
    for name in ("figure3", "fa", "correctness"):
        document = run(name, make_choreo(), FakeMachine(nvcc="13.0.88"))
        cells = [each for row in document.tables[0].rows for each in row.cells.values() if each.value != "-"]
        assert {(each.status, each.reason) for each in cells} == {("not measured", "no GPU")}
        assert outcome(document) == 0 and calls() == []


def test_table_2_without_ncu_takes_the_launch_request(run, make_choreo) -> None:  # type: ignore[no-untyped-def]
    document = run("table2", make_choreo(), FakeMachine(nvcc="13.0.88"), only=("xcomp",))
    assert cell(document, "1P1C 64x128 4s", "base").value == "115.7"
    assert rows(document)["1P3C GEMM"].verdict == "equal"
    assert cell(document, "FA 3s", "base").value == "does not compile"
    assert cell(document, "1P3C GEMM", "source").value == "launch request"


def test_table_2_with_ncu(run, make_choreo, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "answer").write_text(output({**VALUES, "dynamic": "99328"}))
    ncu = tmp_path / "ncu"
    ncu.write_text(f"#!/bin/bash\ncat {tmp_path}/answer\n")
    ncu.chmod(0o755)
    document = run("table2", make_choreo(), FakeMachine("NVIDIA H200", "13.0.88", ncu), only=("xcomp",))
    assert (
        cell(document, "1P2C GEMM", "sala").verdict == "equal" and cell(document, "1P2C GEMM", "source").value == "ncu"
    )
    assert cell(document, "1P2C GEMM", "base").verdict == "differs"  # ncu's word counts, not the request


def test_table_2_of_an_unknown_group(run, make_choreo) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="table2 has no rows `triton`: it has xcomp"):
        run("table2", make_choreo(), only=("triton",))


def test_table_3_without_ncu(run, make_choreo) -> None:  # type: ignore[no-untyped-def]
    document = run("table3", make_choreo(registers=72), FakeMachine(nvcc="13.0.88"))
    row = rows(document)["1P1C 64x128 4s"]
    found = [row.cells[name].value for name in ("regs_base", "regs_sala", "spills", "ctas_base", "ctas_sala")]
    assert found == [72, 72, 0, 1, 2]
    assert row.cells["active_sala"].status == "not measured" and row.verdict == "equal, in part"
    assert cell(document, "FA 3s", "ctas_base").value == "does not compile"


def test_table_3_registers_above_the_papers_differ(run, make_choreo) -> None:  # type: ignore[no-untyped-def]
    document = run("table3", make_choreo(registers=97), FakeMachine(nvcc="13.0.88"))
    assert cell(document, "1P2C GEMM", "regs_sala").verdict == "differs"


def test_figure_3_takes_the_programs_word(run, make_choreo, calls) -> None:  # type: ignore[no-untyped-def]
    document = run("figure3", make_choreo(), GPU)
    row = rows(document)["4s 64x128 (f16)"]
    assert row.cells["base"].value == 114.688 and row.cells["sala"].value == 98.304
    assert row.cells["ratio"].value == round(98.304 / 114.688, 4) and row.cells["identical"].value is True


@pytest.mark.parametrize(
    ("program", "verdict", "reason"),
    [
        ("exit 3", "no run", "exit status 3"),
        ("echo 'Test FAILED'; echo 'error: element 5 is wrong' >&2; exit 1", "failed", "error: element 5 is wrong"),
        ("kill -SEGV $$", "no run", "exit status -11"),
    ],
)
def test_a_program_that_fails_is_its_rows_verdict(run, make_choreo, program: str, verdict: str, reason: str) -> None:  # type: ignore[no-untyped-def]
    document = run("figure3", make_choreo(program=program), GPU)
    row = rows(document)["4s 64x128 (f16)"]
    assert row.verdict == verdict and row.cells["base"].reason.startswith(reason) and outcome(document) == 1


def test_a_hung_kernel_ends_as_no_run_and_the_next_row_runs(run, make_choreo, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("reproduce.programs.RUN_LIMIT_S", 1.0)
    hang = 'case "$0" in *1p2c*) sleep 60;; esac'
    document = run("figure3", make_choreo(program=hang), GPU)
    assert rows(document)["1P2C GEMM (3s)"].verdict == "no run"
    assert "no end after 1 s" in rows(document)["1P2C GEMM (3s)"].cells["base"].reason
    assert rows(document)["1P3C GEMM (2s)"].cells["sala"].value == 81.92


def test_correctness_compares_bits_of_both_modes(run, make_choreo) -> None:  # type: ignore[no-untyped-def]
    document = run("correctness", make_choreo(), GPU, only=("conv",))
    assert [row.verdict for row in rows(document).values()] == ["equal", "equal"]
    other = "echo \"checksum: $(echo $0 | grep -q sala && echo bb || echo aa)\"; echo 'Test Passed'; exit 0"
    document = run("correctness", make_choreo(program=other.replace("echo 'Test Passed'", "true")), GPU, only=("conv",))
    assert {row.verdict for row in rows(document).values()} == {"no run"}  # no `Test Passed`, no pass


def test_registers(run, make_choreo) -> None:  # type: ignore[no-untyped-def]
    document = run("registers", make_choreo(), FakeMachine(nvcc="13.0.88"))
    row = rows(document)["matmul_f16_dyn_sm90_warpspec_1p1c_64x128_4s"]
    assert [row.cells[f"ctas_{mode}"].value for mode in ("base", "sala")] == [1, 2]
    assert rows(document)["fa_3s"].cells["registers_base"].value == "does not compile"
    with pytest.raises(ValueError, match="minors of CUDA 13"):
        run("registers", make_choreo(), FakeMachine(nvcc="13.0.88"), cuda=("12.9",))
