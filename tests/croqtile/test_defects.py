"""What the engine finds wrong, at the lines of the program, in both modes."""

from dataclasses import replace

import builder as b
import pytest
from builder import DATA, SOURCE, K, M, cdiv, op

from croqtile import diagnostics as diag
from croqtile.analyse import analyse
from tests.croqtile import tile


@pytest.mark.parametrize("sala", [True, False])
def test_a_wait_that_nothing_satisfies_is_a_deadlock(sala):
    e = b.event("e")
    waiting = b.wait(e)
    k = b.counter("k", cdiv(K, 64))
    kernel = b.kernel(
        b.roles(b.role((0,), b.foreach(k, waiting)), b.role((1,), b.trigger(e))), events=(e,), dims=(M, K)
    )
    (error, *_) = analyse(kernel, sala).errors
    assert isinstance(error, diag.Deadlock)
    assert error.span == waiting.span
    assert "with cdiv(K, 64) = 2" in error.message


def test_a_ring_that_is_refilled_without_waiting_overruns_and_races():
    tile, full = b.buffer("tile", (64, 64), 2), b.event("full", 2)
    p, c = b.counter("k", cdiv(K, 64)), b.counter("k", cdiv(K, 64))
    fill = b.copy_in(b.view(SOURCE), b.view(tile, op(p, "%", 2)), full, op(p, "%", 2))
    read = b.mma(b.view(tile, op(c, "%", 2)), b.view(tile, op(c, "%", 2)))
    kernel = b.kernel(
        b.roles(
            b.role((0,), b.foreach(p, fill, b.trigger(full, op(p, "%", 2))), thread=0),
            b.role((1,), b.foreach(c, b.wait(full, op(c, "%", 2)), read, b.commit(), b.drain())),
        ),
        buffers=(tile,),
        events=(full,),
        dims=(M, K),
        tensors=(SOURCE,),
    )
    errors = analyse(kernel).errors
    assert any(isinstance(error, diag.EventOverrun) for error in errors)
    races = [error for error in errors if isinstance(error, diag.SharedMemoryRace)]
    assert any({race.span, *(note.span for note in race.notes)} == {fill.span, read.span} for race in races)


def released_early(pending):
    """A ring whose stages are released after ``mma.wait<pending>``."""
    tile, full, empty = b.buffer("tile", (64, 64), 2), b.event("full", 2), b.event("empty", 2)
    p, c, s = b.counter("k", cdiv(K, 64)), b.counter("k", cdiv(K, 64)), b.counter("s", 2)
    slot_p, slot_c = op(p, "%", 2), op(c, "%", 2)
    fill = b.copy_in(b.view(SOURCE), b.view(tile, slot_p), full, slot_p)
    read, release = b.mma(b.view(tile, slot_c), b.view(tile, slot_c)), b.trigger(empty, slot_c)
    kernel = b.kernel(
        b.roles(
            b.role((0,), b.foreach(p, b.wait(empty, slot_p), fill, b.trigger(full, slot_p)), thread=0),
            b.role(
                (1,),
                b.foreach(s, b.trigger(empty, s)),
                b.foreach(
                    c, b.wait(full, slot_c), read, b.commit(), *([] if pending is None else [b.drain(pending)]), release
                ),
            ),
        ),
        buffers=(tile,),
        events=(full, empty),
        dims=(M, K),
        tensors=(SOURCE,),
    )
    return kernel, fill, read, release


def test_an_operand_released_while_still_read_names_both_lines():
    kernel, fill, read, release = released_early(None)
    (error,) = analyse(kernel).errors
    assert isinstance(error, diag.OperandReleased)
    assert (error.buffer, error.event) == ("tile", "empty[k % 2]")
    assert error.span == release.span
    assert [note.span for note in error.notes] == [read.span, fill.span]


def test_an_operand_released_after_it_was_read_is_fine():
    kernel, *_ = released_early(0)
    assert analyse(kernel).diagnostics == ()


def test_what_may_be_imagined_is_a_warning():
    """A trigger under a condition on data: the analysis orders nothing by it, the program may be right."""
    e, tile = b.event("e"), b.buffer("tile", (64, 64))
    kernel = b.kernel(
        b.roles(
            b.role((0,), b.store(b.view(tile)), b.when(DATA, b.trigger(e), orelse=(b.trigger(e),))),
            b.role((1,), b.wait(e), b.mma(b.view(tile), b.view(tile)), b.commit(), b.drain()),
        ),
        buffers=(tile,),
        events=(e,),
        tensors=(SOURCE,),
    )
    analysis = analyse(kernel)
    assert analysis.errors == ()
    (warning,) = analysis.diagnostics
    assert isinstance(warning, diag.PossibleDefect)
    assert "depends on data" in warning.message


def test_nothing_overlaps_while_an_event_may_be_overrun():
    """Nobody holds the producer back: a waiter may be lapped. A warning only, since other code is not followed."""
    e, other = b.event("e"), b.event("other")
    first, second = (b.buffer(name, (64, 64)) for name in ("first", "second"))

    def analysis(*, overrun):
        kernel = b.kernel(
            b.roles(
                b.role((0,), *[b.trigger(e)] * (1 + 2 * overrun), b.when(DATA, b.trigger(other))),
                b.role((1,), b.wait(e), b.store(b.view(first)), b.store(b.view(second))),
            ),
            buffers=(first, second),
            events=(e, other),
            tensors=(SOURCE,),
        )
        return analyse(kernel)

    assert analysis(overrun=False).bytes == 8192
    doubtful = analysis(overrun=True)
    assert doubtful.bytes == 16384 and not doubtful.errors
    assert [type(d) for d in doubtful.diagnostics] == [diag.PossibleDefect, diag.OverlapUnproved]


def test_counts_that_only_look_unrelated_give_a_warning():
    e = b.event("e", 1)
    k, j = b.counter("k", cdiv(K, 64)), b.counter("j", op(K, "/", 64))
    kernel = b.kernel(
        b.roles(b.role((0,), b.foreach(k, b.trigger(e))), b.role((1,), b.foreach(j, b.wait(e)))),
        events=(e,),
        dims=(M, K),
    )
    analysis = analyse(kernel)
    assert all(isinstance(d, diag.PossibleDefect) or d.severity == "error" for d in analysis.diagnostics)
    deadlocks = [d for d in analysis.diagnostics if isinstance(d, diag.PossibleDefect) and d.kind == "deadlock"]
    assert deadlocks
    assert "are analysed as unrelated values" in deadlocks[0].message


def test_clusters_give_one_warning():
    """Every tile comes from both CTAs: the analysis does not know what the wait waits for."""
    tile, full = b.buffer("tile", (64, 64)), b.event("full")
    copy = b.copy_in(b.view(SOURCE), b.view(tile), full, multicast=True)
    kernel = b.kernel(
        b.roles(
            b.role((0,), copy, b.trigger(full), thread=0),
            b.role((1,), b.wait(full), b.mma(b.view(tile), b.view(tile)), b.commit(), b.drain()),
        ),
        buffers=(tile,),
        events=(full,),
        tensors=(SOURCE,),
    )
    (warning,) = analyse(replace(kernel, cluster=2)).diagnostics
    assert isinstance(warning, diag.ClusterUnchecked)
    assert warning.span == copy.span
    assert warning.severity == "warning"


@pytest.mark.parametrize("sala", [True, False])
def test_what_a_function_does_to_its_arguments_is_not_known(tmp_path, sala):
    """Two warpgroups call it on the same tile: it may only read, or leave each its own half. But nothing overlaps."""
    text = tile.edited(
        tile.GEMM,
        [
            ("shared f16 [128, 128] out_s;", "shared f16 [128, 128] out_s; shared f16 [64, 64] bias_s;"),
            ("sync.wg 1, 2;", "call scale(bias_s, p); sync.wg 1, 2;"),
        ],
    )
    analysis = analyse(tile.lowered(tmp_path, text), sala)
    assert not analysis.errors
    (warning,) = analysis.diagnostics
    assert isinstance(warning, diag.PossibleDefect)
    assert "'scale' may read only, or touch only a part of its argument" in warning.message


def test_a_part_that_changes_may_be_another_one(tmp_path):
    """Stages side by side in one buffer: which columns a copy writes is not known, so that two may not meet."""
    beside = [("shared f16 [128, 64] lhs_s[4];", "shared f16 [128, 256] lhs_s;")]
    beside += [("=> lhs_s[stage];", "=> lhs_s.subspan(128, 64).at(0, stage);")]
    beside += [("lhs_s[stage].subspan(64, 64).at(p - 1, 0)", "lhs_s.subspan(64, 64).at(p - 1, stage)")]
    analysis = analyse(tile.lowered(tmp_path, tile.edited(tile.GEMM, beside)))
    assert not analysis.errors
    assert "they may touch different parts of 'lhs_s'" in analysis.diagnostics[0].message


def test_a_copy_that_nobody_waits_for_is_an_error_at_its_line():
    tile, full = b.buffer("tile", (64, 64)), b.event("full")
    first, second = (b.copy_in(b.view(SOURCE), b.view(tile), full) for _ in range(2))
    wait, back = b.wait(full), b.event("back")
    producer = b.role((0,), first, b.trigger(full), b.wait(back), second, b.trigger(full), thread=0)

    def kernel(*more):
        roles = b.roles(producer, b.role((1,), wait, b.trigger(back), *more))
        return b.kernel(roles, buffers=(tile,), events=(full, back), tensors=(SOURCE,))

    (error,) = analyse(kernel()).errors
    assert isinstance(error, diag.CopyUnawaited)
    assert error.span == second.span
    assert "nothing waits for the setting of 'full' that it completes" in error.message
    assert analyse(kernel(b.wait(full))).errors == ()
