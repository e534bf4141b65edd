"""Which bytes an access touches."""

from __future__ import annotations

from croqtile import ir
from croqtile.validation.footprint import operand_bytes, span, swizzled, tile_region

HERE = ir.Span("k.co", 1, 1)


def tile(rows: int, columns: int, swizzle: int, count: int = 1) -> ir.SharedBuffer:
    return ir.SharedBuffer("t", ir.Elem.F16, (rows, columns), count, count > 1, HERE, swizzle)


def descriptor(swizzle: int, leading: int = 16) -> int:
    """As PTX lays it out: swizzle code, stride of 8 rows, leading offset."""
    return {128: 1, 64: 2, 32: 3}[swizzle] << 62 | 8 * swizzle // 16 << 32 | leading // 16 << 16


def test_swizzle_exchanges_chunks_of_eight_rows() -> None:
    assert [swizzled(row * 128, 128) for row in range(3)] == [0, 128 + 16, 256 + 32]
    assert swizzled(7 * 128 + 112, 128) == 7 * 128
    assert swizzled(128, 32) == 128 + 16 and swizzled(256, 32) == 256
    assert swizzled(12345, 0) == 12345
    for swizzle in (32, 64, 128):
        assert sorted(swizzled(a, swizzle) for a in range(1024)) == list(range(1024))


def test_regions_of_a_tile() -> None:
    assert tile_region(tile(64, 64, 128, 2), 1000 * 16, 1, ()) == span(16000 + 8192, 8192)
    assert tile_region(tile(64, 64, 128), 0, 0, None) is None
    # Two panels of 64 columns: rows 8 … 15 are 1024 bytes in each.
    rows = tile_region(tile(64, 128, 128), 0, 0, ((8, 16), (0, 128)))
    assert rows == span(1024, 1024) | span(64 * 128 + 1024, 1024)
    # Row-major: rows of 256 bytes.
    assert tile_region(tile(64, 128, 0), 0, 0, ((1, 2), (0, 8))) == span(256, 16)
    # A column of chunks, swizzled: row 1 has it at chunk 1.
    assert tile_region(tile(64, 64, 128), 0, 0, ((1, 2), (0, 8))) == span(128 + 16, 16)
    assert tile_region(tile(8, 64, 128), 0, 0, ((1, 2), (60, 64))) == span(128 + (112 ^ 16) + 8, 8)


def test_regions_of_a_tile_with_three_dimensions() -> None:
    buffer = ir.SharedBuffer("t", ir.Elem.F16, (2, 4, 64), 1, False, HERE, 128)
    assert tile_region(buffer, 0, 0, ((1, 2), (0, 4), (0, 64))) == span(4 * 128, 4 * 128)


def test_operands_cover_the_tile_step_by_step() -> None:
    """Four steps of 32 bytes along K read every byte of a K-major tile once."""
    read = [operand_bytes(32 * step, descriptor(128), 64, 32, False) for step in range(4)]
    assert all(mask is not None and mask.bit_count() == 64 * 32 for mask in read)
    total = 0
    for mask in read:
        assert mask is not None and not total & mask
        total |= mask
    assert total == span(0, 64 * 128)


def test_transposed_operands() -> None:
    """N-major, 128 columns in two panels: 16 rows of K of each."""
    panel = 128 * 128
    mask = operand_bytes(16 * 128, descriptor(128, panel), 128, 32, True)
    assert mask == span(2048, 2048) | span(panel + 2048, 2048)
    assert operand_bytes(0, descriptor(64), 32, 32, True) == span(0, 16 * 64)


def test_other_descriptors_are_not_read() -> None:
    assert operand_bytes(0, 0, 64, 32, False) is None  # no swizzle
    assert operand_bytes(0, descriptor(128) | 1 << 49, 64, 32, False) is None  # a base offset
    assert operand_bytes(112, descriptor(128), 64, 32, False) is None  # leaves its row
