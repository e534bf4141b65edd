"""The chain of roles, and registers moved between them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import tile
from emitting import device, plan_of

from croqtile.emit.roles import Registers, register_budget
from croqtile.frontend import load

KERNELS = Path(__file__).resolve().parents[2] / "kernels"


def test_one_chain_over_the_warpgroups(tmp_path: Path) -> None:
    text = device(tmp_path, tile.GEMM)
    assert text.count("  if (p == 0) {  // producer, line 8") == 1
    assert text.count("  } else {  // consumer, line 17") == 1


def test_idle_warpgroups_need_their_condition(tmp_path: Path) -> None:
    text = device(tmp_path, tile.edited(tile.SOFTMAX, [("parallel p by 2", "parallel p by 4")]))
    assert "} else if (p == 1) {" in text


def test_two_threads_of_a_warpgroup_share_a_branch(tmp_path: Path) -> None:
    program = (Path(__file__).parent / "forms" / "shared_operands.co").read_text()
    text = device(tmp_path, program[program.index("__co__") : program.index("int main")])
    branch = text[text.index("if (p == 0) {") : text.index("} else {  // consumer")]
    assert "if (t == 0) {" in branch
    assert "if (t == 32) {" in branch


def test_idle_warpgroups_give_their_registers_without_a_chain_too(tmp_path: Path) -> None:
    """A consumer that takes registers waits until all others have given theirs."""
    edits = [
        ("parallel p by 3", "launch_bounds(1);\n    parallel p by 4"),
        ("inthreads.async (p == 0 && t == 0) {", "inthreads.async (p < 2 && t == 32) { trigger done; }\n"
         "      inthreads.async (p == 0 && t == 0) {"),
        ("inthreads.async (p > 0) {", "inthreads.async (p == 2) {"),
        ("sync.wg 1, 2;", ""),
    ]  # fmt: skip
    text = device(tmp_path, tile.edited(tile.GEMM, edits))
    assert "take_registers<" in text
    assert "  if (p == 3) {\n    give_registers<24>();\n  }" in text


def test_roles_join_only_if_something_follows(tmp_path: Path) -> None:
    own = "        tma.copy out_s.subspan(64, 128).at(p - 1, 0) => output.subspan(64, 128).at(bm * 2 + p - 1, bn);\n"
    end = "      }\n    }\n"
    joined = tile.edited(tile.GEMM, [(own + end, end + "    tma.copy out_s => output.subspan(128, 128).at(bm, bn);\n")])
    assert device(tmp_path, tile.GEMM).count("__syncthreads();") == 1  # after the barriers are initialised
    text = device(tmp_path, joined)
    join = text.rindex("__syncthreads();")
    assert text.index("fence_proxy_async();") < join < text.index("tma_store(")
    assert "if (threadIdx.x == 0) {  // tma.copy" in text


def test_registers_stay_where_they_suffice(tmp_path: Path) -> None:
    kernel = plan_of(tmp_path, tile.GEMM).kernel
    assert register_budget(kernel) is None
    assert "_registers<" not in device(tmp_path, tile.GEMM)


def test_registers_on_request(tmp_path: Path) -> None:
    """Three warpgroups, 65536 registers: 168 each at launch; 24 + 2 · 240 after the move."""
    kernel = replace(plan_of(tmp_path, tile.GEMM).kernel, launch_bounds=1)
    assert register_budget(kernel) == Registers(producer=24, consumer=240)


def test_two_ctas_per_sm_halve_the_budget(tmp_path: Path) -> None:
    kernel = replace(plan_of(tmp_path, tile.GEMM).kernel, launch_bounds=2)
    budget = register_budget(kernel)
    assert budget is not None
    assert (budget.producer + 2 * budget.consumer) * 128 * 2 <= 65536


def test_two_warpgroups_have_enough(tmp_path: Path) -> None:
    """With 256 threads a launch gives 255 registers to each: there is nothing to gain."""
    kernel = replace(plan_of(tmp_path, tile.SOFTMAX).kernel, launch_bounds=1)
    assert register_budget(kernel) is None


@pytest.mark.parametrize("name", ["fa_tuned_1p2c", "fa_tuned_1p2c_nobarrier", "fa_3s"])
def test_large_fragments_take_registers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(KERNELS / "flash_atten")
    (kernel,) = load(f"{name}.co").kernels
    assert register_budget(kernel) == Registers(producer=24, consumer=240)


def test_a_role_that_calls_a_function_gives_no_registers(tmp_path: Path) -> None:
    """The function may need them all, and has no fragments that would say so."""
    edits = [
        ("parallel p by 2", "launch_bounds(1);\n    parallel p by 3"),
        ("inthreads.async (p == 1) {", "inthreads.async (p == 2) { call f(128); }\n      inthreads.async (p == 1) {"),
    ]
    text = device(tmp_path, tile.edited(tile.SOFTMAX, edits))
    assert text.count("give_registers<") == 1
    assert text.count("take_registers<") == 2
    assert "if (p == 2) {  // consumer, line" in text
