"""Placement of blocks."""

from __future__ import annotations

from itertools import combinations, permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hb_analyzer.placement import EXACT_LIMIT, Block, align_up, place, sequential, verify
from hb_analyzer.report import Placement


def pairs(*names: str) -> set[frozenset[str]]:
    return {frozenset(name.split("-")) for name in names}


def complete(blocks: dict[str, Block]) -> set[frozenset[str]]:
    return {frozenset(pair) for pair in combinations(blocks, 2)}


def test_gemm() -> None:
    blocks = {"lhs": (32768, 1024), "rhs": (65536, 1024), "out": (16384, 1024)}
    placement = place(blocks, pairs("lhs-rhs"))
    assert placement.size == placement.lower_bound == 98304
    assert placement.exact
    assert sequential(blocks) == 114688


def test_one_large_block_lies_over_several_small_ones() -> None:
    blocks = {"a": (100, 1), "b": (60, 1), "big": (160, 1)}
    assert place(blocks, pairs("a-b")).size == 160


def test_no_blocks() -> None:
    assert place({}, []).size == 0


def test_alignment_is_kept_and_padding_avoided() -> None:
    blocks = {"small": (8, 8), "tile": (2048, 1024)}
    placement = place(blocks, pairs("small-tile"))
    assert placement.offsets == {"small": 2048, "tile": 0}
    assert placement.exact
    assert sequential(blocks) == 1024 + 2048


def test_components_are_placed_apart() -> None:
    blocks = {"a": (10, 1), "b": (20, 1), "c": (25, 1), "d": (6, 1)}
    placement = place(blocks, pairs("a-b", "c-d"))
    assert placement.size == 31
    assert placement.exact


def test_a_path_of_blocks_needs_its_heaviest_edge_only() -> None:
    blocks = {"a": (5, 1), "b": (3, 1), "c": (5, 1), "d": (3, 1)}
    assert place(blocks, pairs("a-b", "b-c", "c-d")).size == 8


@pytest.mark.parametrize(
    ("blocks", "interferes", "message"),
    [
        ({"a": (1, 1)}, [frozenset({"a", "x"})], "not a pair of blocks: a, x"),
        ({"a": (1, 1)}, [frozenset({"a"})], "not a pair of blocks: a"),
        ({"a": (-1, 1)}, [], "block a: size -1"),
        ({"a": (1, 0)}, [], "alignment 0"),
    ],
)
def test_bad_input(blocks: dict[str, Block], interferes: list[frozenset[str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        place(blocks, interferes)


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ({"a": 0, "b": 8}, "interfering buffers a and b"),
        ({"a": 4, "b": 32}, "breaks its alignment"),
        ({"a": 48, "b": 0}, "the peak"),
    ],
)
def test_a_wrong_layout_does_not_pass(offsets: dict[str, int], message: str) -> None:
    blocks = {"a": (16, 16), "b": (16, 8)}
    placement = Placement(offsets, {"a": 16, "b": 16}, 48, 32, True)
    with pytest.raises(AssertionError, match=message):
        verify(placement, blocks, pairs("a-b"))


def brute_force(blocks: dict[str, Block], interferes: set[frozenset[str]]) -> int:
    """The smallest peak over first-fit in every order, which some optimal placement is."""
    best = None
    for order in permutations(blocks):
        offsets: dict[str, int] = {}
        for name in order:
            size, alignment = blocks[name]
            offset = 0
            others = [o for o in offsets if frozenset((o, name)) in interferes]
            for low, high in sorted((offsets[o], offsets[o] + blocks[o][0]) for o in others):
                if offset + size <= low:
                    break
                offset = max(offset, align_up(high, alignment))
            offsets[name] = offset
        peak = max(offsets[name] + blocks[name][0] for name in blocks)
        best = peak if best is None else min(best, peak)
    assert best is not None
    return best


@given(st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_no_smaller_placement_exists(random: Random) -> None:
    blocks = {
        f"b{i}": (random.randint(0, 12) * random.choice((1, 16)), random.choice((1, 1, 4, 16)))
        for i in range(random.randint(1, 6))
    }
    interferes = {pair for pair in complete(blocks) if random.random() < random.choice((0.3, 0.6, 0.9))}
    placement = place(blocks, interferes)
    assert placement.exact
    assert placement.lower_bound <= placement.size == brute_force(blocks, interferes)


@pytest.mark.parametrize("density", [0.3, 0.5, 0.7])
def test_sixteen_blocks_are_placed_exactly(density: float) -> None:
    random = Random(16)
    blocks = {f"b{i}": (random.randint(1, 40) * 1024, random.choice((128, 1024))) for i in range(EXACT_LIMIT)}
    interferes = {pair for pair in complete(blocks) if random.random() < density}
    assert place(blocks, interferes).exact


@given(st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_many_blocks_are_placed_soundly(random: Random) -> None:
    blocks = {f"b{i}": (random.randint(1, 99), random.choice((1, 8, 128))) for i in range(random.randint(17, 30))}
    interferes = {pair for pair in complete(blocks) if random.random() < 0.5}
    placement = place(blocks, interferes)
    assert placement.lower_bound <= placement.size <= sum(size + alignment for size, alignment in blocks.values())
