"""Tables at the widths that terminals have: nothing is cut off, and nothing is wider than it may be."""

from __future__ import annotations

import pytest
from rich.text import Text

from reproduce import layout
from reproduce.layout import Field


def column(heading: str, *cells: str, text: bool = False, whole: bool = False, joins: bool = False) -> Field:
    return Field(heading, tuple(map(Text, cells)), text=text, right=not text, whole=whole, joins=joins)


TABLE = (
    column("", "1P1C 64x128 4s", "1P2C GEMM (3s) at 1 CTA/SM", text=True),
    column("base [TFLOPS]", "226.9", "248.5"),
    column("SALA [TFLOPS]", "313.1", "251.9"),
    column("bound by", "smem, registers", "smem", text=True),
    column("paper", "regs 101->96, CTAs 1->1", "Act. 24.0->24.0", text=True),
    column("verdict", "equal, in part", "not measured", text=True, whole=True, joins=True),
)


def shown(width: int, fields: tuple[Field, ...] = TABLE) -> list[list[str]]:
    return [[line.plain for line in block] for block in layout.lines(fields, width)]


@pytest.mark.parametrize("width", [40, 60, 79, 80, 100, 120, 200])
def test_no_width_loses_a_word_or_is_exceeded(width: int) -> None:
    blocks = shown(width)
    words = {word for block in blocks for line in block for word in line.split()}
    for field in TABLE:
        wanted = [field.heading, *(cell.plain for cell in field.cells)]
        assert {word for text in wanted for word in text.split()} <= words
    if width >= 60:
        assert max(len(line) for block in blocks for line in block) <= width
    assert all(line == line.rstrip() for block in blocks for line in block)


def test_a_wide_terminal_has_one_block_and_one_line_per_row() -> None:
    (block,) = shown(200)
    assert len(block) == 4


def test_a_block_begins_with_the_labels_and_the_verdict_stays_beside_the_paper() -> None:
    blocks = shown(60)
    assert len(blocks) > 1
    assert all(any("1P1C" in line for line in block) for block in blocks)
    assert [("paper" in block[0], "verdict" in block[0]) for block in blocks][-1] == (True, True)


def test_figures_never_wrap_and_stand_at_the_right() -> None:
    rows = shown(80, (TABLE[0], column("a heading of many words", "226.9", "8.5")))[0][-2:]
    assert rows[0].endswith("226.9") and rows[1].endswith("  8.5")


def test_long_names_break_after_a_sign_between_their_parts() -> None:
    name = "matmul_f16_dyn_sm90_warpspec_1p1c_64x128_4s"
    assert layout.wrap(name, 24) == ["matmul_f16_dyn_sm90_", "warpspec_1p1c_64x128_4s"]
    assert layout.wrap(f"{name} is", 60) == [f"{name} is"]
