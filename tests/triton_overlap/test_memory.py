"""Memory descriptor types, and which tiles fit which rings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from triton_overlap.errors import RefusedError
from triton_overlap.memory import Allocation, MemoryType, memory_type
from triton_overlap.overlay import Overlay, fits
from triton_overlap.syntax import Op

OP = Op("ttg.local_alloc", [], "", 0)
RING = MemoryType((3, 64, 64), "f16", "#shared", True)
TILE = MemoryType((64, 128), "f16", "#shared", False)


def test_types_are_read_and_written() -> None:
    text = "!ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>"
    assert memory_type(text, OP) == RING and str(RING) == text
    assert RING.size == 3 * 64 * 64 * 2
    assert memory_type("!ttg.memdesc<64x64xf16, #shared, #smem, mutable, 3x64x64>", OP).shape == (64, 64)


@pytest.mark.parametrize(
    "text", ["i32", "!ttg.memdesc<64x64xf4, #shared, #smem>", "!ttg.memdesc<64xf16, #shared, #ttng.tensor_memory>"]
)
def test_other_types_are_refused(text: str) -> None:
    with pytest.raises(RefusedError, match="is not understood"):
        memory_type(text, OP)


def test_rings_have_slots() -> None:
    assert Allocation("%r", OP, RING, None).slots == 3
    assert Allocation("%t", OP, TILE, 1).slots == 1
    barriers = MemoryType((3, 1), "i64", "#s", True)
    assert Allocation("%b", OP, barriers, None, barrier=True).slots == 3


def test_a_tile_fits_a_ring_of_its_size_and_layout() -> None:
    def fit(tile: MemoryType, ring: MemoryType) -> bool:
        return fits(Overlay(Allocation("%t", OP, tile, 1), Allocation("%r", OP, ring, None)))

    assert fit(TILE, RING)
    assert not fit(TILE, replace(RING, shape=(1, 64, 64)))
    assert not fit(TILE, replace(RING, encoding="#other"))  # other swizzle, other alignment
    assert not fit(replace(TILE, shape=(2, 16, 16)), RING)
