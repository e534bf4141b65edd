"""The rewrite as a whole: bytes, what lies over what, the guard, and that a rewritten kernel is understood again."""

from __future__ import annotations

import re

import pytest

from tests.triton_overlap.conftest import Text
from triton_overlap import RefusedError, Settings, make_plan
from triton_overlap.translate import translate

BYTES = {
    ("gemm", (128, 128), 3): (131132, 98476),
    ("gemm", (128, 128), 2): (98340, 65684),
    ("gemm", (64, 128), 2): (65572, 49300),
    ("attention", (128, 128), 2): (197024, 164376),
    ("attention", (128, 128), 3): (262680, 230056),
    ("auto", (128, 128), 3): (131544, 98904),
    ("persistent", (128, 128), 3): (131544, 98936),
}


@pytest.mark.parametrize("kernel", BYTES, ids=lambda kernel: f"{kernel[0]}-{kernel[1][0]}-{kernel[2]}s")
def test_bytes(kernel: tuple[str, tuple[int, int], int], ttgir_of: Text) -> None:
    plan = make_plan(ttgir_of(*kernel))
    assert (plan.stock.total, plan.final.total) == BYTES[kernel]
    assert not plan.final.violations() and not plan.unsafe
    assert all(each.proved and each.verdict.overlap for each in plan.laid)


def test_a_tile_lies_over_the_ring_that_only_its_partition_reads(ttgir_of: Text) -> None:
    """Each attention consumer stages over its own block of queries, which nobody loads again."""
    plan = make_plan(ttgir_of("attention", (128, 128), 2))
    assert [re.sub(r"\.\d+\[", "[", each.ring) for each in plan.laid] == ["ring[1x64x128xf16]"] * 2
    assert len({each.ring for each in plan.laid}) == 2
    assert not any(each.guarded for each in plan.laid)


def test_a_persistent_kernel_gets_a_guard_for_each_consumer(ttgir_of: Text) -> None:
    text = ttgir_of("persistent")
    plan = make_plan(text)
    assert [each.guarded for each in plan.laid] == [True, True]
    stock, final = translate(text), translate(plan.text)
    new = len(final.program.events) - len(stock.program.events)
    assert new == 2
    guards = [event for event in final.program.events if event.slots == 1]
    assert [(event.arrivals, event.initial) for event in guards] == [(1, 1)] * 2  # the first tile waits for nothing


def test_without_the_guard_the_engine_refuses(ttgir_of: Text) -> None:
    plan = make_plan(ttgir_of("persistent"), Settings(guard=False))
    assert plan.unsafe and "unsafe" in str(plan)
    assert [each.proved for each in plan.laid] == [False, False]
    assert all("not ordered" in each.verdict.why for each in plan.laid)
    assert plan.final.total < BYTES["persistent", (128, 128), 3][1]  # by the guards' own bytes


def test_placeholders_that_stay_are_refused(ttgir_of: Text) -> None:
    with pytest.raises(RefusedError, match="data over mbarriers"):
        make_plan(ttgir_of("attention"), Settings(remedy="keep"))
    assert make_plan(ttgir_of("attention"), Settings(remedy="keep", checked=False)).unsafe
    assert make_plan(ttgir_of("gemm"), Settings(remedy="keep")).final.total == 98476  # it has none


@pytest.mark.parametrize("remedy", ["drop", "invalidate"])
def test_remedies_without_overlap(remedy: str, ttgir_of: Text) -> None:
    text = ttgir_of("auto", (128, 128), 5)
    plan = make_plan(text, Settings(overlap=False, remedy=remedy))
    assert len(plan.stock_violations) == 10 and not plan.final.violations()
    assert plan.removed == 4 and plan.stock.total == plan.final.total
    assert plan.text.count("inval_barrier") == (20 if remedy == "invalidate" else 0)
    assert plan.text.count("init_barrier") == text.count("init_barrier") - (0 if remedy == "invalidate" else 20)


def test_the_control_kernel_has_no_tile_in_its_region(ttgir_of: Text) -> None:
    with pytest.raises(RefusedError, match="no staging tile"):
        make_plan(ttgir_of("gemm", (128, 128), 3, "control"))


def test_a_rewritten_kernel_has_nothing_left_to_lay(ttgir_of: Text) -> None:
    plan = make_plan(ttgir_of("gemm"))
    with pytest.raises(RefusedError, match="no staging tile"):
        make_plan(plan.text)


def test_an_unknown_remedy_is_an_error() -> None:
    with pytest.raises(ValueError, match="'drop', 'invalidate' or 'keep'"):
        Settings(remedy="hope")
