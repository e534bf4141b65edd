"""From views of views to tensor maps."""

from __future__ import annotations

import itertools

import pytest

from croqtile import ir
from croqtile.emit.tensormap import Access, UnsupportedView, access, interval
from croqtile.fold import evaluate

SPAN = ir.Span("x.co", 1, 1)


def symbol(name: str, kind: ir.SymbolKind = ir.SymbolKind.DIM, bound: int | None = None) -> ir.Symbol:
    return ir.Symbol(name, kind, name, bound=None if bound is None else ir.IntLit(bound))


SEQ, TOKENS, WIDTH = symbol("SEQ"), symbol("T"), symbol("C")
B, J = symbol("b", ir.SymbolKind.LOOP), symbol("j", ir.SymbolKind.LOOP)
P = symbol("p", ir.SymbolKind.WARPGROUP, 3)


def expr(value: ir.Expr | ir.Symbol | int) -> ir.Expr:
    if isinstance(value, int):
        return ir.IntLit(value)
    return ir.Var(value) if isinstance(value, ir.Symbol) else value


def level(extent: ir.Expr | ir.Symbol | int, index: ir.Expr | ir.Symbol | int, step: int | None = None) -> ir.Level:
    return ir.Level(expr(extent), expr(index), expr(extent if step is None else step))


def view(dims: tuple[ir.Symbol | int, ...], *levels: tuple[ir.Level, ...]) -> ir.View:
    tensor = ir.Tensor("x", ir.Elem.F16, tuple(expr(extent) for extent in dims), SPAN)
    return ir.View(tensor, tuple(ir.ViewDim(steps) for steps in levels), SPAN)


def numbers(found: Access, values: dict[ir.Symbol, int]) -> list[tuple[int | None, ...]]:
    """(extent, stride, origin, tile) of every axis."""
    return [(*(evaluate(e, values) for e in (axis.extent, axis.stride, axis.origin)), axis.tile) for axis in found.axes]


def test_plain_tile() -> None:
    found = access(view((TOKENS, WIDTH), (level(64, B),), (level(128, J),)))
    assert numbers(found, {TOKENS: 1000, WIDTH: 300, B: 3, J: 2}) == [(300, 1, 256, 128), (1000, 300, 192, 64)]
    assert found.whole == ()


def test_whole_dimension() -> None:
    found = access(view((TOKENS, 64), (level(128, J),), ()))
    assert numbers(found, {TOKENS: 1000, J: 2}) == [(64, 1, 0, 64), (1000, 64, 256, 128)]


def test_step_moves_the_origin_only() -> None:
    found = access(view((TOKENS, WIDTH), (level(64, J, step=1),), (level(64, 0),)))
    assert numbers(found, {TOKENS: 1000, WIDTH: 64, J: 7})[1] == (1000, 64, 7, 64)


def test_a_tile_of_a_sequence_is_clipped_at_its_end() -> None:
    """x[T, 128].subspan(SEQ, 128).at(b, 0).subspan(128, 128).at(i, 0)"""
    found = access(view((TOKENS, 128), (level(SEQ, B), level(128, J)), (level(128, 0), level(128, 0))))
    values = {TOKENS: 6000, SEQ: 1500, B: 3, J: 11}
    assert numbers(found, values) == [(128, 1, 0, 128), (1500, 128, 1408, 128), (4, 192000, 3, 1)]
    assert [(evaluate(a, values), evaluate(b, values)) for a, b in found.whole] == [(1500, 6000)]


def test_heads_need_no_dimension_of_their_own() -> None:
    """x[T, H·128].subspan(SEQ, 128).at(b, h).subspan(64, 128).at(i, 0): columns of a head are never left."""
    found = access(view((TOKENS, WIDTH), (level(SEQ, B), level(64, J)), (level(128, B), level(128, 0))))
    assert len(found.axes) == 3


def test_the_whole_tensor_again_is_no_cut() -> None:
    """x[1, SEQ].subspan(1, SEQ).at(b, 0).subspan(1, 128).at(0, i)"""
    found = access(view((TOKENS, SEQ), (level(1, B), level(1, 0)), (level(SEQ, 0), level(128, J))))
    assert numbers(found, {TOKENS: 8, SEQ: 1500, B: 3, J: 2}) == [(1500, 1, 256, 128), (8, 1500, 3, 1)]
    assert found.whole == ()


@pytest.mark.parametrize(("ranges", "axes"), [({P: (1, 2)}, 2), ({}, 3)])
def test_ranges_of_a_role_save_a_dimension(ranges: dict[ir.Symbol, tuple[int, int]], axes: int) -> None:
    """x.subspan(128, C).at(i, 0).subspan(64, C).at(p - 1, 0): only p ≥ 1 keeps it inside."""
    half = level(64, ir.Binary("-", ir.Var(P), ir.IntLit(1)))
    found = access(view((TOKENS, 64), (level(128, J), half), ()), ranges)
    assert len(found.axes) == axes


def test_overlapping_windows() -> None:
    """Windows of 100 rows every 50, tiles of 64 rows in them: 17 windows in 900 rows, which must fit exactly."""
    found = access(view((TOKENS, 64), (level(100, B, step=50), level(64, J)), ()))
    values = {TOKENS: 900, B: 16, J: 1}
    assert numbers(found, values)[1:] == [(100, 64, 64, 64), (17, 3200, 16, 1)]
    assert [(evaluate(a, values), evaluate(b, values)) for a, b in found.whole] == [(50, 800)]


def test_refusals() -> None:
    with pytest.raises(UnsupportedView, match="not constant"):
        access(view((TOKENS, 64), (level(SEQ, B),), ()))
    six = view((2, 2, 2, 2, 2, 2), *((level(1, 0),) for _ in range(6)))
    with pytest.raises(UnsupportedView, match="6 dimensions; the copy engine has 5"):
        access(six)
    buffer = ir.SharedBuffer("s", ir.Elem.F16, (64,), 1, False, SPAN)
    with pytest.raises(UnsupportedView, match="no view of a tensor"):
        access(ir.View(buffer, (ir.ViewDim(),), SPAN))


def in_view(levels: list[tuple[int, int, int]], extent: int, element: int) -> int | None:
    """Where element ``element`` of the innermost tile lies in the dimension, by the definition of views; None where any
    of the views that it is taken from does not hold it. ``levels`` as (extent, index, step), outermost first."""
    position = element
    for k in reversed(range(len(levels))):
        position += levels[k][1] * levels[k][2]
        outer = levels[k - 1][0] if k else extent
        if not 0 <= position < outer:
            return None
    return position


@pytest.mark.parametrize(("outer_step", "views"), [(6, range(-1, 6)), (3, range(7))])
def test_elements_are_those_of_the_definition(outer_step: int, views: range) -> None:
    """Every element of every tile of a dimension of 24, cut into views of 6 (some overlap), then tiles of 4."""
    found = access(view((24,), (level(6, B, step=outer_step), level(4, J))))
    for outer, inner in itertools.product(views, range(-1, 3)):
        values = {B: outer, J: inner}
        axes = numbers(found, values)
        for element in range(4):
            place: int | None = 0
            for k, (extent, stride, origin, _) in enumerate(axes):
                assert extent is not None and stride is not None and origin is not None
                coordinate = origin + (element if k == 0 else 0)
                place = None if place is None or not 0 <= coordinate < extent else place + coordinate * stride
            assert place == in_view([(6, outer, outer_step), (4, inner, 4)], 24, element)


def test_intervals() -> None:
    p, i = ir.Var(P), ir.Var(J)
    assert interval(ir.Binary("-", p, ir.IntLit(1)), {}) == (-1, 1)
    assert interval(ir.Binary("*", p, ir.IntLit(64)), {P: (1, 2)}) == (64, 128)
    assert interval(ir.Binary("%", p, ir.IntLit(2)), {}) == (0, 1)
    assert interval(ir.Binary("/", p, ir.IntLit(2)), {}) == (0, 1)
    assert interval(ir.Binary("+", p, i), {}) == (None, None)
    assert interval(ir.Var(TOKENS), {}) == (1, None)
