"""Register arrays of fragments, and element-wise operations on them."""

from __future__ import annotations

from pathlib import Path

import pytest
import tile
from builder import at, op, span
from emitting import context, emitted, plan_of

from croqtile import ir
from croqtile.diagnostics import CompileError
from croqtile.emit import fragments
from croqtile.emit.context import Context
from croqtile.ir import Elem

I = ir.Symbol("i", ir.SymbolKind.LAMBDA, "i")  # noqa: E741
J = ir.Symbol("j", ir.SymbolKind.LAMBDA, "j")


@pytest.fixture
def inside(tmp_path: Path) -> Context:
    return context(plan_of(tmp_path, tile.SOFTMAX))


def matrix(name: str, elem: Elem = Elem.F32, rows: int = 64, cols: int = 128) -> ir.Fragment:
    return ir.Fragment(name, name, elem, rows, cols, None, at(1))


def vector(name: str, rows: int = 64) -> ir.Fragment:
    return ir.Fragment(name, name, Elem.F32, rows, None, None, at(1))


def element(fragment: ir.Fragment, *indices: ir.Symbol) -> ir.FragElement:
    chosen = indices or ((I,) if fragment.cols is None else (I, J))
    return ir.FragElement(fragment, tuple(ir.Var(index) for index in chosen))


def apply(inside: Context, target: ir.Fragment, value: ir.Expr) -> str:
    indices = (I,) if target.cols is None else (I, J)
    fragments.emit_apply(inside, ir.FragApply(target, indices, value, ir.Span("x.co", 7, 1)))
    return emitted(inside)


@pytest.mark.parametrize(
    ("fragment", "text"),
    [
        (matrix("m"), "float m[64];  // f32, 64 × 128"),
        (matrix("m", Elem.BF16), "uint32_t m[32];  // bf16, 64 × 128"),
        (matrix("m", Elem.F32, 128, 64), "float m[2][32];  // f32, 128 × 64"),
        (vector("v"), "float v[2];  // f32, 64"),
        (vector("v", 128), "float v[2][2];  // f32, 128"),
    ],
)
def test_declarations(inside: Context, fragment: ir.Fragment, text: str) -> None:
    fragments.declare(inside, fragment)
    assert emitted(inside) == text


def test_apply_to_a_matrix(inside: Context) -> None:
    text = apply(inside, matrix("m"), op(element(matrix("m")), "-", element(vector("v"))))
    assert text.endswith("for (int r_ = 0; r_ < 64; ++r_) m[r_] = m[r_] - v[r_ / 2 % 2];  // line 7")


def test_apply_to_a_vector(inside: Context) -> None:
    text = apply(inside, vector("v"), op(element(vector("v")), "*", element(vector("w"))))
    assert text.endswith("for (int r_ = 0; r_ < 2; ++r_) v[r_] = v[r_] * w[r_];  // line 7")


def test_row_and_column_numbers(inside: Context) -> None:
    text = apply(inside, matrix("m"), ir.Select(op(J, ">", I), ir.FloatLit("-inf"), element(matrix("m"))))
    assert "const int i = fragment_row() + 8 * (r_ / 2 % 2);" in text
    assert "const int j = fragment_column() + 8 * (r_ / 4) + r_ % 2;" in text
    assert "m[r_] = j > i ? -INFINITY : m[r_];" in text


def test_row_numbers_of_a_vector(inside: Context) -> None:
    assert "const int i = fragment_row() + 8 * r_;" in apply(inside, vector("v"), op(I, "*", 2))


def test_packed_target_rounds_pairs(inside: Context) -> None:
    """`__to` of the target's own type is what packing does anyway."""
    value = ir.Intrinsic("__to", (element(matrix("m")),), Elem.BF16)
    text = apply(inside, matrix("p", Elem.BF16), value)
    assert text.endswith("for (int r_ = 0; r_ < 32; ++r_) p[r_] = pack_bf16(m[2 * r_], m[2 * r_ + 1]);  // line 7")


def test_packed_source(inside: Context) -> None:
    text = apply(inside, matrix("m"), op(element(matrix("p", Elem.F16)), "*", element(vector("v"))))
    assert "for (int r_ = 0; r_ < 32; ++r_)" in text
    assert "m[2 * r_] = f16_low(p[r_]) * v[r_ % 2];" in text
    assert "m[2 * r_ + 1] = f16_high(p[r_]) * v[r_ % 2];" in text


def test_second_element_of_a_pair_is_the_next_column(inside: Context) -> None:
    text = apply(inside, matrix("p", Elem.F16), op(J, "+", I))
    assert "const int i = fragment_row() + 8 * (r_ % 2);" in text
    assert "const int j = fragment_column() + 8 * (r_ / 2);" in text
    assert "p[r_] = pack_f16(j + i, (j + 1) + i);" in text


def test_halves(inside: Context) -> None:
    text = apply(inside, matrix("m", rows=128), op(element(vector("v", 128)), "+", I))
    assert "for (int half_ = 0; half_ < 2; ++half_) {" in text
    assert "fragment_row() + 64 * half_ + 8 * (r_ / 2 % 2)" in text
    assert "m[half_][r_] = v[half_][r_ / 2 % 2] + i;" in text


def test_other_elements_are_out_of_reach(inside: Context) -> None:
    with pytest.raises(CompileError, match=r"an element of m can only be read at \(i, j\) here"):
        apply(inside, matrix("m"), element(matrix("m"), J, I))


def test_shapes_must_agree(inside: Context) -> None:
    with pytest.raises(CompileError, match="n and m have different shapes"):
        apply(inside, matrix("m"), element(matrix("n", cols=64)))


def test_reductions(inside: Context) -> None:
    fragments.emit_reduce(inside, ir.FragReduce("max", matrix("m"), vector("v"), span()))
    fragments.emit_reduce(inside, ir.FragReduce("sum", matrix("n", rows=128), vector("w", 128), span()))
    assert emitted(inside).split("\n") == ["reduce_max(v, m);", "reduce_sum(w[0], n[0]);", "reduce_sum(w[1], n[1]);"]


def test_packed_matrices_are_not_reduced(inside: Context) -> None:
    with pytest.raises(CompileError, match="only f32 fragments can be reduced"):
        fragments.emit_reduce(inside, ir.FragReduce("max", matrix("m", Elem.F16), vector("v"), span()))


def test_fill_packs(inside: Context) -> None:
    fragments.emit_fill(inside, matrix("p", Elem.BF16), ir.FloatLit("1.0f"))
    fragments.emit_fill(inside, vector("v"), ir.FloatLit("-inf"))
    assert emitted(inside).split("\n") == ["fill_registers(p, pack_bf16(1.0f, 1.0f));", "fill_registers(v, -INFINITY);"]
