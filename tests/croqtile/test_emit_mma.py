"""Descriptors and steps of matrix instructions, groups, and stores of accumulators."""

from __future__ import annotations

from pathlib import Path

import pytest
import tile
from builder import at, buffer, lit, span, view
from emitting import context, device, emitted, plan_of

from croqtile import ir
from croqtile.diagnostics import CompileError
from croqtile.emit import mma
from croqtile.emit.context import Context
from croqtile.emit.wgmma import Instruction
from croqtile.ir import Elem

P = ir.Symbol("p", ir.SymbolKind.WARPGROUP, "p")


@pytest.fixture
def inside(tmp_path: Path) -> Context:
    result = context(plan_of(tmp_path, tile.GEMM))
    result.names.buffers.update({"a": "a", "b": "b", "out": "out"})
    return result


def accumulator(rows: int, columns: int, elem: Elem = Elem.F32) -> ir.Fragment:
    return ir.Fragment("acc", "acc", elem, rows, columns, None, at(1), accumulator=True)


def operand(shared: ir.View) -> ir.SharedOperand:
    return ir.SharedOperand(shared, 0, span())


def product(a: ir.View | ir.Fragment, b: ir.View, m: int, n: int, k: int, layout: str = "row") -> ir.Mma:
    left = ir.FragOperand(a, span()) if isinstance(a, ir.Fragment) else operand(a)
    return ir.Mma(accumulator(m, n), left, operand(b), layout, False, span(), m, n, k)


def test_k_major_steps_inside_a_panel(inside: Context) -> None:
    mma.emit_mma(inside, product(view(buffer("a", (64, 64))), view(buffer("b", (128, 64))), 64, 128, 64))
    text = emitted(inside)
    assert "const uint64_t a_ = k_major_descriptor<128>(a);" in text
    assert "for (int step_ = 0; step_ < 4; ++step_)" in text
    assert "wgmma_64x128x16_f32_f16_f16_ss(acc, a_ + 2 * step_, b_ + 2 * step_, 1);" in text
    assert inside.instructions == {Instruction(128, Elem.F16, Elem.F16, Elem.F32)}


def test_k_major_steps_across_panels(inside: Context) -> None:
    """128 columns of f16: four steps in each of two panels, 16 KiB (1024 units of 16 bytes) apart."""
    mma.emit_mma(
        inside, product(view(buffer("a", (128, 128)), None, (64, 1)), view(buffer("b", (128, 128))), 64, 128, 128)
    )
    text = emitted(inside)
    assert "k_major_descriptor<128>(a + 8192)" in text
    assert "a_ + step_ / 4 * 1024 + step_ % 4 * 2, b_ + step_ / 4 * 1024 + step_ % 4 * 2" in text


def test_mn_major_b(inside: Context) -> None:
    """64 × 128 f16 stored K × N: panels of 64 columns 8 KiB apart; a step of 16 rows is 2 KiB."""
    mma.emit_mma(inside, product(view(buffer("a", (64, 64))), view(buffer("b", (64, 128))), 64, 128, 64, "col"))
    text = emitted(inside)
    assert "mn_major_descriptor<128, 8192>(b)" in text
    assert "b_ + 128 * step_" in text
    assert "wgmma_64x128x16_f32_f16_f16_ss_transposed" in text


def test_a_in_registers(inside: Context) -> None:
    prob = ir.Fragment("prob", "prob", Elem.F16, 64, 64, None, at(1))
    mma.emit_mma(inside, product(prob, view(buffer("b", (64, 64))), 64, 64, 64, "col"))
    text = emitted(inside)
    for register in ("prob[4 * step_]", "prob[4 * step_ + 1]", "prob[4 * step_ + 2]", "prob[4 * step_ + 3]"):
        assert register in text


def test_halves_of_64_rows(inside: Context) -> None:
    mma.emit_mma(inside, product(view(buffer("a", (128, 64))), view(buffer("b", (64, 64))), 128, 64, 64))
    text = emitted(inside)
    assert "for (int half_ = 0; half_ < 2; ++half_)" in text
    assert "(acc[half_], a_ + half_ * 512 + 2 * step_," in text


def test_narrow_swizzle(inside: Context) -> None:
    a, b = (ir.SharedBuffer(name, Elem.F16, (64, 32), 1, False, span(), 64) for name in "ab")
    mma.emit_mma(inside, product(view(a), view(b), 64, 64, 32))
    assert "k_major_descriptor<64>(a)" in emitted(inside)


def test_one_step_has_no_loop(inside: Context) -> None:
    narrow = view(buffer("a", (64, 64)), None, (64, 0), (16, P))
    mma.emit_mma(inside, product(narrow, view(buffer("b", (64, 64)), None, (64, 0), (16, 2)), 64, 64, 16))
    text = emitted(inside)
    assert "step_" not in text
    assert "k_major_descriptor<128>(b + 64)" in text


def test_fill_with_zero_starts_the_accumulator(tmp_path: Path) -> None:
    """No register is zeroed: the first instruction of the product ignores the accumulator."""
    text = device(tmp_path, tile.SOFTMAX)
    assert "_ss(score, a_ + 2 * step_, b_ + 2 * step_, step_ > 0);" in text
    assert "fill_registers(score" not in text


def test_fill_before_a_loop_zeroes_registers(tmp_path: Path) -> None:
    text = device(tmp_path, tile.GEMM)
    assert "fill_registers(acc, pack_f16(0.0f, 0.0f));" in text
    assert "_ss(acc, a_ + 2 * step_, b_ + 2 * step_, 1);" in text


def test_fill_with_infinity(tmp_path: Path) -> None:
    text = device(tmp_path, tile.edited(tile.GEMM, [("mma.fill.f16 0.0f", "mma.fill.f16 -inf")]))
    assert "fill_registers(acc, pack_f16(-INFINITY, -INFINITY));" in text


def test_results_are_read_after_the_wait_only(tmp_path: Path) -> None:
    """Once a group is complete the compiler is told that its registers have changed; never while others still run."""
    text = device(tmp_path, tile.SOFTMAX)
    first_wait = text.index("wgmma_wait<0>();\n    registers_complete(score);")
    assert first_wait < text.index("reduce_max(top, score)")


def test_registers_in_flight_are_left_alone(inside: Context) -> None:
    score, out = accumulator(64, 64), ir.Fragment("out", "out", Elem.F32, 64, 64, None, at(2), accumulator=True)
    for fragment in (score, out):
        inside.flight.issued = [fragment]
        mma.emit_commit(inside)
    mma.emit_wait(inside, ir.MmaWait(1, span()))
    assert "registers_complete(acc);" in emitted(inside)
    assert "registers_complete(out);" not in emitted(inside)
    mma.emit_wait(inside, ir.MmaWait(0, span()))
    assert "registers_complete(out);" in emitted(inside)


CARRIED = """\
          mma.wait<0>;
          frag.apply total, [](i, j) { return total.at(i, j) + acc.at(i, j); };
          acc = mma.fill.f16 0.0f;
          mma.row.row acc, a, b;
          mma.commit;
          mma.wait<1>;
        }
        mma.wait<0>;
"""


def test_a_result_of_the_iteration_before_is_read_after_the_wait_only(tmp_path: Path) -> None:
    """The group of an iteration is awaited in the next one, which stands before it in the text."""
    edits = [
        ("acc = mma.fill.f16 0.0f;", "fragment f32[64, 128] total {0.0f}; acc = mma.fill.f16 0.0f;"),
        (
            "          mma.row.row acc, a, b;\n          mma.commit;\n          trigger empty[stage];\n        }\n",
            CARRIED,
        ),
    ]
    text = device(tmp_path, tile.edited(tile.GEMM, edits))
    assert text.index("wgmma_wait<0>();") < text.index("registers_complete(acc);") < text.index(" = total[")
    assert "registers_complete" not in text[text.index("wgmma_commit") : text.rindex("wgmma_wait<0>();")]


def test_a_group_of_a_branch_may_be_in_flight_behind_it(inside: Context) -> None:
    inside.flight.issued.append(accumulator(64, 64))
    taken = inside.flight.copy()
    taken.commit()
    inside.flight.issued.clear()
    inside.flight.join(taken)
    mma.emit_wait(inside, ir.MmaWait(0, span()))
    assert emitted(inside).endswith("registers_complete(acc);")


def test_an_accumulator_of_a_running_group_is_in_flight(inside: Context) -> None:
    acc = accumulator(64, 64)
    for _ in range(2):
        inside.flight.issued = [acc]
        mma.emit_commit(inside)
    mma.emit_wait(inside, ir.MmaWait(1, span()))
    assert "registers_complete" not in emitted(inside)


# --------------------------------------------------------------------------------------------------------------
# Stores


def test_the_warps_meet_before_they_overwrite_operands(tmp_path: Path) -> None:
    """analysis.md: one warp's wait says nothing of what the other warps' instructions still read."""
    text = device(tmp_path, tile.SOFTMAX)
    store = text.index("store_bf16<")
    assert text.rindex("named_barrier_sync(1 + p, 128);", 0, store) > text.rindex("wgmma_wait<0>();", 0, store)


def test_a_barrier_of_the_program_is_enough(tmp_path: Path) -> None:
    text = device(tmp_path, tile.GEMM)
    between = text[text.index("named_barrier_sync(4, 256);") : text.index("store_f16<")]
    assert between.count("named_barrier_sync") == 1


def test_stored_tiles_are_visible_to_the_copy_engine(tmp_path: Path) -> None:
    text = device(tmp_path, tile.GEMM)
    tail = text[text.index("store_f16<") :]
    order = [tail.index(part) for part in ("fence_proxy_async();", "named_barrier_sync(1 + p, 128);", "tma_store(")]
    assert order == sorted(order)


def test_stores_of_two_halves_meet_once(inside: Context) -> None:
    out = view(buffer("out", (128, 64)))
    mma.emit_store(inside, ir.MmaStore(accumulator(128, 64), out, span()))
    text = emitted(inside)
    assert text.count("named_barrier_sync") == 1
    assert "store_f16<TileLayout<128, 128, 16384>>(out, 0, 0, acc[0]);" in text
    assert "store_f16<TileLayout<128, 128, 16384>>(out, 64, 0, acc[1]);" in text


def test_an_f16_accumulator_is_converted_to_the_tile(inside: Context) -> None:
    wide = ir.SharedBuffer("out", Elem.F32, (64, 64), 1, False, span(), 128)
    mma.emit_store(inside, ir.MmaStore(accumulator(64, 64, Elem.F16), view(wide), span()))
    text = emitted(inside)
    assert "float wide_[32];" in text
    assert text.index("widen_f16(wide_, acc);") < text.index("store_f32<TileLayout<128, 128, 8192>>(out, 0, 0, wide_);")


def test_stores_to_different_buffers_are_kept_apart(inside: Context) -> None:
    """They may lie over each other, so a slow warp's first store must not follow a fast warp's second."""
    for name in ("out", "a"):
        mma.emit_store(inside, ir.MmaStore(accumulator(64, 64), view(buffer(name, (64, 64))), span()))
    assert emitted(inside).count("named_barrier_sync") == 2


def test_an_operand_that_the_warpgroup_stored(inside: Context) -> None:
    shared = buffer("a", (64, 64))
    mma.emit_store(inside, ir.MmaStore(accumulator(64, 64), view(shared), span()))
    before = emitted(inside).count("named_barrier_sync")
    mma.emit_mma(inside, product(view(shared), view(buffer("b", (64, 64))), 64, 64, 64))
    assert emitted(inside).count("named_barrier_sync") == before + 1


# --------------------------------------------------------------------------------------------------------------
# What the matrix unit cannot do


A, B = view(buffer("a", (64, 64))), view(buffer("b", (64, 64)))
WIDE_A, WIDE_B = buffer("a", (64, 128)), buffer("b", (64, 256))
BYTES_A, BYTES_B = (view(buffer(name, (64, 64), elem=Elem.E4M3)) for name in "ab")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (product(A, view(buffer("b", (264, 64))), 64, 264, 64), "a multiple of 8 columns up to 256"),
        (
            product(view(WIDE_A, None, (64, 0), (96, 1)), B, 64, 64, 96),
            "starts inside a panel of 64 columns and leaves it",
        ),
        (
            product(
                view(WIDE_A, None, (64, 0), (48, 1)), view(buffer("b", (64, 64)), None, (64, 0), (48, 0)), 64, 64, 48
            ),
            "starts inside a panel of 64 columns and leaves it",
        ),
        (product(A, view(WIDE_B, None, (64, 0), (96, 1)), 64, 96, 64, "col"), "cross into the next"),
        (product(BYTES_A, BYTES_B, 64, 64, 64, "col"), "8-bit elements are stored N × K"),
        (product(A, view(buffer("b", (64, 64), elem=Elem.BF16)), 64, 64, 64), "cannot multiply f16 by bf16"),
        (product(A, B, 96, 64, 64), "96 × 64 is no multiple of the instruction's 64 × 16"),
    ],
)
def test_refusals(inside: Context, statement: ir.Mma, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        mma.emit_mma(inside, statement)


def test_plain_rows_are_no_operand(inside: Context) -> None:
    plain = ir.SharedBuffer("a", Elem.F16, (64, 64), 1, False, span(), 0)
    with pytest.raises(CompileError, match="a is stored row by row"):
        mma.emit_mma(inside, product(view(plain), view(buffer("b", (64, 64))), 64, 64, 64))


def test_rows_of_operands_start_at_eight(inside: Context) -> None:
    odd = ir.View(
        buffer("a", (128, 64)), (ir.ViewDim((ir.Level(lit(64), ir.Var(P), lit(4)),)), ir.ViewDim()), span()
    )  # fmt: skip
    with pytest.raises(CompileError, match="starts at a multiple of 8 rows"):
        mma.emit_mma(inside, product(odd, view(buffer("b", (64, 64))), 64, 64, 64))


def test_stores_that_may_overlap_are_kept_apart(inside: Context) -> None:
    """Each warp writes other rows of the second tile: it must not come before the first tile is complete."""
    out = buffer("out", (128, 64))
    acc = accumulator(64, 64)

    def tiles(*starts: tuple[int, int]) -> str:
        inside.meet()
        before = len(inside.out.lines)
        for row, step in starts:
            dims = (ir.ViewDim((ir.Level(lit(64), lit(row), lit(step)),)), ir.ViewDim())
            mma.emit_store(inside, ir.MmaStore(acc, ir.View(out, dims, span()), span()))
        return "\n".join(inside.out.lines[before:])

    assert tiles((0, 64), (1, 64)).count("named_barrier_sync") == 0
    assert tiles((0, 64), (1, 32)).count("named_barrier_sync") == 1
    assert tiles((0, 64), (0, 64)).count("named_barrier_sync") == 1


def test_stores_start_at_whole_chunks(inside: Context) -> None:
    dims = (ir.ViewDim(), ir.ViewDim((ir.Level(lit(64), lit(1), lit(4)),)))
    store = ir.MmaStore(accumulator(64, 64), ir.View(buffer("out", (64, 128)), dims, span()), span())
    with pytest.raises(CompileError, match="starts at a multiple of 16 bytes"):
        mma.emit_store(inside, store)
