"""Control flow, barriers, copies and their grouping, ring slots."""

from __future__ import annotations

from pathlib import Path

import pytest
import tile
from emitting import device

from croqtile.diagnostics import CompileError

FORMS = Path(__file__).parent / "forms"


def form(directory: Path, name: str) -> str:
    program = (FORMS / f"{name}.co").read_text()
    return device(directory, program[program.index("__co__") : program.index("int main")])


# --------------------------------------------------------------------------------------------------------------
# Rings


def test_slots_are_stepped_not_divided(tmp_path: Path) -> None:
    text = device(tmp_path, tile.GEMM)
    head = "for (int k = 0, stage = 0; k < divide_up(K, 64); ++k, stage = next_slot<4>(stage)) {"
    assert f"#pragma unroll 4\n      {head}" in text
    assert "% 4" not in text


def test_look_ahead_slots(tmp_path: Path) -> None:
    text = form(tmp_path, "pipelined")
    assert "k_1_plus_1_mod_3 = 1" in text
    assert "k_1_plus_1_mod_3 = next_slot<3>(k_1_plus_1_mod_3)" in text


def test_a_floating_point_value_is_no_slot(tmp_path: Path) -> None:
    text = device(tmp_path, tile.edited(tile.GEMM, [("stage = k % 4;", "float part = k % 4; stage = k % 4;")]))
    assert "float part = " in text


def test_running_counts_are_divided(tmp_path: Path) -> None:
    """A counter that runs on across tiles is no loop counter."""
    text = form(tmp_path, "persistent")
    assert "event_wait(empty, step % 3, empty_phases_);" in text
    assert "step = step + 1;" in text


def test_short_constant_loops_unroll(tmp_path: Path) -> None:
    text = device(tmp_path, tile.GEMM)
    assert (
        "#pragma unroll\n    for (int s = 0; s < 4; ++s) {  // line 18\n      named_barrier_sync(1 + p, 128);" in text
    )


# --------------------------------------------------------------------------------------------------------------
# Copies


def test_bytes_of_a_closed_set_are_announced_together(tmp_path: Path) -> None:
    text = device(tmp_path, tile.GEMM)
    announced = text.index("mbarrier_arrive_expect_bytes(full + 8 * stage, 16384 + 16384);")
    assert announced < text.index("tma_load(")
    assert "mbarrier_expect_bytes(" not in text


def test_a_statement_in_between_opens_the_set(tmp_path: Path) -> None:
    """Each copy announces its own bytes, whatever the program does before the trigger."""
    text = device(tmp_path, tile.edited(tile.GEMM, [("trigger full[stage];", "k2 = k + 1; trigger full[stage];")]))
    assert text.count("mbarrier_expect_bytes(full + 8 * stage, 16384);") == 2
    assert "mbarrier_arrive(full + 8 * stage);" in text


def test_copies_of_another_slot_are_not_in_the_set(tmp_path: Path) -> None:
    other = tile.edited(
        tile.GEMM, [("tma.copy.async<full[stage]>.swiz<128> lhs", "tma.copy.async<full[(k + 1) % 4]>.swiz<128> lhs")]
    )
    text = device(tmp_path, other, sala=False)
    assert "mbarrier_expect_bytes(full + 8 * k_plus_1_mod_4, 16384);" in text
    assert "mbarrier_arrive_expect_bytes(full + 8 * stage, 16384);" in text


MULTICAST = """\
__co__ void f(global f16 [M, 256] input, global f16 [M, 256] output) {
  parallel {m} by [cdiv(M, 256)] : block {
    parallel {c} by [8] : cluster {
      shared f16 [256, 256] tile_s;
      shared event full;
      parallel p by 2 : group-4 {
        inthreads.async (p == 0) {
          tma.copy.async<full>.multicast.swiz<128> input.subspan(256, 256).at(0, 0) => tile_s;
          trigger full;
        }
        inthreads.async (p == 1) {
          wait full;
          tma.copy tile_s => output.subspan(256, 256).at(m, 0);
        }
      }
    }
  }
}
"""


def test_bytes_of_a_setting_are_limited(tmp_path: Path) -> None:
    assert "mbarrier_arrive_expect_bytes(full, 4 * 131072);" in device(
        tmp_path, tile.edited(MULTICAST, [("by [8]", "by [4]")])
    )
    with pytest.raises(CompileError, match="at most 1048575 bytes for one setting, and this is 1048576"):
        device(tmp_path, MULTICAST)


def test_clusters_are_limited(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="a cluster has at most 8 CTAs, not 16"):
        device(tmp_path, tile.edited(MULTICAST, [("by [8]", "by [16]")]))


def test_a_warpgroup_copies_once(tmp_path: Path) -> None:
    """In a role that needs all its threads, the warps meet before one of them lets the copy engine overwrite a tile."""
    text = form(tmp_path, "calls")
    copy = text.index("tma_load(")
    assert text.rindex("named_barrier_sync(1 + p, 128);", 0, copy) < text.rindex("if (thread_ == 0) {", 0, copy)
    assert "mbarrier_expect_bytes(full, 5120);" in text
    assert "if (thread_ == 0) mbarrier_arrive(full);" in text


def test_stores_out_meet_before_and_after(tmp_path: Path) -> None:
    text = form(tmp_path, "calls")
    store = text.index("tma_store(")
    assert "named_barrier_sync(1 + p, 128);" in text[text.rindex("scale_rows(", 0, store) : store]
    assert text[store:].index("tma_store_complete();") < text[store:].index("named_barrier_sync(1 + p, 128);")


def test_stores_out_are_complete_where_something_follows(tmp_path: Path) -> None:
    """A later statement may read the tensor, or write the same part of it: that its source has been read is not
    enough."""
    own = "tma.copy o_s => output.subspan(64, 64).at(m, 0);"
    again = "tma.copy.async<full>.swiz<128> output.subspan(64, 64).at(m, 0) => q_s; trigger full; wait full;"
    assert "tma_store_complete" not in device(tmp_path, tile.SOFTMAX)
    text = device(tmp_path, tile.edited(tile.SOFTMAX, [(own, own + again)]))
    assert text.index("tma_store(") < text.index("tma_store_complete();") < text.rindex("tma_load(")


def test_calls_on_tensors(tmp_path: Path) -> None:
    """What a function writes to a tensor, the copy engine may read next; and tensors may have 2³² elements."""
    call = "call f(output.subspan(64, 64).at(m, 1), output, output.subspan(64, 64).at(0, m)); wait full;"
    text = device(tmp_path, tile.edited(tile.SOFTMAX, [("wait full;", call)]))
    assert (
        "f(output + (static_cast<int64_t>(m * 64) * 64 + 64), output, output + static_cast<int64_t>(m * 64));" in text
    )
    assert "fence_proxy_async_everywhere();" in text


def test_adjacent_stores_out_are_one_group(tmp_path: Path) -> None:
    both = tile.edited(
        tile.SOFTMAX,
        [("tma.copy o_s => output.subspan(64, 64).at(m, 0);",
          "tma.copy o_s => output.subspan(64, 64).at(m, 0); tma.copy o_s => output.subspan(64, 64).at(1 - m, 0);")],
    )  # fmt: skip
    text = device(tmp_path, both)
    assert text.count("tma_store(") == 2
    assert text.count("tma_store_wait();") == 1


def test_calls_are_fenced_on_both_sides(tmp_path: Path) -> None:
    text = form(tmp_path, "calls")
    call = text.index(
        "scale_rows(shared_pointer<__half>(tile_s), shared_pointer<__half>(result_s), factor + again, 64, 40);"
    )
    before, after = text[:call].rstrip(), text[call:].split("\n")[1:3]
    assert before.endswith("named_barrier_sync(1 + p, 128);")
    assert [line.strip() for line in after] == ["fence_proxy_async();", "named_barrier_sync(1 + p, 128);"]


def test_warps_that_have_just_met_do_not_meet_again_to_arrive(tmp_path: Path) -> None:
    """A call and a store out of shared memory end with all warps together."""
    program = (FORMS / "calls.co").read_text()
    program = program[program.index("__co__") : program.index("int main")]
    edits = [
        ("shared event full;", "shared event full, called, stored;"),
        ("64, 40);\n          tma.copy", "64, 40);\n          trigger called;\n          tma.copy"),
        (".at(block, 0);\n        }", ".at(block, 0);\n          trigger stored;\n        }"),
    ]
    lines = [line.strip() for line in device(tmp_path, tile.edited(program, edits)).split("\n")]
    met = "named_barrier_sync(1 + p, 128);"
    for event, before in (("called", "fence_proxy_async();"), ("stored", "}")):
        arrival = next(n for n, line in enumerate(lines) if line.endswith(f" mbarrier_arrive({event});"))
        assert lines[arrival - 2 : arrival] == [before, met]


def test_swizzled_tiles_cannot_be_passed(tmp_path: Path) -> None:
    program = (FORMS / "calls.co").read_text()
    swizzled = tile.edited(program, [("tma.copy.async<full> input", "tma.copy.async<full>.swiz<16> input")])
    with pytest.raises(CompileError):
        device(tmp_path, swizzled[program.index("__co__") : program.index("int main")])


# --------------------------------------------------------------------------------------------------------------
# Barriers


def test_sets_of_warpgroups_have_numbers_of_their_own(tmp_path: Path) -> None:
    """Numbers 1 … 3 belong to single warpgroups."""
    program = tile.edited(tile.GEMM, [("sync.wg 1, 2;", "sync.wg 1, 2; sync.wg 2, 1;")])
    assert device(tmp_path, program).count("named_barrier_sync(4, 256);") == 2


def test_whole_cta(tmp_path: Path) -> None:
    edits = [("trigger full;", "trigger full; sync.shared;"), ("wait full;", "sync.shared; wait full;")]
    text = device(tmp_path, tile.edited(tile.SOFTMAX, edits))
    assert text.count("__syncthreads();") == 3


def test_branches(tmp_path: Path) -> None:
    text = form(tmp_path, "roles_in_loop")
    assert "if (k > 1) {\n            event_wait(empty, k_mod_2, empty_phases_);\n          }" in text
    assert "} else {" in text


# --------------------------------------------------------------------------------------------------------------
# Warps meet before they read what others of them wrote, whichever way they came


MEET = "named_barrier_sync(1 + p, 128);"


@pytest.mark.parametrize(
    "between",
    [
        "if (bm > 0) { trigger done; }",
        "if (bm > 0) { trigger done; } else { bm2 = bm; }",
        "foreach {i} in [K / 64] { trigger done; }",
        "inthreads (p == 1) { trigger done; }",
    ],
)
def test_a_meeting_on_one_way_is_none_on_the_other(tmp_path: Path, between: str) -> None:
    program = tile.edited(
        tile.GEMM,
        (
            (
                "tma.copy out_s.subspan(64, 128).at(p - 1, 0) => output.subspan(64, 128).at(bm * 2 + p - 1, bn);",
                f"{between} again = mma.fill.f16 0.0f; "
                "mma.row.row again, out_s.subspan(64, 64).at(p - 1, 0), rhs_s[0];",
            ),
        ),
    )
    text = device(tmp_path, program)
    stored = text.index("store_f16<")
    between_both = text[stored : text.index("mma.row.row again")]
    assert between_both.count(MEET) == 2
    assert between_both.rstrip().rsplit("\n", 2)[-2].strip() == MEET


def test_a_meeting_on_one_side_is_none_on_the_other_side(tmp_path: Path) -> None:
    program = tile.edited(
        tile.GEMM,
        (
            (
                "tma.copy out_s.subspan(64, 128).at(p - 1, 0) => output.subspan(64, 128).at(bm * 2 + p - 1, bn);",
                "again = mma.fill.f16 0.0f; if (bm > 0) { trigger done; } "
                "else { mma.row.row again, out_s.subspan(64, 64).at(p - 1, 0), rhs_s[0]; }",
            ),
        ),
    )
    text = device(tmp_path, program)
    other_side = text[text.index("} else {", text.index("mbarrier_arrive(done)")) :]
    assert other_side.index(MEET) < other_side.index("mma.row.row again")
