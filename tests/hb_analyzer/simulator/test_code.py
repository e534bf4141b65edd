"""Programs as straight lines of instructions."""

from __future__ import annotations

import pytest

from hb_analyzer.model import Access, Barrier, Buffer, Commit, Const, Drain, Event, Loop, Name, Program, Role, Wait
from hb_analyzer.simulator.code import DRAIN, ISSUE, MEET, TRIGGER, IllFormedError, compile_program
from tests.hb_analyzer.programs import gemm, persistent_gemm, store


def roles(*bodies: tuple[object, ...]) -> Program:
    built = tuple(Role(f"r{i}", body) for i, body in enumerate(bodies))  # type: ignore[arg-type]
    return Program("p", (Buffer("A", 64), Buffer("B", 64)), (Event("e"),), built)


def test_loops_are_laid_out_and_triggers_counted() -> None:
    code = compile_program(gemm(stages=2), {"N": 5})
    producer = code.threads[0].code
    assert len(producer) == 5 * 4
    assert [(i.key, i.number) for i in producer if i.kind == TRIGGER] == [
        (("full", 0), 0),
        (("full", 1), 0),
        (("full", 0), 1),
        (("full", 1), 1),
        (("full", 0), 2),
    ]


def test_a_copy_belongs_to_the_next_trigger_of_its_role() -> None:
    code = compile_program(gemm(stages=1), {"N": 3})
    assert [i.number for i in code.threads[0].code if i.kind == ISSUE] == [0, 0, 1, 1, 2, 2]


def test_counters_run_on_across_loops() -> None:
    code = compile_program(persistent_gemm(stages=3), {"T": 2, "N": 2})
    assert [i.slot for i in code.threads[0].code if i.kind == TRIGGER] == [0, 1, 2, 0]


def test_a_drain_ends_the_groups_that_it_covers() -> None:
    read = Access("A", "r", ends="group", proxy="async")
    code = compile_program(roles((read, Commit(), read, read, Commit(), Drain(1), read, Drain(0))), {})
    assert [len(i.ends) for i in code.threads[0].code if i.kind == DRAIN] == [1, 2]  # the last read has no commit


def test_what_cannot_run_is_said() -> None:
    with pytest.raises(IllFormedError, match="'x' has no value"):
        compile_program(roles((Loop("i", Name("x"), (Wait("e"),)),)), {})
    with pytest.raises(IllFormedError, match="slot 1 of A is out of range"):
        compile_program(roles((Access("A", "r", Const(1)),)), {})


def test_the_warps_of_a_warpgroup_meet_where_the_generated_code_makes_them() -> None:
    body = (Wait("e"), Access("A", "r", ends="group", proxy="async"), Commit(), Drain(0), *store("B"))
    code = compile_program(roles(body), {}, warps=2)
    first, second = (thread.code for thread in code.threads)
    # Before the store, between it and the copy out, and after that; one warp issues the copy.
    assert [i.kind for i in first].count(MEET) == 3
    assert len(first) == len(second) + 1


def test_a_meeting_of_roles_is_one_of_their_warps() -> None:
    meet = Barrier("b", ("r0", "r1"))
    code = compile_program(roles((meet, Access("A", "w")), (meet,)), {}, warps=2)
    assert len(code.meetings["b", 0]) == 4
    assert [i.kind for i in code.threads[0].code].count(MEET) == 1  # nothing has happened since: no second meeting


def test_a_producer_warpgroup_is_one_thread() -> None:
    names = [thread.name for thread in compile_program(gemm(2), {"N": 1}, warps=2).threads]
    assert names == ["producer", "consumer0.0", "consumer0.1", "consumer1.0", "consumer1.1"]
