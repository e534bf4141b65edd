"""Running the roles: loops, branches, counters, groups; programs that break the model."""

from __future__ import annotations

import pytest

from hb_analyzer.model import (
    Access,
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
)
from hb_analyzer.unroll import Unroller, unroll
from hb_analyzer.unrolling import ModelError, TooLargeError
from tests.hb_analyzer.programs import gemm, ring


def program(*bodies: tuple[Statement, ...], arrivals: int = 1, slots: int = 1, initial: int = 0) -> Program:
    roles = tuple(Role(f"r{i}", body) for i, body in enumerate(bodies))
    events = (Event("e", slots, arrivals, initial),)
    return Program("p", (Buffer("A", 64, slots=4), Buffer("B", 64)), events, roles, (Parameter("N"),))


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


def test_matrix_groups_end_at_the_drain_that_covers_them() -> None:
    read = Access("A", "r", ends="group")
    body = (read, Commit(), read, Commit(), Drain(1), read, Drain(0))
    run = unroll(program(body), {})
    drains = [node for node, op in enumerate(run.ops) if isinstance(op, Drain)]
    # The third read was issued after the last commit: no drain covers it.
    assert [access.end for access in run.accesses] == [drains[0], drains[1], None]


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


def test_long_loops_are_given_up() -> None:
    for body in ((Step("c"),), (Access("A", "w"),)):
        with pytest.raises(TooLargeError):
            unroll(program((Loop("i", Const(10**9), body),)), {})
