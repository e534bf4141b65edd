"""Tiles, and how many of them one CTA computes."""

from __future__ import annotations

import pytest

from reproduce.cutlass.configurations import NON_PERSISTENT, PING_PONG, TABLE2, Configuration, Storage

SQUARE, WIDE = TABLE2[0], TABLE2[3]


@pytest.mark.parametrize(
    ("configuration", "size", "sms", "tiles", "per_cta"),
    [
        (SQUARE, 1024, 132, 64, 1),
        (SQUARE, 2048, 132, 256, 2),
        (SQUARE, 4096, 132, 1024, 8),
        (WIDE, 2048, 132, 128, 1),  # as many CTAs as tiles on 132 SMs …
        (WIDE, 2048, 114, 128, 2),  # … but not on a PCIe card
        (PING_PONG, 1024, 132, 128, 1),
        (PING_PONG, 1024, 114, 128, 2),
        (NON_PERSISTENT, 4096, 132, 1024, 1),
    ],
)
def test_tiles_per_cta(configuration: Configuration, size: int, sms: int, tiles: int, per_cta: int) -> None:
    assert configuration.tiles(size) == tiles
    assert configuration.tiles_per_cta(size, sms) == per_cta


def test_the_non_persistent_kernel_exists_as_a_union_only() -> None:
    assert NON_PERSISTENT.storages == (Storage.UNION,)
    assert SQUARE.storages == (Storage.STRUCT, Storage.UNION)


def test_the_epilogue_stores_a_tile_in_pieces() -> None:
    assert [kernel.pieces for kernel in (SQUARE, WIDE, PING_PONG, NON_PERSISTENT)] == [4, 8, 4, 8]
