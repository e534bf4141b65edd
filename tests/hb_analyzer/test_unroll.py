"""Unrolling: nodes, ends of accesses, which setting each wait waits for."""

from __future__ import annotations

import pytest

from hb_analyzer.model import (
    Access,
    Barrier,
    BinOp,
    Buffer,
    Commit,
    Const,
    Drain,
    Event,
    If,
    Loop,
    Name,
    Opaque,
    Parameter,
    Program,
    Role,
    Statement,
    Step,
    Trigger,
    Wait,
)
from hb_analyzer.unroll import ModelError, TooLargeError, Unroller, Unrolling, unroll
from tests.hb_analyzer.programs import gemm, load, ring


def program(*bodies: tuple[Statement, ...], arrivals: int = 1, slots: int = 1, initial: int = 0) -> Program:
    roles = tuple(Role(f"r{i}", body) for i, body in enumerate(bodies))
    events = (Event("e", slots, arrivals, initial),)
    return Program("p", (Buffer("A", 64, slots=4), Buffer("B", 64)), events, roles, (Parameter("N"),))


def preds(run: Unrolling, node: int) -> list[str]:
    return sorted(str(run.site(p)) for p in run.preds[node])


def test_program_order_is_a_chain() -> None:
    run = unroll(program((Access("A", "w"), Access("B", "r"))), {})
    assert run.preds == [[], [0]]
    assert [access.end for access in run.accesses] == [0, 1]


def test_loops_branches_and_running_counters_are_evaluated() -> None:
    body: tuple[Statement, ...] = (
        If(BinOp(">", Name("i"), Const(0)), (Access("A", "w", ring("c", 4)),), (Access("B", "w"),)),
        Step("c", 3),
    )
    run = unroll(program((Loop("i", Name("N"), body),)), {"N": 4})
    assert [(a.op.buffer, a.slot) for a in run.accesses] == [("B", 0), ("A", 3), ("A", 2), ("A", 1)]
    assert [run.iterations[a.begin] for a in run.accesses] == [(0,), (1,), (2,), (3,)]


def test_a_negative_trip_count_runs_no_iteration() -> None:
    run = unroll(program((Loop("i", BinOp("-", Name("N"), Const(2)), (Access("A", "w"),)),)), {"N": 1})
    assert run.accesses == []


def test_the_kth_wait_waits_for_the_kth_setting() -> None:
    run = unroll(program((Trigger("e"), Trigger("e")), (Wait("e"), Wait("e"))), {})
    first, second = run.waits["e", 0][1]
    assert preds(run, first) == ["r0: trigger e[0]"]
    assert preds(run, second) == ["r0: trigger e[0]", "r1: wait e[0]"]
    assert run.preds[second][-1] == run.triggers["e", 0][0][1]


def test_initial_settings_are_used_first() -> None:
    run = unroll(program((Trigger("e"),), (Wait("e"), Wait("e")), initial=1), {})
    first, second = run.waits["e", 0][1]
    assert run.preds[first] == []
    assert run.triggers["e", 0][0][0] in run.preds[second]


def test_a_setting_needs_every_instance() -> None:
    run = unroll(program((Trigger("e"),), (Trigger("e"),), (Wait("e"),), arrivals=2), {})
    (setting,) = run.settings["e", 0]
    assert len(setting.triggers) == 2
    assert run.preds[run.waits["e", 0][2][0]] == [setting.node]


def test_a_wait_without_its_setting_is_stuck() -> None:
    run = unroll(program((Trigger("e"),), (Wait("e"), Wait("e"))), {})
    (stuck,) = run.stuck
    assert stuck.why == "wait 2 for e[0] never returns: the slot is set 1 times only"


def test_fewer_triggering_instances_than_arrivals_never_set_the_slot() -> None:
    run = unroll(program((Trigger("e"),), (Wait("e"),), arrivals=2), {})
    assert [stuck.why for stuck in run.stuck] == ["wait 1 for e[0] never returns: the slot is never set"]


def test_silent_events_order_nothing() -> None:
    source = program((load("A", "e", Const(0)), Trigger("e")), (Wait("e"), Wait("e")))
    run = unroll(source, {}, silent={"e"})
    assert run.stuck == []
    assert run.accesses[0].end is None
    assert run.preds[run.waits["e", 0][1][0]] == []


def test_a_copy_ends_at_the_setting_that_the_next_trigger_closes() -> None:
    copy = load("A", "e", Const(0))
    run = unroll(program((copy, copy, Trigger("e"), copy, Trigger("e"))), {})
    ends = [access.end for access in run.accesses]
    first, second = (setting.node for setting in run.settings["e", 0])
    assert ends == [first, first, second]


def test_a_copy_after_the_last_trigger_never_ends() -> None:
    run = unroll(program((Trigger("e"), load("A", "e", Const(0)))), {})
    assert run.accesses[0].end is None


def test_a_copy_is_not_closed_by_another_role() -> None:
    run = unroll(program((load("A", "e", Const(0)),), (Trigger("e"),)), {})
    assert run.accesses[0].end is None


def test_matrix_groups_end_at_the_drain_that_covers_them() -> None:
    read = Access("A", "r", ends="group")
    body = (read, Commit(), read, Commit(), Drain(1), read, Drain(0))
    run = unroll(program(body), {})
    drains = [node for node, op in enumerate(run.ops) if isinstance(op, Drain)]
    # The third read was issued after the last commit: no drain covers it.
    assert [access.end for access in run.accesses] == [drains[0], drains[1], None]


def test_a_barrier_is_one_node_for_all_members() -> None:
    meet = Barrier("b", ("r0", "r1"))
    run = unroll(program((Access("A", "w"), meet), (Access("B", "w"), meet, Access("A", "r"))), {})
    (node,) = [n for n, op in enumerate(run.ops) if isinstance(op, Barrier)]
    assert preds(run, node) == ["r0: write A[0]", "r1: write B[0]"]
    assert run.preds[run.accesses[2].begin] == [node]
    assert run.stuck == []


@pytest.mark.parametrize(
    ("bodies", "why"),
    [
        (((Barrier("b", ("r0", "r1")),), ()), "barrier b: r1 never arrives"),
        (
            ((Barrier("b", ("r0", "r1")),), (Barrier("b", ("r0", "r1")),), (Barrier("b", ("r0", "r1")),)),
            "barrier b: r2 arrives but is no member",
        ),
        (
            ((Barrier("b", ("r0", "r1")),), (Barrier("b", ("r0", "r1", "r2")),), (Barrier("b", ("r0", "r1", "r2")),)),
            "barrier b is used with different members",
        ),
    ],
)
def test_barrier_arrivals_must_match(bodies: tuple[tuple[Statement, ...], ...], why: str) -> None:
    assert why in [stuck.why for stuck in unroll(program(*bodies), {}).stuck]


def test_opaque_statements_add_no_node() -> None:
    assert unroll(program((Opaque("pointer arithmetic"),)), {}).preds == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ((Access("A", "w", Const(4)),), "slot 4 of buffer A is out of range (it has 4)"),
        ((Trigger("e", Const(1)),), "slot 1 of event e is out of range (it has 1)"),
        ((Access("A", "w", Name("x")),), "role r0: 'x' has no value here"),
        ((Access("A", "w", BinOp("%", Const(1), Const(0))),), "division by zero"),
    ],
)
def test_programs_that_break_the_model(body: tuple[Statement, ...], message: str) -> None:
    with pytest.raises(ModelError) as caught:
        unroll(program(body), {})
    assert message in str(caught.value)


def test_the_node_budget_covers_all_runs() -> None:
    unroller = Unroller(gemm(), limit=100)
    unroller.run({"N": 2})
    with pytest.raises(TooLargeError):
        unroller.run({"N": 12})
