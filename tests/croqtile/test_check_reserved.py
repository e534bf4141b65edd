"""Names that the generated code uses itself are not left to the program."""

from __future__ import annotations

from pathlib import Path

from croqtile.check.reserved import reserved
from tests.croqtile import tile


def test_what_the_generated_code_uses() -> None:
    assert {"class", "uint32_t", "INFINITY", "max", "tma_load", "divide_up", "TileLayout", "wgmma_wait"} <= reserved()
    assert not {"tile", "row", "column", "barrier", "stage", "acc", "p", "t", "M"} & reserved()


def test_called_functions_are_not_hidden(tmp_path: Path) -> None:
    text = tile.edited(tile.SOFTMAX, [("wait full;", "wait full; call scale(o_s, scale);")])
    kernel = tile.checked(tmp_path, text)
    assert [captured.symbol.cname for captured in kernel.captured] == ["scale_1"]
