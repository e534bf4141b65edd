"""Arrival counts, parities, and who executes a role."""

from __future__ import annotations

from pathlib import Path

import pytest
import tile
from emitting import context, device, emitted, plan_of

from croqtile import ir, rewrite
from croqtile.diagnostics import CompileError
from croqtile.emit import events
from croqtile.emit.context import Runs


def counts(directory: Path, program: str) -> dict[str, int]:
    kernel = plan_of(directory, program).kernel
    return {event.name: event.arrivals for event in kernel.events}


def test_a_warpgroup_arrives_once(tmp_path: Path) -> None:
    assert counts(tmp_path, tile.GEMM) == {"full": 1, "empty": 2, "done": 0}


def test_warps_meet_before_they_arrive(tmp_path: Path) -> None:
    """Also behind a wait: a warp that still waits must not miss the phase that the arrival allows to end."""
    text = device(
        tmp_path, tile.edited(tile.GEMM, [("trigger empty[stage];", "wait full[stage]; trigger empty[stage];")])
    )
    assert "event_wait(full, stage_1, full_phases_);\n      named_barrier_sync(1 + p, 128);\n      if (t == 0)" in text


def test_adjacent_triggers_meet_once(tmp_path: Path) -> None:
    more = tile.edited(tile.GEMM, [("trigger empty[stage];", "trigger empty[stage], done;")])
    text = device(tmp_path, more)
    assert "if (t == 0) mbarrier_arrive(empty + 8 * stage_1);\n      if (t == 0) mbarrier_arrive(done);" in text


def test_an_event_that_nobody_triggers_can_be_initialised(tmp_path: Path) -> None:
    assert "mbarrier_init(done, 1);" in device(tmp_path, tile.GEMM)


def test_initial_and_loop_triggers_count_once(tmp_path: Path) -> None:
    more = tile.edited(tile.GEMM, [("trigger empty[stage];", "trigger empty[stage]; trigger done;")])
    assert counts(tmp_path, more)["done"] == 2


def test_a_part_of_a_role(tmp_path: Path) -> None:
    part = tile.edited(tile.GEMM, [("sync.wg 1, 2;", "inthreads (p == 2) { trigger done; } sync.wg 1, 2;")])
    assert counts(tmp_path, part)["done"] == 1


def test_all_ctas_of_a_cluster(tmp_path: Path) -> None:
    program = (Path(__file__).parent / "forms" / "cluster.co").read_text()
    found = counts(tmp_path, program[program.index("__co__") : program.index("int main")])
    assert found == {"full": 1, "empty": 2}


def test_a_producer_warpgroup_is_run_by_one_thread(tmp_path: Path) -> None:
    producer, consumer = rewrite.roles(plan_of(tmp_path, tile.SOFTMAX).kernel)
    assert events.executor(producer) is Runs.THREAD
    assert events.executor(consumer) is Runs.WARPGROUP
    text = device(tmp_path, tile.SOFTMAX)
    assert "if (thread_ == 0) {\n      mbarrier_arrive_expect_bytes(full, 8192 + 8192 + 8192);" in text


def test_a_producer_that_meets_others_is_not(tmp_path: Path) -> None:
    edits = [("trigger full;", "trigger full; sync.wg 0, 1;"), ("wait full;", "sync.wg 0, 1; wait full;")]
    producer, _ = rewrite.roles(plan_of(tmp_path, tile.edited(tile.SOFTMAX, edits)).kernel)
    assert events.executor(producer) is Runs.WARPGROUP


def test_waits_count_per_slot(tmp_path: Path) -> None:
    """The parity is a running count of the role's own waits, in one bit per slot."""
    text = device(tmp_path, tile.GEMM)
    assert "uint32_t empty_phases_ = 0;" in text
    assert "event_wait(empty, stage, empty_phases_);" in text


def test_counts_of_roles_in_a_loop_persist(tmp_path: Path) -> None:
    program = (Path(__file__).parent / "forms" / "roles_in_loop.co").read_text()
    text = device(tmp_path, program[program.index("__co__") : program.index("int main")])
    assert text.index("full_phases_ = 0") < text.index("for (int bn = 0;")
    assert text.count("full_phases_ = 0") == 1


TWO_REGIONS = """\
__co__ void gemm(global f16 [64, 64] lhs, global f16 [64, 64] rhs, global f16 [64, 64] output) {
  parallel {m} by [1] : block {
    shared f16 [64, 64] a_s, b_s, out_s;
    shared event full, seen;
    parallel p by 2 : group-4, t by 128 : thread {
      inthreads.async (p == 0) { tma.copy.async<full>.swiz<128> lhs => a_s; trigger full; }
      inthreads.async (p == 1) { wait full; trigger seen; }
    }
    parallel p by 2 : group-4, t by 128 : thread {
      inthreads.async (p == 0) { tma.copy.async<full>.swiz<128> rhs => b_s; trigger full; }
      inthreads.async (p == 1) { wait full; acc = mma.fill.f32 0.0f; mma.row.row acc, a_s, b_s; mma.store acc, out_s; }
    }
    tma.copy out_s => output;
  }
}
"""


def test_all_threads_count_what_all_of_them_wait_for_later(tmp_path: Path) -> None:
    """In the first region one thread could run the role for its warpgroup; but then the others would take the first
    setting of `full` for the second one, and read `b_s` before it has landed."""
    text = device(tmp_path, TWO_REGIONS)
    first = text[text.index("line 7") : text.index("__syncthreads();", text.index("line 7"))]
    assert first.splitlines()[1].strip() == "event_wait(full, 0, full_phases_);"


def test_one_thread_and_its_warpgroup_count_apart(tmp_path: Path) -> None:
    program = tile.edited(TWO_REGIONS, [("(p == 1)", "(p == 1 && t == 0)")])
    with pytest.raises(CompileError, match="full is counted by one thread of a warpgroup in one role"):
        device(tmp_path, program)


def test_all_threads_count_scalars_that_all_of_them_use_later(tmp_path: Path) -> None:
    edits = [
        ("shared event full, seen;", "shared event full, seen; int round = 0;"),
        ("wait full; trigger seen;", "round = round + 1; trigger seen;"),
        ("acc = mma.fill.f32 0.0f; mma", "acc = mma.fill.f32 0.0f; if (round > 0) mma"),
    ]
    text = device(tmp_path, tile.edited(TWO_REGIONS, edits))
    assert "{  // warpgroup, line 7\n    round = round + 1;\n    named_barrier_sync" in text
    mixed = tile.edited(TWO_REGIONS, [*edits, ("(p == 1)", "(p == 1 && t == 0)")])
    with pytest.raises(CompileError, match="round is counted by one thread of a warpgroup in one role"):
        device(tmp_path, mixed)


def test_slots_fit_into_the_parity_variable(tmp_path: Path) -> None:
    inside = context(plan_of(tmp_path, tile.GEMM))
    many = ir.Event("many", 33, True, ir.Span("x.co", 1, 1))
    inside.names.events["many"] = "many"
    with pytest.raises(CompileError, match="at most 32 slots, many 33"):
        events.declare_phases(inside, [many])


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        (Runs.THREAD, "mbarrier_arrive(full + 16);"),
        (Runs.WARPGROUP, "named_barrier_sync(1 + p, 128);\nif (t == 0) mbarrier_arrive(full + 16);"),
        (Runs.BLOCK, "__syncthreads();\nif (threadIdx.x == 0) mbarrier_arrive(full + 16);"),
    ],
)
def test_triggers(tmp_path: Path, runs: Runs, text: str) -> None:
    plan = plan_of(tmp_path, tile.GEMM)
    inside = context(plan, runs)
    events.emit_trigger(inside, ir.Trigger(plan.kernel.events[0], ir.IntLit(2), plan.kernel.span))
    assert emitted(inside) == text
