"""Linking: which setting each wait waits for, where copies end, where barriers meet."""

from __future__ import annotations

import pytest

from hb_analyzer.model import (
    Access,
    Barrier,
    Buffer,
    Const,
    Event,
    Parameter,
    Program,
    Role,
    Statement,
    Trigger,
    Wait,
)
from hb_analyzer.unroll import unroll
from hb_analyzer.unrolling import Unrolling
from tests.hb_analyzer.programs import load


def program(*bodies: tuple[Statement, ...], arrivals: int = 1, slots: int = 1, initial: int = 0) -> Program:
    roles = tuple(Role(f"r{i}", body) for i, body in enumerate(bodies))
    events = (Event("e", slots, arrivals, initial),)
    return Program("p", (Buffer("A", 64, slots=4), Buffer("B", 64)), events, roles, (Parameter("N"),))


def preds(run: Unrolling, node: int) -> list[str]:
    return sorted(str(run.site(p)) for p in run.preds[node])


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
    assert stuck.why == "wait 2 for e[0] never returns: the slot is set once only"


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
