"""Which bytes of shared memory an instruction or an access touches, as bit masks: bit i is byte i from some base.

Tiles with swizzle B (PTX ISA, "Swizzling modes"): rows of B bytes, 16-byte chunks exchanged within 8 rows: of an
address, the bits 4… are combined with the bits 7… by exclusive or (3 bits for B = 128, 2 for 64, 1 for 32). Patterns
are counted from address 0, so the base must be a multiple of 8 · B.
"""

from __future__ import annotations

from functools import lru_cache

from croqtile import ir
from hb_analyzer.model import Region

CHUNK = 16
# Bits of a matrix descriptor that are followed: address, leading and stride byte offset, base offset, swizzle.
_DESCRIPTOR = 0x3FFF | 0x3FFF << 16 | 0x3FFF << 32 | 7 << 49 | 3 << 62


def span(start: int, size: int) -> int:
    """Bytes ``start`` … ``start + size − 1``."""
    return ((1 << size) - 1) << start


def swizzled(address: int, swizzle: int) -> int:
    """Where the byte with this address lies in a tile with ``swizzle`` (0, 32, 64 or 128 bytes)."""
    if not swizzle:
        return address
    return address ^ ((address >> 7 & swizzle // 16 - 1) << 4)


def _piece(address: int, size: int, swizzle: int) -> int:
    """``size`` bytes of one row from ``address`` on, before swizzling."""
    mask, end = 0, address + size
    while address < end:
        step = min(end, (address // CHUNK + 1) * CHUNK) - address
        mask |= span(swizzled(address, swizzle), step)
        address += step
    return mask


@lru_cache(maxsize=4096)
def tile_region(buffer: ir.SharedBuffer, offset: int, slot: int, region: Region) -> int | None:
    """The bytes of a box in slot ``slot`` of ``buffer``, which starts at ``offset``. None for an unknown region."""
    if region is None:
        return None
    start = offset + slot * buffer.tile_bytes
    if not region:
        return span(start, buffer.tile_bytes)
    *outer, (low, high) = region
    rows = [0]
    for (first, last), extent in zip(outer, buffer.shape[:-1], strict=True):
        rows = [row * extent + index for row in rows for index in range(first, last)]
    total_rows = buffer.tile_bytes // (buffer.shape[-1] * buffer.elem.bytes)
    pitch = buffer.swizzle or buffer.shape[-1] * buffer.elem.bytes
    mask = 0
    first_byte, last_byte = low * buffer.elem.bytes, high * buffer.elem.bytes
    while first_byte < last_byte:
        panel, column = divmod(first_byte, pitch)
        size = min(last_byte - first_byte, pitch - column)
        if size == pitch and len(rows) == rows[-1] - rows[0] + 1:
            mask |= span(start + (panel * total_rows + rows[0]) * pitch, len(rows) * pitch)
        else:
            for row in rows:
                mask |= _piece(start + (panel * total_rows + row) * pitch + column, size, buffer.swizzle)
        first_byte += size
    return mask


@lru_cache(maxsize=4096)
def operand_bytes(address: int, descriptor: int, rows: int, k_bytes: int, transposed: bool) -> int | None:
    """What one matrix instruction reads through a matrix descriptor (PTX ISA, "Matrix descriptor format").

    ``address``: start, from the base; ``descriptor``: the 64 bits without the address. ``rows`` is M or N. Not
    ``transposed``: rows of ``k_bytes`` along K; transposed (16-bit elements): rows of N along K. None for layouts that
    are not read here (no swizzle, other base offset, reserved bits)."""
    swizzle = {1: 128, 2: 64, 3: 32}.get(descriptor >> 62)
    if swizzle is None or descriptor >> 49 & 7 or descriptor & ~_DESCRIPTOR:
        return None
    leading, stride = (descriptor >> 16 & 0x3FFF) * 16, (descriptor >> 32 & 0x3FFF) * 16
    mask = 0
    if not transposed:
        if rows % 8 or address % swizzle + k_bytes > swizzle:
            return None
        for row in range(rows):
            mask |= _piece(address + row // 8 * stride + row % 8 * swizzle, k_bytes, swizzle)
        return mask
    width = rows * 2  # bytes along N
    if address % swizzle and address % swizzle + width > swizzle:
        return None
    for row in range(k_bytes // 2):
        for column in range(0, width, swizzle):
            start = address + column // swizzle * leading + row // 8 * stride + row % 8 * swizzle
            mask |= _piece(start, min(swizzle, width - column), swizzle)
    return mask


def describe(mask: int) -> str:
    """The bytes of a mask, for messages.

    >>> describe(span(1024, 16) | span(2048, 16))
    'bytes 1024…2063 (32 of them)'
    """
    low, high, count = (mask & -mask).bit_length() - 1, mask.bit_length() - 1, mask.bit_count()
    return f"bytes {low}…{high}" + ("" if count == high - low + 1 else f" ({count} of them)")
