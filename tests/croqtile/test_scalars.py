"""Slots and counts: scalars that change, followed through loops and branches."""

import builder as b
import pytest
from builder import DATA, EMPTY, FULL, K, M, cdiv, one_role, op, text

from croqtile import ir


def test_a_guard_makes_the_previous_slot_known():
    k = b.counter("k", cdiv(K, 64))
    previous = b.trigger(EMPTY, op(op(k, "-", 1), "%", 4))
    assert text(one_role(b.foreach(k, b.when(op(k, ">", 0), previous)))) == [
        "loop k < cdiv(K, 64)",
        "if 0 < k",
        "trigger empty[(k - 1) % 4]",
    ]
    (line,) = [line for line in text(one_role(b.foreach(k, previous))) if line.startswith("opaque")]
    assert "(empty)" in line
    assert "not provably ≥ 0" in line


@pytest.mark.parametrize("slot", [lambda k: k, lambda k: op(k, "%", 5), lambda k: op(k, "+", 4)])
def test_a_slot_that_may_not_exist_is_opaque(slot):
    k = b.counter("k", cdiv(K, 64))
    lines = text(one_role(b.foreach(k, b.wait(FULL, slot(k)))))
    assert lines[1].startswith("opaque (full): line")
    assert "is not provably within 0 … 3" in lines[1]


def test_a_count_that_runs_on_across_tiles():
    it, stage = b.value("it", mutable=True), b.value("stage")
    tile, k = b.counter("tile", cdiv(M, 64)), b.counter("k", cdiv(K, 64))
    body = (b.let(stage, op(it, "%", 4)), b.wait(FULL, stage), b.assign(it, op(it, "+", 1)), b.trigger(EMPTY, stage))
    kernel = one_role(b.let(it, 2), b.foreach(tile, b.foreach(k, *body)))
    assert text(kernel) == [
        "loop tile < cdiv(M, 64)",
        "loop k < cdiv(K, 64)",
        "wait full[(it_ + 2) % 4]",
        # The stage is that of the count before the increment, which therefore comes last.
        "trigger empty[(it_ + 2) % 4]",
        "step it_ += 1",
    ]


def test_a_stage_that_counts_round_across_tiles():
    stage, tile, k = b.value("stage", mutable=True), b.counter("tile", cdiv(M, 64)), b.counter("k", cdiv(K, 64))
    body = (b.wait(FULL, stage), b.assign(stage, op(op(stage, "+", 1), "%", 4)))
    kernel = one_role(b.let(stage, 0), b.foreach(tile, b.foreach(k, *body)))
    assert text(kernel)[2:] == ["wait full[stage_ % 4]", "step stage_ += 1"]


@pytest.mark.parametrize("loops", [1, 2])
def test_a_stage_that_starts_outside_its_round_is_not_followed(loops):
    """From 5 in steps of (x + 1) % 4: the first stage is 5, not 1."""
    stage, extents = b.value("stage", mutable=True), [cdiv(M, 64), cdiv(K, 64)][:loops]
    body = (b.wait(FULL, op(stage, "%", 4)), b.assign(stage, op(op(stage, "+", 1), "%", 4)))
    for extent in extents:
        body = (b.foreach(b.counter("k", extent), *body),)
    (line,) = [line for line in text(one_role(b.let(stage, 5), *body)) if line.startswith("opaque")]
    assert "`stage` is not known" in line


def test_a_count_in_one_loop_is_that_loop_s_counter():
    it, k = b.value("it", mutable=True), b.counter("k", cdiv(K, 64))
    body = (b.wait(FULL, op(it, "%", 4)), b.assign(it, op(it, "+", 1)))
    kernel = one_role(b.let(it, 0), b.foreach(k, *body), b.wait(FULL, op(it, "%", 4)))
    assert text(kernel) == ["loop k < cdiv(K, 64)", "wait full[k % 4]", "wait full[cdiv(K, 64) % 4]"]


def test_a_count_that_steps_under_a_condition():
    it, k = b.value("it", mutable=True), b.counter("k", cdiv(K, 64))
    step = b.when(op(k, ">", 2), b.assign(it, op(it, "+", 1)))
    kernel = one_role(b.let(it, 0), b.foreach(k, b.wait(FULL, op(it, "%", 4)), step))
    assert text(kernel) == ["loop k < cdiv(K, 64)", "wait full[it_ % 4]", "if 2 < k", "step it_ += 1"]


def test_a_loop_that_changes_its_own_trip_count_is_opaque():
    it, k = b.value("it", mutable=True), b.counter("k", cdiv(K, 64))
    loop = ir.ForEach(k, ir.Var(it), (b.wait(FULL), b.assign(it, op(it, "+", 1))), b.span())
    assert "its body changes its own trip count" in text(one_role(b.let(it, cdiv(K, 64)), loop))[0]


def test_an_assignment_that_the_analysis_cannot_follow_is_opaque():
    it, k = b.value("it", mutable=True), b.counter("k", cdiv(K, 64))
    body = (b.wait(FULL, op(it, "%", 4)), b.assign(it, op(op(it, "*", 3), "+", 1)))
    lines = text(one_role(b.let(it, 0), b.foreach(k, *body)))
    assert "`it` is not known" in lines[1]


def test_a_count_that_unknown_code_changes_is_not_followed_anywhere():
    """The wait comes before the change in the text, and after it in the next iteration."""
    it, k = b.value("it", mutable=True), b.counter("k", cdiv(K, 64))
    maybe = b.when(DATA, b.assign(it, op(it, "+", 1)))
    loop = b.foreach(b.counter("tile", cdiv(M, 64)), b.foreach(k, b.wait(FULL, op(it, "%", 4)), maybe))
    lines = text(one_role(b.let(it, 0), loop))
    assert lines[2].startswith("opaque (full)")


def test_a_count_that_starts_from_another_is_not_mixed_with_it():
    one, two = b.value("one", mutable=True), b.value("two", mutable=True)
    k, j = b.counter("k", cdiv(K, 64)), b.counter("j", cdiv(M, 64))
    step_one, step_two = b.assign(one, op(one, "+", 1)), b.assign(two, op(two, "+", 1))
    twice = b.foreach(k, b.when(op(k, ">", 1), step_one))
    body = (b.wait(FULL, op(two, "%", 4)), step_one, b.when(op(j, ">", 1), step_two))
    lines = text(one_role(b.let(one, 0), twice, b.let(two, one), b.foreach(j, *body)))
    assert any(line.startswith("opaque (full)") for line in lines)


def test_a_loop_as_long_as_a_count_that_it_changes_is_opaque():
    it, n, k = b.value("it", mutable=True), b.value("n"), b.counter("k", cdiv(K, 64))
    counted = b.foreach(k, b.when(op(k, ">", 1), b.assign(it, op(it, "+", 1))))
    again = ir.ForEach(b.counter("i", n), ir.Var(n), (b.wait(FULL), b.assign(it, op(it, "+", 1))), b.span())
    lines = text(one_role(b.let(it, 0), counted, b.let(n, it), again))
    assert lines[-1].startswith("opaque (full)")


def test_a_fact_about_a_count_ends_when_the_count_changes():
    """Inside the branch the count is at most 2 only until the loop steps it."""
    it, k = b.value("it", mutable=True), b.counter("k", cdiv(K, 64))
    counted = b.foreach(k, b.when(op(k, ">", 1), b.assign(it, op(it, "+", 1))))
    more = b.foreach(b.counter("j", cdiv(M, 64)), b.when(op(k, ">", 1), b.assign(it, op(it, "+", 1))))
    body = (b.wait(FULL, it), more, b.wait(EMPTY, it))
    lines = text(one_role(b.let(it, 0), counted, b.foreach(k, b.when(op(it, "<", 3), *body))))
    assert any(line == "wait full[it_]" for line in lines)
    assert any(line.startswith("opaque (empty)") for line in lines)


def test_a_loop_that_hides_a_running_count_has_another_name():
    """The model knows both by name: a stage that was computed from the count is not the loop's counter."""
    count, stage = ir.Symbol("k", ir.SymbolKind.VALUE, "k", mutable=True), b.value("stage")
    tile, k, j = b.counter("tile", cdiv(M, 64)), b.counter("k", cdiv(K, 64)), b.counter("j", cdiv(M, 32))
    steps = b.foreach(j, b.assign(count, op(count, "+", 1)))
    body = (b.let(stage, op(count, "%", 4)), b.foreach(k, b.wait(FULL, stage)), steps)
    lines = text(one_role(b.let(count, 0), b.foreach(tile, *body)))
    assert lines[1:3] == ["loop k_ < cdiv(K, 64)", "wait full[k % 4]"]
