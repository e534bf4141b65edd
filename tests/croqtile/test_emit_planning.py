"""What both sides of the launch are told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import tile
from emitting import plan_of

from croqtile import ir, smem
from croqtile.diagnostics import CompileError
from croqtile.emit.planning import make_plan
from hb_analyzer.report import Placement


def test_maps_and_parameters(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, tile.GEMM)
    assert [(m.name, m.box, m.swizzle, m.writes) for m in plan.maps] == [
        ("lhs_map", (64, 128), 128, False),
        ("rhs_map", (64, 128), 128, False),
        ("output_map", (64, 64), 128, True),
    ]
    assert [param.name for param in plan.params] == ["lhs_map", "rhs_map", "output_map", "M", "K", "N"]
    assert {param.ctype for param in plan.params[:3]} == {"const __grid_constant__ CUtensorMap"}


def test_equal_tiles_share_a_map(tmp_path: Path) -> None:
    second = "tma.copy.async<full[stage]>.swiz<128> rhs.subspan(128, 64).at(bn, k) => rhs_s[stage];"
    again = second.replace("rhs.sub", "lhs.sub")
    plan = plan_of(tmp_path, tile.edited(tile.GEMM, [(second, again)]))
    assert [m.name for m in plan.maps] == ["lhs_map", "output_map"]


def test_other_boxes_make_further_maps(tmp_path: Path) -> None:
    old = "lhs.subspan(128, 64).at(bm, k) => lhs_s[stage];"
    halves = (
        "lhs.subspan(64, 64).at(bm * 2, k) => lhs_s[stage].subspan(64, 64).at(0, 0);"
        "tma.copy.async<full[stage]>.swiz<128> lhs.subspan(64, 64).at(bm * 2 + 1, k)"
        " => lhs_s[stage].subspan(64, 64).at(1, 0);"
        "tma.copy.async<full[stage]>.swiz<128> lhs.subspan(128, 64).at(bm, k) => lhs_s[stage];"
    )
    plan = plan_of(tmp_path, tile.edited(tile.GEMM, [(old, halves)]))
    assert [(m.name, m.box) for m in plan.maps[:2]] == [("lhs_map", (64, 64)), ("lhs_map_2", (64, 128))]


def test_names_of_the_program_come_first(tmp_path: Path) -> None:
    text = tile.GEMM.replace("lhs_s", "lhs_map").replace("rhs_s", "tma_load").replace("stage", "uint32_t")
    plan = plan_of(tmp_path, text)
    assert [m.name for m in plan.maps] == ["lhs_map_", "rhs_map", "output_map"]
    assert [buffer.name for buffer in plan.kernel.buffers] == ["lhs_map", "tma_load_1", "out_s"]


def test_launch_bounds_beyond_an_sm(tmp_path: Path) -> None:
    def with_bounds(number: int) -> str:
        return tile.edited(tile.GEMM, [("parallel p", f"launch_bounds({number}); parallel p")])

    assert plan_of(tmp_path, with_bounds(5)).kernel.launch_bounds == 5
    with pytest.raises(CompileError, match="asks for 6 CTAs of 384 threads on an SM, which holds 2048 threads"):
        plan_of(tmp_path, with_bounds(6))


def test_requested_bytes(tmp_path: Path) -> None:
    """Kernels with mma.load.swiz<128> request 1024 bytes beyond the placement and keep mbarriers in static memory;
    the others 128, where their mbarriers find room."""
    gemm = plan_of(tmp_path, tile.GEMM)
    assert gemm.dynamic_bytes == gemm.placement_bytes + 1024
    assert [event.name for event in gemm.static_events] == ["full", "empty", "done"]
    softmax = plan_of(tmp_path, tile.SOFTMAX)
    assert softmax.dynamic_bytes == softmax.placement_bytes + 128
    assert softmax.barrier_offsets == {"full": softmax.placement_bytes}
    assert not softmax.static_events


def test_barriers_lie_behind_every_buffer(tmp_path: Path) -> None:
    for sala in (False, True):
        plan = plan_of(tmp_path, tile.SOFTMAX, sala)
        end = max(plan.offsets[buffer.name] + buffer.bytes for buffer in plan.kernel.buffers)
        assert min(plan.barrier_offsets.values()) >= end
        slots = {event.name: event.slots for event in plan.kernel.events}
        assert max(at + 8 * slots[name] for name, at in plan.barrier_offsets.items()) <= plan.dynamic_bytes


def test_events_that_do_not_fit_into_the_slack(tmp_path: Path) -> None:
    kernel = plan_of(tmp_path, tile.SOFTMAX).kernel
    many = replace(kernel, events=(*kernel.events, ir.Event("many", 16, True, kernel.span)))
    sizes = {buffer.name: buffer.bytes for buffer in many.buffers}
    offsets = {name: 8192 * index for index, name in enumerate(sizes)}
    plan = make_plan(many, Placement(offsets, sizes, size=32768, lower_bound=32768, exact=True))
    assert plan.barrier_offsets == {"full": 32768}
    assert [event.name for event in plan.static_events] == ["many"]
    assert smem.static_bytes(many) == 1024  # padded, so that dynamic memory stays aligned


def test_captured_scalars_follow_the_dimensions(tmp_path: Path) -> None:
    params = plan_of(tmp_path, tile.SOFTMAX).params
    assert [(param.name, param.ctype) for param in params[-2:]] == [("N", "int"), ("scale", "float")]


def test_pointers_of_tensors_that_are_read_by_elements(tmp_path: Path) -> None:
    program = tile.edited(
        tile.SOFTMAX,
        [("global bf16 [128, 64] output)", "global bf16 [128, 64] output, global f32 [N] bias)"),
         ("score.at(i, j) - top.at(i)", "score.at(i, j) + bias.at(j) - top.at(i)")],
    )  # fmt: skip
    param = next(param for param in plan_of(tmp_path, program).params if param.name == "bias")
    assert param.ctype == "const float*"


def test_first_grid_index_is_x(tmp_path: Path) -> None:
    assert [(axis.symbol.name, axis.axis) for axis in plan_of(tmp_path, tile.GEMM).grid] == [("bm", "x"), ("bn", "y")]
