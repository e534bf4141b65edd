"""What of a kernel reaches the analysis. Programs are compared as ``--dump=analyse`` prints them, or by part."""

import builder as b
import pytest
from builder import DATA, EMPTY, FULL, SOURCE, TILE, K, M, P, T, cdiv, one_role, op, text

from croqtile import ir
from croqtile.translate import translate
from hb_analyzer import model


def parameters(kernel):
    return {p.name: (p.minimum, p.maximum) for p in translate(kernel).parameters}


# --------------------------------------------------------------------------------------------------------------
# Roles, regions, loops


def test_a_gemm(golden):
    from croqtile.dump import program_text

    golden(program_text(translate(b.gemm(stages=2, consumers=2))))


def test_roles_are_specialised_by_their_value_of_p():
    program = translate(b.gemm(stages=2, consumers=3))
    assert [r.name for r in program.roles] == ["producer", "consumer 1", "consumer 2", "consumer 3"]
    assert [r.kind for r in program.roles] == ["thread", "warpgroup", "warpgroup", "warpgroup"]
    stores = [s.region for r in program.roles for s in r.body if isinstance(s, model.Access) and s.mode == "w"]
    assert stores == [((64 * i, 64 * i + 64), (0, 128)) for i in range(3)]


def test_short_constant_loops_are_straight_line_code():
    half, k = b.counter("half", 2), b.counter("k", 4)
    copies = b.foreach(half, b.copy_in(b.view(SOURCE), b.view(TILE, 0, (32, half)), FULL))
    steps = b.foreach(k, b.mma(b.view(TILE, 0, (64, 0), (16, k)), b.view(TILE, 1, (64, 0), (16, k))))
    # Abutting parts with nothing between them are one access.
    assert text(one_role(copies, b.trigger(FULL), steps, b.commit())) == [
        "w tma.copy into tile[0], ends with full[0], async",
        "trigger full[0]",
        "r mma reads tile[0], ends: group, async",
        "r mma reads tile[1], ends: group, async",
        "mma.commit",
    ]


def test_parts_that_something_comes_between_stay_apart():
    other = b.buffer("other", (64, 64))
    upper, lower = b.view(TILE, 0, (32, 0)), b.view(TILE, 0, (32, 1))
    body = (b.store(upper), b.store(b.view(other)), b.store(lower))
    assert len(text(one_role(*body, buffers=(TILE, other)))) == 3
    waited = (b.store(upper), b.wait(FULL), b.store(lower))
    assert len(text(one_role(*waited))) == 3


def test_an_offset_that_varies_is_an_unknown_region():
    k = b.counter("k", cdiv(K, 16))
    (access,) = translate(one_role(b.foreach(k, b.store(b.view(TILE, 0, (16, op(k, "%", 4))))))).roles[0].body[0].body
    assert access.region is None


@pytest.mark.parametrize("index", [lambda k: k, lambda k: op(k, "%", 5), lambda k: op(k, "-", 1), lambda k: DATA])
def test_a_tile_that_may_leave_its_buffer_is_opaque(index):
    """Beyond it lie other buffers."""
    k = b.counter("k", cdiv(K, 16))
    lines = text(one_role(b.foreach(k, b.store(b.view(TILE, 0, (16, index(k)))))))
    assert lines[1].startswith("opaque (tile): line ")


def test_a_tile_that_leaves_its_buffer_is_refused():
    kernel = one_role(b.store(b.view(TILE, 0, (64, 1))))
    assert text(kernel) == [f"opaque (tile): line {kernel.body[0].roles[0].body[0].span.line}: the tile leaves `tile`"]


# --------------------------------------------------------------------------------------------------------------
# Trip counts and conditions


def test_trip_counts_are_parameters_named_by_their_text():
    k, j = b.counter("k", cdiv(K, 64)), b.counter("j", op(op(K, "+", 63), "/", 64))
    kernel = one_role(b.foreach(k, b.wait(FULL)), b.foreach(j, b.wait(FULL)))
    assert parameters(kernel) == {"cdiv(K, 64)": (1, None)}
    assert text(kernel)[::2] == ["loop k < cdiv(K, 64)", "loop j < cdiv(K, 64)"]


def test_a_count_less_one_keeps_its_relation():
    n, k = b.value("n"), b.counter("k", op(cdiv(K, 64), "-", 1))
    ahead = b.when(op(op(k, "+", 1), "<", n), b.wait(FULL, op(op(k, "+", 1), "%", 4)))
    kernel = one_role(b.let(n, cdiv(K, 64)), b.foreach(k, ahead), b.wait(FULL, op(op(n, "-", 1), "%", 4)))
    # k + 1 < n always holds in a loop of n − 1 iterations.
    assert text(kernel) == ["loop k < n - 1", "wait full[(k + 1) % 4]", "wait full[(n - 1) % 4]"]
    assert parameters(kernel) == {"n": (1, None)}


def test_a_condition_on_a_count_is_kept():
    n, k = b.value("n"), b.counter("k", cdiv(K, 64))
    ahead = b.when(op(op(k, "+", 1), "<", n), b.wait(FULL))
    assert text(one_role(b.let(n, cdiv(K, 64)), b.foreach(k, ahead))) == [
        "loop k < n",
        "if (k + 1) < n",
        "wait full[0]",
    ]


def test_the_key_blocks_of_causal_attention_are_one_count():
    """Neither cdiv(SEQ, 128) nor the block index says that there is at least one; the bound of the grid does."""
    seq = b.dim("SEQ")
    block = b.grid("m", cdiv(seq, 128))
    bm, bound = b.value("bm"), b.value("kv_bound")
    k = b.counter("k", bound)
    kernel = b.kernel(
        b.let(bm, op(op(cdiv(seq, 128), "-", 1), "-", block)),
        b.let(bound, cdiv(op(op(bm, "+", 1), "*", 128), 128)),
        b.roles(b.role((0,), b.foreach(k, b.wait(FULL)), b.wait(FULL, op(op(bound, "-", 1), "%", 4)))),
        events=(FULL,),
        dims=(seq,),
        grid_indices=(block,),
    )
    assert parameters(kernel) == {"kv_bound": (1, None)}
    assert text(kernel)[-1] == "wait full[(kv_bound - 1) % 4]"


def test_counts_from_the_same_dimension_are_never_guessed_equal():
    k, j = b.counter("k", cdiv(K, 64)), b.counter("j", op(K, "/", 64))
    program = translate(one_role(b.foreach(k, b.wait(FULL)), b.foreach(j, b.wait(FULL))))
    assert {p.name for p in program.parameters} == {"K / 64", "cdiv(K, 64)"}
    assert program.assumptions == ("`K / 64` and `cdiv(K, 64)` are analysed as unrelated values",)


def test_sums_that_share_counts_keep_them_apart():
    rows, i, j = b.value("rows"), b.counter("i", cdiv(M, 64)), b.counter("j", op(cdiv(M, 64), "+", cdiv(K, 64)))
    kernel = one_role(b.let(rows, cdiv(M, 64)), b.foreach(i, b.wait(FULL)), b.foreach(j, b.wait(EMPTY)))
    assert parameters(kernel) == {"cdiv(M, 64)": (1, None), "cdiv(K, 64)": (1, None)}
    assert "loop j < cdiv(K, 64) + cdiv(M, 64)" in text(kernel)


def test_a_condition_on_launch_values_alone_is_one_truth_value():
    block = b.grid("bm", cdiv(M, 64))
    test = op(op(block, "*", 64), "<", op(M, "-", 64))
    kernel = one_role(b.when(test, b.wait(FULL), orelse=(b.wait(EMPTY),)), grid_indices=(block,))
    (name,) = parameters(kernel)
    assert parameters(kernel)[name] == (0, 1)
    assert text(kernel) == [f"if {name}", "wait full[0]", "else", "wait empty[0]"]


@pytest.mark.parametrize(("one", "other"), [("==", "!="), ("<", ">="), (">", "<=")])
def test_a_condition_and_its_opposite_are_one_truth_value(one, other):
    kernel = one_role(b.when(op(M, one, 3), b.wait(FULL)), b.when(op(M, other, 3), b.trigger(EMPTY)))
    assert len(parameters(kernel)) == 1
    assert not translate(kernel).assumptions


def test_conditions_on_the_same_value_are_said_to_be_unrelated():
    kernel = one_role(b.when(op(M, "==", 1), b.wait(FULL)), b.when(op(M, ">", 1), b.trigger(EMPTY)))
    assert translate(kernel).assumptions == ("`(1 < M)` and `(M == 1)` are analysed as unrelated values",)


def test_floating_point_values_are_no_integers():
    """7 / 2 > 3 where 7 is a float: a branch that integers would not take."""
    half, captured = (
        ir.Symbol(name, kind, name, ctype="float")
        for name, kind in (("x", ir.SymbolKind.VALUE), ("s", ir.SymbolKind.CAPTURED))
    )
    for symbol in (half, captured):
        branch = b.when(op(op(symbol, "/", 2), ">", 3), b.trigger(FULL))
        kernel = one_role(b.let(half, 7), branch, captured=(ir.Captured(captured, b.lit(7), b.span()),))
        (line,) = text(kernel)
        assert line.startswith("opaque (full)")
        assert line.endswith(f"`{symbol.name}` is a float, with which arithmetic is another")


def test_captured_scalars_are_inlined():
    tiles = ir.Symbol("tiles", ir.SymbolKind.CAPTURED, "tiles")
    k = b.counter("k", tiles)
    kernel = one_role(b.foreach(k, b.wait(FULL)), captured=(ir.Captured(tiles, cdiv(K, 64), b.span()),))
    assert text(kernel)[0] == "loop k < cdiv(K, 64)"


def test_constant_conditions_choose_a_branch():
    first = b.when(op(P, "==", 1), b.wait(FULL), orelse=(b.wait(EMPTY),))
    assert text(one_role(first)) == ["wait full[0]"]


# --------------------------------------------------------------------------------------------------------------
# What the model cannot express


def test_a_branch_on_data_is_opaque_for_what_it_touches():
    branch = b.when(DATA, b.trigger(FULL), b.store(b.view(TILE, 0)))
    (line,) = text(one_role(branch))
    assert line.startswith("opaque (tile, full)")
    assert "depends on data" in line


def test_a_branch_on_data_that_touches_nothing_shared_is_left_out():
    apply = ir.FragApply(b.ACC, (), ir.FloatLit("0.0f"), b.span())
    assert text(one_role(b.when(DATA, apply), b.wait(FULL))) == ["wait full[0]"]


def test_matrix_instructions_under_an_unknown_branch_make_every_operand_unknown():
    other = b.buffer("other", (64, 64))
    body = (
        b.when(DATA, b.mma(b.view(TILE, 0), b.view(TILE, 1)), b.commit()),
        b.mma(b.view(other), b.view(other)),
        b.commit(),
        b.drain(1),
    )
    assert text(one_role(*body, buffers=(TILE, other)))[0].startswith("opaque (tile, other)")


def test_a_barrier_under_an_unknown_branch_orders_nothing():
    sync = ir.SyncWarpgroups((0, 1), b.span())
    kernel = b.kernel(b.roles(b.role((0,), sync), b.role((1,), b.when(DATA, sync))), tensors=(SOURCE,))
    assert not any(isinstance(s, model.Barrier) for r in translate(kernel).roles for s in r.body)


def test_a_branch_on_the_thread_of_a_warpgroup_is_opaque():
    assert text(one_role(b.when(op(T, "==", 0), b.trigger(FULL))))[0].startswith("opaque (full)")
    assert text(one_role(b.when(op(T, "==", 0), b.trigger(FULL)), thread=0)) == ["trigger full[0]"]


def test_a_loop_of_unknown_length_is_opaque():
    assert text(one_role(b.foreach(b.counter("k", DATA), b.wait(FULL))))[0].startswith("opaque (full)")


def test_multicast_copies_are_opaque():
    copy = b.copy_in(b.view(SOURCE), b.view(TILE, 0), FULL, 0, multicast=True)
    assert text(one_role(copy))[0].startswith("opaque (tile, full)")


# --------------------------------------------------------------------------------------------------------------
# Block level


def test_statements_at_block_level_follow_the_join_of_the_roles():
    out = b.view(SOURCE)
    kernel = b.kernel(
        b.roles(b.role((0,), b.store(b.view(TILE, 0))), b.role((1,), b.wait(FULL))),
        b.copy_out(b.view(TILE, 0), out),
        buffers=(TILE,),
        events=(FULL,),
        tensors=(SOURCE,),
    )
    program = translate(kernel)
    assert [r.name for r in program.roles] == ["warpgroup 0", "warpgroup 1", "block"]
    assert text(kernel, 0)[-1] == "barrier join: warpgroup 0, warpgroup 1, block"
    assert text(kernel, 2) == [
        "barrier start: warpgroup 0, warpgroup 1, block",
        "barrier join: warpgroup 0, warpgroup 1, block",
        "r tma.copy out of tile[0], ends: here, async",
    ]


def test_roles_inside_a_loop_join_in_every_iteration():
    tile = b.counter("tile", cdiv(M, 64))
    kernel = b.kernel(
        b.foreach(tile, b.roles(b.role((0,), b.store(b.view(TILE, 0)))), b.copy_out(b.view(TILE, 0), b.view(SOURCE))),
        buffers=(TILE,),
        dims=(M, K),
        tensors=(SOURCE,),
    )
    for role in (0, 1):
        lines = text(kernel, role)
        assert lines[0] == "loop tile < cdiv(M, 64)"
        assert [line.split(":")[0] for line in lines if line.startswith("barrier")] == ["barrier start", "barrier join"]


def test_a_trigger_at_block_level_orders_nothing():
    kernel = b.kernel(b.trigger(FULL), b.roles(b.role((0,), b.wait(FULL))), events=(FULL,))
    assert text(kernel, 1)[0].startswith("opaque (full)")


def test_a_barrier_of_the_whole_cta_counts_the_threads_that_run_no_role():
    sync = ir.SyncCta(b.span())
    kernel = b.kernel(b.roles(b.role((0,), sync, thread=0), b.role((1,), sync)))
    program = translate(kernel)
    assert {r.name: len(r.body) for r in program.roles} == {"warpgroup 0": 0, "thread": 1, "warpgroup 1": 1}


def test_two_copies_into_one_place_are_two_accesses():
    copy = b.copy_in(b.view(SOURCE), b.view(TILE, 0), FULL)
    assert len(text(one_role(copy, copy))) == 2
