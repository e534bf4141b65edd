"""Builds for stress tests: delays at every operation of every role, and NaN where, and only where, nothing lives."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import tile

from croqtile import toolchain
from croqtile.analyse import analyse
from croqtile.driver import compile_file, generate
from croqtile.emit.device import emit_device
from croqtile.emit.host import emit_wrapper
from croqtile.emit.plan import EmitPlan
from croqtile.emit.planning import make_plan
from croqtile.stress import Wrong, stress_of

ROOT = Path(__file__).resolve().parents[2]
KERNELS = sorted((ROOT / "kernels").glob("*/*.co"))
FORMS = sorted(Path(__file__).with_name("forms").glob("*.co"))
RIGHT = Wrong()
# What synchronises or touches shared memory, as it is emitted.
OPERATION = re.compile(
    r"\b(event_wait|named_barrier_sync|tma_load|tma_store|wgmma_\d|wgmma_wait|mbarrier_arrive|store_)"
)


def plan_of(directory: Path, text: str, sala: bool = True, wrong: Wrong = RIGHT) -> EmitPlan:
    kernel = tile.lowered(directory, text)
    stress, placement = stress_of(analyse(kernel, sala), wrong)
    return make_plan(kernel, placement, stress)


def device(directory: Path, text: str, sala: bool = True, wrong: Wrong = RIGHT) -> str:
    return emit_device(plan_of(directory, text, sala, wrong))[0]


def test_gemm(tmp_path: Path, golden: Callable[[str], None]) -> None:
    golden(device(tmp_path, tile.GEMM))


def test_softmax(tmp_path: Path, golden: Callable[[str], None]) -> None:
    golden(device(tmp_path, tile.SOFTMAX, sala=False))


def without_stress(text: str) -> str:
    """The kernel's text without what a build for stress tests adds."""
    text = re.sub(r"^ *if \(choreo::stress::.*\{\n(?: .*\n)*? *\}\n", "", text, flags=re.MULTILINE)
    start = r"^ *choreo::stress::Delays .*\n.*poison.*\n.*fence_proxy_async\(\);\n.*__syncthreads\(\);\n\n"
    return re.sub(r"^ *delay_\(\d+\);\n", "", re.sub(start, "", text, flags=re.MULTILINE), flags=re.MULTILINE)


@pytest.mark.parametrize("path", KERNELS + FORMS, ids=lambda path: path.stem)
def test_stress_adds_and_changes_nothing_else(path: Path) -> None:
    for sala in (True, False):
        compilation = compile_file(path, {}, sala)
        for analysis in compilation.analyses:
            stress, placement = stress_of(analysis)
            assert placement is analysis.placement
            plain = make_plan(analysis.kernel, placement)
            stressed = make_plan(analysis.kernel, placement, stress)
            assert without_stress(emit_device(stressed)[0]) == emit_device(plain)[0]
            added = set(emit_wrapper(stressed).splitlines()) - set(emit_wrapper(plain).splitlines())
            assert added == {f'  choreo::stress::prepare("", {analysis.kernel.warpgroups});'}


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_operations_are_delayed_in_every_role(path: Path) -> None:
    """Between two operations of a role that synchronise or move data there is a delay: at most a few lines that
    belong to one operation (its address, its fence, the arrival after a meeting) are without one."""
    (analysis,) = compile_file(path, {}).analyses
    text = emit_device(make_plan(analysis.kernel, analysis.placement, stress_of(analysis)[0]))[0]
    roles = re.split(r"^  if \(p == 0\) \{|^  \} else \{", text, flags=re.MULTILINE)[1:]
    assert len(roles) == 2
    for role in roles:
        lines = [line for line in role.splitlines() if OPERATION.search(line) or "delay_(" in line]
        runs = "".join("d" if "delay_(" in line else "o" for line in lines).split("d")
        assert max(map(len, runs)) <= 6 and sum(map(bool, runs)) >= 4, role
    numbers = [int(number) for number in re.findall(r"delay_\((\d+)\)", text)]
    assert numbers == list(range(len(numbers)))


def poisons(text: str) -> list[str]:
    return re.findall(r"stress::(poison\w*\(.*\));", text)


def test_copies_poison_their_slot(tmp_path: Path) -> None:
    """With overlap, out_s lies in the operands, which must not be touched but for the slot that is filled next."""
    assert poisons(device(tmp_path, tile.GEMM))[1:3] == [
        "poison_sample(lhs_s + stage * 16384, 16384, delay_.state)",
        "poison_sample(rhs_s + stage * 16384, 16384, delay_.state)",
    ]


def test_copies_poison_what_is_dead_beside_them(tmp_path: Path) -> None:
    """Without overlap, out_s has a place of its own, and no value in it while operands land."""
    text = device(tmp_path, tile.GEMM, sala=False)
    assert "poison_sample(memory_ + 131072, 32768, delay_.state)" in poisons(text)


def test_a_store_poisons_the_operands_and_its_own_rows_only(tmp_path: Path) -> None:
    """The rows of the other consumer may be written already."""
    text = device(tmp_path, tile.GEMM)
    offset = 0 if "out_s = memory_;" in text else None
    assert offset == 0
    assert poisons(text)[3:] == [
        "poison(memory_ + 32768, 98304, t, 128)",
        "poison(out_s + (p - 1) * 8192, 8192, t, 128)",
        "poison(out_s + (p - 1) * 8192 + 16384, 8192, t, 128)",
    ]


def test_the_poison_is_fenced_and_the_warps_meet_before_the_write(tmp_path: Path) -> None:
    text = device(tmp_path, tile.GEMM)
    copies = re.search(r"thread_poisons\(\)\) \{\n((?:.*poison_sample.*\n)+)(.*\n)( *\}\n)(.*\n)(.*\n)", text)
    assert copies and copies[2].strip() == "fence_proxy_async();"
    assert copies[4].strip().startswith("delay_(") and "mbarrier_arrive_expect_bytes" in copies[5]
    store = re.search(
        r"(.*\n)(.*\n) *if \(.*warpgroup_poisons\(\)\) \{\n((?:.*poison.*\n)+)(.*\n) *\}\n(.*\n)(.*\n)", text
    )
    assert store and "named_barrier_sync(4, 256)" in store[1]
    assert "named_barrier_sync(1 + p, 128)" in store[4] and "store_f16" in store[6]


def test_no_live_byte_is_poisoned(tmp_path: Path) -> None:
    """Bytes of buffers that must not overlap the one that is written are never in the poisoned ranges."""
    from croqtile.emit.context import Context
    from croqtile.emit.names import kernel_names
    from croqtile.emit.stress import dead_ranges
    from croqtile.emit.writer import Writer

    for path in KERNELS:
        for sala in (True, False):
            (analysis,) = compile_file(path, {}, sala).analyses
            stress, placement = stress_of(analysis)
            plan = make_plan(analysis.kernel, placement, stress)
            context = Context(plan, kernel_names(plan.kernel), Writer(), set())
            for written in plan.kernel.buffers:
                poisoned = {byte for low, high in dead_ranges(context, written.name) for byte in range(low, high, 16)}
                dead = set()
                for other in plan.kernel.buffers:
                    start = plan.offsets[other.name]
                    mine = set(range(start, start + other.bytes, 16))
                    if other is not written and analysis.report.verdict(written.name, other.name).overlap:
                        dead |= mine
                    else:
                        assert not poisoned & mine, f"{path.stem}: {written.name} poisons {other.name}"
                assert poisoned <= dead


def test_all_of_shared_memory_is_nan_before_the_mbarriers_come_to_life(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, tile.GEMM)
    text = emit_device(plan)[0]
    fill = f"choreo::stress::poison(shared_address(gemm_memory_), {plan.dynamic_bytes}, threadIdx.x, {plan.threads});"
    steps = [text.index(part) for part in (fill, "fence_proxy_async();", "__syncthreads();", "mbarrier_init(")]
    assert steps == sorted(steps)


def test_a_cluster_is_not_poisoned() -> None:
    (path,) = (path for path in FORMS if path.stem == "cluster")
    for analysis in compile_file(path, {}).analyses:
        text = emit_device(make_plan(analysis.kernel, analysis.placement, stress_of(analysis)[0]))[0]
        assert len(poisons(text)) == 1 and "delay_(0)" in text


def test_a_wrong_build_says_so(tmp_path: Path) -> None:
    wrong = Wrong(overlap=("lhs_s", "rhs_s"), unwaited="full")
    plan = plan_of(tmp_path, tile.GEMM, wrong=wrong)
    text = emit_device(plan)[0]
    assert "// WARNING: deliberately wrong, for tests only: lhs_s and rhs_s lie on each other" in text
    assert "// WARNING: the wait for full is left out" in text and "event_wait(full" not in text
    assert 'prepare("lhs_s and rhs_s lie on each other, which the analysis forbids, the waits' in emit_wrapper(plan)


def test_a_plain_build_has_no_trace_of_stress() -> None:
    text = generate(compile_file(KERNELS[0], {}))
    assert "choreo::stress" not in text and "delay_" not in text and "#define CHOREO_STRESS" not in text


# --------------------------------------------------------------------------------------------------------------


@pytest.mark.nvcc
@pytest.mark.parametrize("name", ["matmul/matmul_f16_dyn_sm90_warpspec_1p2c", "flash_atten/fa_tuned_1p2c"])
def test_kernels_compile_and_matrix_instructions_stay_asynchronous(name: str, tmp_path: Path) -> None:
    """A delay between a matrix instruction and its wait must not make ptxas wait earlier (C7510), nor spill."""
    path = ROOT / "kernels" / f"{name}.co"
    compilation = compile_file(path, {})
    source = tmp_path / "kernel.cu"
    source.write_text(generate(compilation, Wrong()))
    command = [str(toolchain.find().nvcc), *toolchain.COMPILE_FLAGS, "-cubin", "-Xptxas=-v", f"-I{path.parent}"]
    done = subprocess.run(
        [*command, str(source), "-o", str(tmp_path / "kernel.cubin")],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    log = done.stdout + done.stderr
    assert "C75" not in log and "setmaxnreg" not in log
    (kernel,) = (each for each in toolchain.parse_resources(log) if "__choreo_device" in each.name)
    assert kernel.spill_stores == kernel.spill_loads == 0


@pytest.mark.gpu
@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("name", "wrong", "good"),
    [
        ("1p2c", [], True),
        ("1p3c", [], True),
        ("1p3c_nobarrier", ["--unsound-overlap", "out_s,rhs_s"], False),
        ("1p2c", ["--unsound-overlap", "lhs_s,rhs_s"], False),
    ],
)
def test_under_stress(name: str, wrong: list[str], good: bool, tmp_path: Path) -> None:
    path = ROOT / f"kernels/matmul/matmul_f16_dyn_sm90_warpspec_{name}.co"
    program = tmp_path / "program"
    environment = {**os.environ, "CHOREO_TESTING": "1", "CHOREO_STRESS_SEEDS": "20", "CHOREO_DISABLE_TIMING": "1"}
    build = [sys.executable, "-m", "croqtile", "--stress", *wrong, str(path), "-o", str(program)]
    subprocess.run(build, check=True, capture_output=True, env=environment, cwd=ROOT)
    run = [str(program), "--m", "1000", "--n", "1000", "--k", "1000"]
    done = subprocess.run(run, capture_output=True, text=True, check=False, env=environment, timeout=120)
    assert ("Test Passed" in done.stdout) is good, done.stdout + done.stderr
    assert ("WARNING: deliberately wrong build" in done.stderr) is not good
