"""Reading pattern files: what is accepted, and the one line for everything else."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hb_analyzer.json_reader import PatternError
from hb_analyzer.model import Buffer, Const, Name, Parameter
from hb_analyzer.pattern import EventSpec, LoopSpec, Signal
from tests.hb_analyzer.patterns import KV_BUFFERS, document, kv_roles, load, pattern, phase


def test_the_published_format() -> None:
    loaded = load(document(kv_roles(), KV_BUFFERS))
    assert [group.name for group in loaded.groups] == ["producer", "consumer"]
    assert loaded.groups[0].is_producer
    use_k = loaded.group("consumer").phases[1]
    assert (use_k.label, use_k.waits, use_k.triggers) == ("use K", (Signal("k_full"),), (Signal("k_empty"),))
    assert [(a.buffer, a.mode) for a in use_k.accesses] == [("K_s", "rw?")]
    assert loaded.buffers[0] == Buffer("K_s", 16384)
    assert not loaded.marked
    assert loaded.event_names() == ["k_empty", "k_full", "v_empty", "v_full"]


def test_what_the_published_format_may_leave_out() -> None:
    loaded = load(
        {
            "warp_groups": [{"phases": [{"signal_out": ["a", "b"], "buffers": ["x"]}, {}]}, {"phases": []}],
            "shared_buffers": {"x": {"size_bytes": 1}},
        },
        "dir/name.json",
    )
    assert loaded.kernel == "name"
    assert [group.name for group in loaded.groups] == ["wg0", "wg1"]
    first, second = loaded.groups[0].phases
    assert (first.label, second.label) == ("phase 0", "phase 1")
    assert [signal.event for signal in first.triggers] == ["a", "b"]


def test_roles_of_one_name_get_their_id() -> None:
    value = document({}, {"x": 1})
    value["warp_groups"] = [
        {"wg_id": 0, "role": "producer", "phases": []},
        {"wg_id": 1, "role": "consumer", "phases": []},
        {"wg_id": "b", "role": "consumer", "phases": []},
    ]
    assert [group.name for group in load(value).groups] == ["producer", "consumer_1", "consumer_b"]


def test_unknown_keys_are_ignored_and_reported() -> None:
    value = document(kv_roles(), KV_BUFFERS, author="someone")
    value["warp_groups"][0]["phases"][0]["colour"] = "red"
    assert load(value).ignored == ("$.author", "$.warp_groups[0].phases[0].colour")


def test_extensions() -> None:
    loaded = pattern(
        {
            "producer": [
                phase(
                    "load",
                    {"event": "empty", "slot": "(i + 1) % 2"},
                    "full",
                    loop=["t", "i"],
                    writes=["x"],
                    completes="full",
                    when="i > 0",
                    **{"async": True},
                )
            ],
            "consumer": [
                phase("use", "full", [{"event": "empty", "slot": 0}], loop=["t", "i"], reads=["x"], barrier="b"),
                phase("mma", loop="t", reads=[{"buffer": "x", "slot": 1, "ends": "group"}], commit=True),
                phase("drain", loop="t", drain=0, step={"c": 2}, barrier=["b"]),
            ],
        },
        {"x": 64},
        events={"full": {"slots": 2, "arrivals": 1, "initial": 0}, "empty": {"initial": True}},
        loops={"t": {"min": 1, "max": 4}, "i": {"trip": "cdiv(K, 64)", "counter": "i"}},
        barriers={"b": ["consumer"]},
        parameters={"K": {"min": 1}},
        stages=2,
    )
    load_phase = loaded.groups[0].phases[0]
    assert load_phase.loop == ("t", "i")
    assert str(load_phase.waits[0].slot) == "((i + 1) % 2)"
    assert str(load_phase.when) == "(i > 0)"
    access = load_phase.accesses[0]
    assert (access.mode, access.ends, access.event, access.proxy) == ("w", "event", "full", "async")
    use, mma, drain = loaded.groups[1].phases
    assert use.barriers == ("b",)
    assert use.triggers == (Signal("empty", Const(0)),)
    assert (mma.accesses[0].ends, mma.accesses[0].slot, mma.commit) == ("group", Const(1), True)
    assert (drain.drain, drain.steps) == (0, (("c", 2),))
    assert loaded.events == {"full": EventSpec(2, 1, 0), "empty": EventSpec(None, None, 1)}
    assert loaded.loops["t"] == LoopSpec("t", Name("N_t"))
    assert str(loaded.loops["i"].trip) == "cdiv(K, 64)"
    assert set(loaded.parameters) == {Parameter("N_t", 1, 4), Parameter("K", 1)}
    assert loaded.barriers == {"b": ("consumer",)}
    assert loaded.marked
    assert loaded.stages == 2


def test_reads_come_before_writes_and_listed_only_between() -> None:
    loaded = pattern(
        {"r": [phase("p", None, None, "a", "b", "c", reads=["a"], writes=["b"])]}, {"a": 1, "b": 1, "c": 1}
    )
    assert [(a.buffer, a.mode) for a in loaded.groups[0].phases[0].accesses] == [("a", "r"), ("c", "rw?"), ("b", "w")]


def test_accesses_keep_their_order() -> None:
    entries = [{"mode": "write", "buffer": "a"}, {"mode": "read", "buffer": "a"}]
    loaded = pattern({"r": [phase("p", None, None, "a", accesses=entries)]}, {"a": 1})
    assert [a.mode for a in loaded.groups[0].phases[0].accesses] == ["w", "r"]


def test_regions() -> None:
    value = document(
        {"r": [phase("p", writes=[{"buffer": "a", "region": [[0, 2], [4, 8]]}, {"buffer": "a", "region": None}])]},
        {"a": 64},
    )
    value["shared_buffers"]["a"]["shape"] = [4, 8]
    first, second = load(value).groups[0].phases[0].accesses
    assert (first.region, second.region) == (((0, 2), (4, 8)), None)


def test_an_undeclared_barrier_has_the_roles_that_use_it() -> None:
    loaded = pattern({"a": [phase("p", barrier="b")], "c": [], "d": [phase("q", barrier="b")]}, {"x": 1})
    assert loaded.barriers == {"b": ("a", "d")}


# Each case: where to put a value in a valid document, the value, and the message that follows "p.json: ".

_PHASE = ("warp_groups", 1, "phases", 1)
_AT = "$.warp_groups[1].phases[1]"
_CASES: list[tuple[tuple[Any, ...], Any, str]] = [
    ((), [], "$: expected an object, got a list"),
    (("warp_groups",), {}, "$.warp_groups: expected a list, got an object"),
    (("warp_groups",), [], "$.warp_groups: expected at least one warpgroup"),
    (("warp_groups", 0), 3, "$.warp_groups[0]: expected an object, got 3"),
    (("warp_groups", 0, "wg_id"), -1, "$.warp_groups[0].wg_id: expected an integer of at least 0, got -1"),
    (("warp_groups", 0, "role"), "", "$.warp_groups[0].role: expected a name, got an empty string"),
    (
        ("warp_groups", 0, "kind"),
        "warp",
        '$.warp_groups[0].kind: expected one of cta, thread, warpgroup, got "warp"',
    ),
    (("warp_groups", 0, "phases"), None, "$.warp_groups[0].phases: expected a list, got null"),
    ((*_PHASE, "label"), 1, f"{_AT}.label: expected a string, got 1"),
    (
        (*_PHASE, "signal_in"),
        3,
        f"{_AT}.signal_in: expected an event: a string, null, an object, or a list of these, got 3",
    ),
    (
        (*_PHASE, "signal_out"),
        ["e", None],
        f"{_AT}.signal_out[1]: expected an event: a string, null, an object, or a list of these, got null",
    ),
    ((*_PHASE, "signal_in"), {"slot": 1}, f'{_AT}.signal_in: missing key "event"'),
    (
        (*_PHASE, "signal_in"),
        {"event": "e", "slot": "i %"},
        f'{_AT}.signal_in.slot: expected a number or a name, found the end in expression "i %"',
    ),
    (
        (*_PHASE, "signal_in"),
        {"event": "e", "slot": "j % 2"},
        f'{_AT}: "j" in "(j % 2)" is no loop around this phase, parameter or stepped counter',
    ),
    (
        (*_PHASE, "when"),
        "1 / 0",
        f'{_AT}: "0" in "(1 / 0)" may be 0: divide by a constant or by a parameter of "min" 1',
    ),
    ((*_PHASE, "buffers"), ["Q_s"], f'{_AT}.buffers[0]: "Q_s" is not in "shared_buffers" (known: K_s, V_s, O_s)'),
    ((*_PHASE, "buffers"), [1], f"{_AT}.buffers[0]: expected a string, got 1"),
    ((*_PHASE, "reads"), ["X"], f'{_AT}.reads[0]: "X" is not in "shared_buffers" (known: K_s, V_s, O_s)'),
    ((*_PHASE, "read"), ["K_s"], f'{_AT}: unknown key "read"; did you mean "reads"?'),
    ((*_PHASE, "completes"), "e", f'{_AT}.completes: "completes" needs "async": true'),
    ((*_PHASE, "async"), "yes", f'{_AT}.async: expected true or false, got "yes"'),
    ((*_PHASE, "loop"), ["i", "i"], f"{_AT}.loop: a loop cannot be nested in itself"),
    ((*_PHASE, "drain"), -1, f"{_AT}.drain: expected an integer of at least 0, got -1"),
    ((*_PHASE, "commit"), 1, f"{_AT}.commit: expected true or false, got 1"),
    ((*_PHASE, "accesses"), ["K_s"], f'{_AT}.accesses[0]: expected an object, got "K_s"'),
    ((*_PHASE, "accesses"), [{"buffer": "K_s"}], f'{_AT}.accesses[0]: missing key "mode"'),
    (
        (*_PHASE, "writes"),
        [{"buffer": "K_s", "ends": "event"}],
        f'{_AT}.writes[0]: "ends": "event" needs "event", and the other way round',
    ),
    (
        (*_PHASE, "writes"),
        [{"buffer": "K_s", "region": [[0, 1]]}],
        f'{_AT}.writes[0].region: 1 dimensions, but the "shape" of K_s has 0',
    ),
    ((*_PHASE, "opaque"), {}, f'{_AT}.opaque: missing key "reason"'),
    (("shared_buffers",), [], "$.shared_buffers: expected an object, got a list"),
    (("shared_buffers", "K_s"), 16384, "$.shared_buffers.K_s: expected an object, got 16384"),
    (("shared_buffers", "K_s"), {}, '$.shared_buffers.K_s: missing key "size_bytes"'),
    (("shared_buffers", "K_s", "size_bytes"), "16K", '$.shared_buffers.K_s.size_bytes: expected an integer, got "16K"'),
    (("shared_buffers", "K_s", "size_bytes"), 1.5, "$.shared_buffers.K_s.size_bytes: expected an integer, got 1.5"),
    (
        ("shared_buffers", "K_s", "size_bytes"),
        0,
        "$.shared_buffers.K_s.size_bytes: expected an integer of at least 1, got 0",
    ),
    (("shared_buffers", "K_s", "align"), 24, "$.shared_buffers.K_s.align: expected a power of two, got 24"),
    (
        ("shared_buffers", "K_s", "stages"),
        3,
        "$.shared_buffers.K_s.stages: size_bytes 16384 is not a multiple of 3 stages",
    ),
    (("events",), {"e": {"slots": 0}}, "$.events.e.slots: expected an integer of at least 1, got 0"),
    (("events",), {"e": {"slot": 2}}, '$.events.e: unknown key "slot"; did you mean "slots"?'),
    (
        ("loops",),
        {"i": {"trip": "N", "min": 1}},
        '$.loops.i: "min" and "max" belong to "parameters" where "trip" is given',
    ),
    (("loops",), {"n": {"counter": "N_n"}}, '$.loops: "N_n" is both a loop counter and a parameter'),
    (("barriers",), {"b": ["nobody"]}, '$.barriers.b[0]: no warpgroup "nobody" (known: producer, consumer)'),
    (("stages",), 0, "$.stages: expected an integer of at least 1, got 0"),
    (("notes",), 1, "$.notes: expected a string, got 1"),
    (("expect",), [], "$.expect: expected an object, got a list"),
    (("warp_group",), [], '$: unknown key "warp_group"; did you mean "warp_groups"?'),
]


@pytest.mark.parametrize(("place", "value", "message"), _CASES, ids=[message[:60] for _, _, message in _CASES])
def test_mistakes(place: tuple[Any, ...], value: Any, message: str) -> None:
    root: Any = copy.deepcopy(document(kv_roles(), KV_BUFFERS))
    if not place:
        root = value
    else:
        parent = root
        for key in place[:-1]:
            parent = parent[key]
        parent[place[-1]] = value
    with pytest.raises(PatternError) as caught:
        load(root)
    assert str(caught.value) == f"p.json: {message}"


def test_missing_top_level_keys() -> None:
    for key in ("warp_groups", "shared_buffers"):
        value = document(kv_roles(), KV_BUFFERS)
        del value[key]
        with pytest.raises(PatternError, match=f'missing key "{key}"'):
            load(value)


def test_two_warpgroups_of_one_name() -> None:
    value = document(kv_roles(), KV_BUFFERS)
    value["warp_groups"] += [{"wg_id": 1, "role": "consumer", "phases": []}]
    with pytest.raises(PatternError) as caught:
        load(value)
    assert str(caught.value) == (
        'p.json: $.warp_groups[2]: two warpgroups are called "consumer_1"; give them different "wg_id" or "role"'
    )


def test_a_divisor_may_be_a_parameter_that_is_never_0() -> None:
    roles = {"r": [phase("p", loop="k", when="k % N == 0")]}
    assert pattern(roles, {"x": 1}, parameters={"N": {"min": 1}})
    with pytest.raises(PatternError, match='"N" in "\\(k % N\\)" may be 0'):
        pattern(roles, {"x": 1}, parameters={"N": {}})


def test_a_loop_is_not_entered_twice() -> None:
    roles = {"r": [phase("a", loop="i"), phase("b", loop=[]), phase("c", loop="i")]}
    with pytest.raises(PatternError) as caught:
        pattern(roles, {"x": 1})
    assert str(caught.value) == (
        'p.json: $.warp_groups[0].phases[2]: loop "i" was left before; a second loop of the role needs another name'
    )


def test_a_role_outside_a_barrier_cannot_meet_there() -> None:
    with pytest.raises(PatternError) as caught:
        pattern({"a": [phase("p", barrier="b")], "c": []}, {"x": 1}, barriers={"b": ["c"]})
    assert str(caught.value) == 'p.json: $.warp_groups[0].phases[0].barrier: "a" is not a member of barrier "b"'


@pytest.mark.parametrize("place", ["slots", "stages"])
def test_more_slots_than_shared_memory_has_room_for(place: str) -> None:
    """Every slot is an object of the model: a number without a bound would fill the machine's memory."""
    content = document(kv_roles(), KV_BUFFERS)
    content |= {"events": {"k_full": {"slots": 2**70}}} if place == "slots" else {"stages": 2**70}
    with pytest.raises(PatternError, match=rf"{place}: expected an integer of at most 29056, got {2**70}"):
        load(content)
