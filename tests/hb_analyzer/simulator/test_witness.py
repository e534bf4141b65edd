"""Searching, replaying, shrinking and printing executions."""

from __future__ import annotations

from hb_analyzer.simulator.layout import everything
from hb_analyzer.simulator.witness import Sampler, execution_text, minimise, replay, rows, search
from tests.hb_analyzer.programs import attention, gemm, persistent_gemm

KV = ("conflict", ("kk", "v"))


def test_a_run_is_given_by_its_seed() -> None:
    sampler = Sampler(attention(2))
    first, second = sampler.one(7), sampler.one(7)
    assert first[3] == second[3] and first[2].findings.keys() == second[2].findings.keys()
    assert [schedule for *_, schedule in sampler.executions(6, 3)][1] == first[3]


def test_a_schedule_can_be_replayed() -> None:
    execution = search(Sampler(attention(2)), [KV], seed=0, schedules=200)
    assert execution is not None
    finding, done = replay(execution.code, execution.layout, execution.schedule, KV)
    assert finding is not None and finding.key == KV and len(done) <= len(execution.schedule)


def test_nothing_is_found_where_there_is_nothing() -> None:
    assert search(Sampler(gemm(2, 2, barrier=True)), [("conflict", ("lhs", "out"))], 0, 100) is None


def test_executions_become_small() -> None:
    execution = search(Sampler(attention(2), warps=(1,)), [KV], seed=3, schedules=200)
    assert execution is not None
    small = minimise(execution, everything)
    assert dict(small.values) == {"N": 1}
    assert len(small.schedule) <= 12
    # No transition can be left out.
    for position in range(len(small.schedule)):
        rest = small.schedule[:position] + small.schedule[position + 1 :]
        finding, _ = replay(small.code, small.layout, rest, KV)
        assert finding is None


def test_an_execution_as_a_table() -> None:
    execution = search(Sampler(persistent_gemm(2), warps=(1,)), [("conflict", ("lhs", "out"))], 0, 200)
    assert execution is not None
    text = execution_text(minimise(execution, everything))
    assert text.startswith("conflict of lhs and out at T = ")
    assert text.splitlines()[-1].rstrip().endswith("is under way")


def test_a_deadlock_shows_who_waits() -> None:
    source = gemm(1, 4, released_slots=3)
    execution = search(Sampler(source, warps=(1,), fixed={"N": 4}), [("deadlock", ("consumer0", "producer"))], 0, 5)
    assert execution is not None
    last = rows(execution)[-2:]
    assert {row.note for row in last} == {"never returns"}
    assert {row.operation for row in last} == {"wait empty[3]", "wait full[3]"}
