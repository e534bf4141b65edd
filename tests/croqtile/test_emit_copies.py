"""How a tile splits into copy instructions."""

from __future__ import annotations

import pytest
from builder import at, buffer, dim, event, expr, lit, op, span, view

from croqtile import ir
from croqtile.diagnostics import CompileError
from croqtile.emit.copies import Copy, plan_copy

M, K = dim("M"), dim("K")
ROW, COLUMN = (ir.Symbol(name, ir.SymbolKind.GRID, name, bound=expr(M)) for name in "ij")


def tensor(*dims: int | ir.Symbol, elem: ir.Elem = ir.Elem.F16) -> ir.Tensor:
    return ir.Tensor("x", elem, tuple(expr(extent) for extent in dims), at(1))


def copy_in(source: ir.View, target: ir.View) -> Copy:
    return plan_copy(ir.CopyIn(source, target, event("full"), lit(0), 128, span()), {})


def test_one_panel_one_instruction() -> None:
    copy = copy_in(view(tensor(M, K), None, (64, ROW), (64, COLUMN)), view(buffer("b", (64, 64))))
    assert [dim.box for dim in copy.dims] == [64, 64]
    assert [piece.offset for piece in copy.pieces] == [lit(0)]
    assert copy.pieces[0].coordinates == (op(COLUMN, "*", 64), op(ROW, "*", 64))
    assert copy.bytes == 8192


def test_a_wide_tile_is_copied_by_panels() -> None:
    copy = copy_in(view(tensor(M, K), None, (128, ROW), (128, COLUMN)), view(buffer("b", (128, 128))))
    assert [dim.box for dim in copy.dims] == [64, 128]
    assert [piece.offset for piece in copy.pieces] == [lit(0), lit(16384)]
    assert copy.pieces[1].coordinates == (op(op(COLUMN, "*", 128), "+", 64), op(ROW, "*", 128))
    assert copy.bytes == 32768


def test_rows_beyond_a_box() -> None:
    """A box has at most 256 elements along a dimension."""
    copy = copy_in(view(tensor(M, K), None, (512, ROW), (64, COLUMN)), view(buffer("b", (512, 64))))
    assert [dim.box for dim in copy.dims] == [64, 256]
    assert [piece.offset for piece in copy.pieces] == [lit(0), lit(256 * 128)]


def test_boxes_of_split_rows_are_whole_swizzle_patterns() -> None:
    """264 rows are two boxes of 132, but the second would start in the middle of a pattern of 8 rows."""
    copy = copy_in(view(tensor(M, K), None, (264, ROW), (64, COLUMN)), view(buffer("b", (264, 64))))
    assert [dim.box for dim in copy.dims] == [64, 88]
    assert [piece.offset for piece in copy.pieces] == [lit(0), lit(88 * 128), lit(176 * 128)]


def test_a_split_dimension_makes_outer_ones_go_one_by_one() -> None:
    source = view(tensor(8, M, K), None, (2, 1), (300, ROW), (64, COLUMN))
    copy = copy_in(source, view(buffer("b", (2, 300, 64))))
    assert [dim.box for dim in copy.dims] == [64, 150, 1]
    assert [piece.offset for piece in copy.pieces] == [lit(row * 128) for row in (0, 150, 300, 450)]


def test_part_of_the_rows_of_a_tile() -> None:
    target = view(buffer("b", (128, 64)), None, (64, 1), (64, 0))
    copy = copy_in(view(tensor(M, K), None, (64, ROW), (64, COLUMN)), target)
    assert [piece.offset for piece in copy.pieces] == [lit(64 * 128)]


def test_row_major_tile() -> None:
    plain = ir.SharedBuffer("plain", ir.Elem.F16, (32, 40), 1, False, span(), 0)
    copy = copy_in(view(tensor(M, K), None, (32, ROW), (40, COLUMN)), view(plain))
    assert [dim.box for dim in copy.dims] == [40, 32]


def test_shapes_must_agree() -> None:
    with pytest.raises(CompileError, match="tensor's tile is 64 × 64 elements, the shared one 128 × 64"):
        copy_in(view(tensor(M, K), None, (64, ROW), (64, COLUMN)), view(buffer("b", (128, 64))))


def test_rows_are_copied_whole() -> None:
    target = view(buffer("b", (64, 64)), None, (64, 0), (32, 1))
    with pytest.raises(CompileError, match="a copy moves whole rows of 128 bytes of b, but this one is 64 bytes wide"):
        copy_in(view(tensor(M, K), None, (64, ROW), (32, COLUMN)), target)


def test_too_many_dimensions_are_named() -> None:
    source = view(tensor(2, 2, 2, 2, M, K), None, (1, 0), (1, 0), (1, 0), (1, 0), (64, ROW), (64, COLUMN))
    with pytest.raises(CompileError, match="the copy engine cannot address this part of x"):
        copy_in(source, view(buffer("b", (64, 64))))


def test_tiles_start_at_128_bytes() -> None:
    plain = ir.SharedBuffer("plain", ir.Elem.F16, (64, 32), 1, False, span(), 0)
    copy_in(view(tensor(M, K), None, (2, ROW), (32, COLUMN)), view(plain, None, (2, 3), (32, 0)))
    with pytest.raises(CompileError, match="only known to start at a multiple of 64 bytes of plain"):
        copy_in(view(tensor(M, K), None, (1, ROW), (32, COLUMN)), view(plain, None, (1, 3), (32, 0)))


def test_small_slots_are_misaligned() -> None:
    small = ir.SharedBuffer("small", ir.Elem.F16, (4, 8), 4, True, span(), 0)
    with pytest.raises(CompileError, match="only known to start at a multiple of 64 bytes of small"):
        copy_in(view(tensor(M, K), None, (4, ROW), (8, COLUMN)), view(small, ir.Var(ROW)))


def test_a_panel_by_its_number_is_aligned() -> None:
    target = view(buffer("b", (64, 256)), None, (64, 0), (64, COLUMN))
    assert len(copy_in(view(tensor(M, K), None, (64, ROW), (64, COLUMN)), target).pieces) == 1


def test_rows_that_split_into_odd_boxes() -> None:
    line = ir.SharedBuffer("line", ir.Elem.F16, (264,), 1, False, span(), 0)
    with pytest.raises(CompileError, match="a row splits into boxes of 264 bytes"):
        copy_in(view(tensor(M), None, (264, ROW)), view(line))
