"""Byte offsets of shared tiles."""

from __future__ import annotations

import pytest
from builder import buffer, lit, op, view

from croqtile import fold, ir
from croqtile.diagnostics import CompileError
from croqtile.emit.shared import scaled, tile

P = ir.Symbol("p", ir.SymbolKind.WARPGROUP, "p")


def offset(shared: ir.View, row: int = 0, column: int = 0) -> ir.Expr:
    return tile(shared).offset(row, column)


def test_panels_of_a_wide_tile() -> None:
    """128 × 128 f16 with swizzle 128: two panels of 64 columns, 16 KiB apart."""
    shared = view(buffer("b", (128, 128)))
    assert tile(shared).panel_bytes == 16384
    assert tile(shared).panel_columns == 64
    assert offset(shared, 3, 0) == lit(3 * 128)
    assert offset(shared, 3, 64) == lit(16384 + 3 * 128)
    assert offset(shared, 0, 80) == lit(16384 + 32)


def test_rows_of_a_view_keep_the_panel_stride() -> None:
    shared = view(buffer("b", (128, 128)), None, (64, 1), (128, 0))
    assert tile(shared).rows == 64
    assert offset(shared, 0, 64) == lit(16384 + 64 * 128)


def test_columns_inside_a_panel() -> None:
    shared = view(buffer("b", (64, 64)), None, (64, 0), (16, 3))
    assert offset(shared) == lit(96)


def test_slots_are_tiles_apart() -> None:
    shared = view(buffer("b", (64, 64), count=4), P)
    assert offset(shared) == op(P, "*", 8192)


def test_row_index_of_a_warpgroup() -> None:
    shared = view(buffer("b", (128, 64)), None, (64, op(P, "-", 1)))
    assert offset(shared) == op(op(P, "-", 1), "*", 64 * 128)


def test_column_known_at_run_time() -> None:
    shared = view(buffer("b", (64, 128)), None, (64, 0), (16, P))
    column = op(P, "*", 16)
    panel = op(op(column, "/", 64), "*", 8192)
    assert offset(shared) == op(panel, "+", op(op(column, "%", 64), "*", 2))


def test_leading_dimensions_are_rows() -> None:
    shared = view(buffer("b", (2, 64, 64)), None, (1, 1), (64, 0), (64, 0))
    assert tile(shared).rows == 64
    assert offset(shared) == lit(8192)


def test_row_major() -> None:
    plain = ir.SharedBuffer("plain", ir.Elem.F32, (10, 12), 1, False, buffer("x", (1, 1)).span, 0)
    shared = view(plain, None, (10, 0), (4, 2))
    assert tile(shared).pitch == 48
    assert offset(shared, 2) == lit(2 * 48 + 8 * 4)


def test_rows_must_follow_one_another() -> None:
    with pytest.raises(CompileError, match="do not follow one another"):
        tile(view(buffer("b", (2, 64, 64)), None, (2, 0), (32, 0), (64, 0)))


def test_slots_must_hold_whole_patterns() -> None:
    with pytest.raises(CompileError, match="no multiple of the 1024 bytes"):
        tile(view(buffer("b", (4, 64), count=2), 1))


def test_scaled_folds() -> None:
    assert scaled(fold.binary("*", ir.Var(P), lit(64)), 128) == op(P, "*", 8192)
    assert scaled(lit(3), 128) == lit(384)
