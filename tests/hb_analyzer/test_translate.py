"""Patterns as programs."""

from __future__ import annotations

from hb_analyzer.model import (
    WHOLE,
    ZERO,
    Access,
    Barrier,
    BinOp,
    Commit,
    Const,
    Drain,
    Event,
    If,
    Loop,
    Name,
    Opaque,
    Parameter,
    Step,
    Trigger,
    Wait,
)
from hb_analyzer.pattern import Pattern
from hb_analyzer.translate import to_program
from tests.hb_analyzer.patterns import KV_BUFFERS, kv_roles, pattern, phase


def body(loaded: Pattern, role: str) -> tuple[object, ...]:
    return next(r.body for r in to_program(loaded).roles if r.name == role)


def test_the_published_format() -> None:
    program = to_program(pattern(kv_roles(), KV_BUFFERS))
    assert program.parameters == (Parameter("N", minimum=1),)
    assert program.events == (Event("k_empty"), Event("k_full"), Event("v_empty", initial=1), Event("v_full"))
    release, loop, *epilogue = program.roles[1].body
    assert release == Trigger("k_empty", ZERO, "initial release: trigger k_empty")
    assert isinstance(loop, Loop)
    assert (loop.counter, loop.trip) == ("i", Name("N"))
    assert loop.body[:4] == (
        Wait("k_full", ZERO, "use K: wait k_full"),
        Access("K_s", "r", label="use K: read K_s"),
        Access("K_s", "w", region=None, label="use K: may write K_s"),
        Trigger("k_empty", ZERO, "use K: trigger k_empty"),
    )
    assert len(epilogue) == 2


def test_the_order_inside_a_phase() -> None:
    loaded = pattern(
        {
            "r": [
                phase(
                    "p",
                    "e",
                    "f",
                    barrier="b",
                    drain=1,
                    reads=["A"],
                    writes=["A"],
                    commit=True,
                    step={"c": 3},
                    opaque={"reason": "why", "buffers": ["A"]},
                    loop=[],
                )
            ]
        },
        {"A": 64},
    )
    kinds = [type(statement) for statement in body(loaded, "r")]
    assert kinds == [Opaque, Wait, Drain, Barrier, Access, Access, Commit, Trigger, Step]


def test_slots_of_a_single_loop_are_the_counter() -> None:
    loaded = pattern(
        {"producer": [phase("load", "e", "f", loop="k", writes=["A"], completes="f", **{"async": True})]},
        {"A": 64},
        stages=4,
        events={"e": {"slots": 4}, "f": {"slots": 4}},
    )
    (loop,) = body(loaded, "producer")
    assert isinstance(loop, Loop)
    slot = BinOp("%", Name("k"), Const(4))
    assert loop.body == (
        Wait("e", slot, "load: wait e[k % 4]"),
        Access("A", "w", slot, WHOLE, "event", "f", slot, "async", True, "load: write A[k % 4]"),
        Trigger("f", slot, "load: trigger f[k % 4]"),
    )


def test_slots_run_on_across_an_outer_loop() -> None:
    loaded = pattern(
        {"r": [phase("p", None, "e", loop=["t", "k"]), phase("q", None, None, loop="t", writes=["A"])]},
        {"A": 64},
        events={"e": {"slots": 3}},
    )
    (outer,) = body(loaded, "r")
    assert isinstance(outer, Loop)
    inner = outer.body[0]
    assert isinstance(inner, Loop)
    assert inner.body == (
        Trigger("e", BinOp("%", Name("k.count"), Const(3)), "p: trigger e[k.count % 3]"),
        Step("k.count"),
    )


def test_outside_loops_a_signal_means_every_slot() -> None:
    loaded = pattern({"r": [phase("p", None, "e")]}, {"A": 64}, events={"e": {"slots": 3}})
    assert [t.slot for t in body(loaded, "r") if isinstance(t, Trigger)] == [Const(0), Const(1), Const(2)]


def test_a_single_wait_stands_before_the_loop_where_nothing_precedes_it() -> None:
    roles = kv_roles()
    roles["producer"].insert(0, phase("load Q", None, "q", "Q"))
    roles["consumer"][1]["signal_in"] = ["k_full", "q"]
    statements = body(pattern(roles, {**KV_BUFFERS, "Q": 64}), "consumer")
    assert isinstance(statements[1], Wait)
    assert statements[1].event == "q"


def test_a_single_wait_later_in_the_loop_is_a_branch_on_the_first_iteration() -> None:
    roles = kv_roles()
    roles["producer"].insert(0, phase("load Q", None, "q", "Q"))
    roles["consumer"][2]["signal_in"] = ["v_full", "q"]
    loop = body(pattern(roles, {**KV_BUFFERS, "Q": 64}), "consumer")[1]
    assert isinstance(loop, Loop)
    branches = [statement for statement in loop.body if isinstance(statement, If)]
    assert [(b.condition, b.then) for b in branches] == [
        (BinOp("==", Name("i"), ZERO), (Wait("q", ZERO, "use V: wait q"),))
    ]


def test_conditions() -> None:
    loaded = pattern({"r": [phase("p", None, "e", loop="k", when="k > 0")]}, {"A": 64})
    (loop,) = body(loaded, "r")
    assert isinstance(loop, Loop)
    assert loop.body == (If(BinOp(">", Name("k"), ZERO), (Trigger("e", ZERO, "p: trigger e"),)),)


def test_asynchronous_without_an_event_never_ends() -> None:
    loaded = pattern({"r": [phase("p", writes=["A"], **{"async": True})]}, {"A": 64})
    (access,) = body(loaded, "r")
    assert isinstance(access, Access)
    assert (access.ends, access.proxy) == ("never", "async")


def test_unknown_buffers_are_opaque() -> None:
    loaded = pattern({"a": [phase("p", "e", "f", "A")], "b": [phase("q", "f", "e", "A")]}, {"A": 64})
    first = body(loaded, "a")[0]
    assert isinstance(first, Opaque)
    assert first.buffers == ("A",)


def test_only_read_spares_producers() -> None:
    program = to_program(pattern(kv_roles(), KV_BUFFERS), only_read=frozenset({"K_s"}))
    writes = {
        access.label
        for role in program.roles
        for statement in role.body
        for access in (statement.body if isinstance(statement, Loop) else (statement,))
        if isinstance(access, Access) and access.mode == "w"
    }
    assert writes == {
        "load K: may write K_s",
        "load V: may write V_s",
        "use V: may write V_s",
        "epilogue: may write O_s",
    }


def test_unused_parameters_are_left_out() -> None:
    loaded = pattern({"r": [phase("p", None, None, "A")]}, {"A": 64}, parameters={"K": {}}, loops={"k": {}})
    assert to_program(loaded).parameters == ()
