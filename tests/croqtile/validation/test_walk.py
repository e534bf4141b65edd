"""Walks over small pieces of PTX: which events, on which paths, for which trip counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from croqtile.validation.evaluate import Evaluator
from croqtile.validation.events import Event, Refusal
from croqtile.validation.host import HostSide, TensorMap
from croqtile.validation.launches import Launches
from croqtile.validation.program import Program
from croqtile.validation.ptx import parse
from croqtile.validation.state import Listener
from croqtile.validation.values import Bounds
from croqtile.validation.walk import Divided, Walk

TRIPS = (1, 3, 8, 20)
HEAD = """\
.extern .shared .align 1024 .b8 memory[];
.entry _Z1kv(.param .u32 n, .param .u32 other)
.maxntid 128, 1, 1
{
.shared .align 8 .b8 bars[64];
"""
MODULUS = 4
State = tuple[tuple[str, int], ...]


@dataclass
class Recorder(Listener[State]):
    """Remembers the events of the path, and at its end the bounds of n."""

    ends: list[tuple[State, Bounds]] = field(default_factory=list)

    def start(self) -> State:
        return ()

    def event(self, state: State, event: Event, bounds: Mapping[str, Bounds]) -> State:
        number = event.place.offset if event.place else event.number
        return (*state, (event.kind, number))[-1:]

    def finish(self, state: State, bounds: Mapping[str, Bounds]) -> None:
        self.ends.append((state, bounds["n"]))

    def shifted(self, earlier: State, later: State, by: int) -> bool:
        return earlier == later


def walk(body: str, threads: frozenset[int] = frozenset(range(128)), low: int = 1) -> Recorder:
    entry = parse(HEAD + body + "\n}\n", "k")
    host = HostSide(("n", "other"), {"map": TensorMap("map", 2, (64, 8), 128)}, {}, 128, 2048)
    launches = Launches({"n": TRIPS, "other": (7, 7, 7, 9)}, {"n": TRIPS}, 4)
    program = Program(entry, host, launches, Evaluator(MODULUS, {"n": TRIPS}, 4))
    recorder = Recorder()
    Walk(program, 0, threads, {"n": Bounds(low)}, recorder).run()
    return recorder


LOOP = """\
ld.param.u32 %r1, [n];
mov.u32 %r2, 0;
mov.u32 %r3, 0;
$L_head:
setp.ge.s32 %p1, %r2, %r1;
@%p1 bra $L_end;
shl.b32 %r4, %r3, 3;
mov.u32 %r5, bars;
add.s32 %r6, %r4, %r5;
mbarrier.arrive.shared::cta.b64 _, [%r6];
add.s32 %r2, %r2, 1;
add.s32 %r7, %r3, 1;
setp.eq.s32 %p2, %r7, 2;
selp.b32 %r3, 0, %r7, %p2;
bra $L_head;
$L_end:
ret;
"""


def test_a_loop_ends_at_every_trip_count_with_its_slot() -> None:
    """Counts up to the modulus one by one, all others by their residue."""
    ends = walk(LOOP).ends
    assert {(bounds.exact, state[0][1]) for state, bounds in ends} >= {(n, 8 * ((n - 1) % 2)) for n in range(1, 5)}
    assert all(bounds.exact is not None and state[0][1] == 8 * ((bounds.exact - 1) % 2) for state, bounds in ends)
    assert any(bounds.shifted for _, bounds in ends)
    assert all(bounds.exact != 0 for _, bounds in ends)
    assert any(bounds.exact == 0 for _, bounds in walk(LOOP.replace("ret", "bar.sync 0; ret"), low=0).ends)


def test_a_loop_unrolled_by_two_with_a_remainder() -> None:
    body = """\
ld.param.u32 %r1, [n];
and.b32 %r2, %r1, 1;
setp.eq.s32 %p1, %r1, 1;
@%p1 bra $L_rest;
sub.s32 %r3, %r1, %r2;
$L_head:
mbarrier.arrive.shared::cta.b64 _, [bars];
mbarrier.arrive.shared::cta.b64 _, [bars+8];
add.s32 %r3, %r3, -2;
setp.ne.s32 %p2, %r3, 0;
@%p2 bra $L_head;
$L_rest:
setp.eq.s32 %p3, %r2, 0;
@%p3 bra $L_end;
mbarrier.arrive.shared::cta.b64 _, [bars];
$L_end:
ret;
"""
    ends = walk(body).ends
    assert len(ends) >= 4
    assert all(state[0][1] == 8 * ((bounds.low - 1) % 2) for state, bounds in ends)


def test_threads_that_part() -> None:
    body = """\
mov.u32 %r1, %tid.x;
setp.ne.s32 %p1, %r1, 0;
@%p1 bra $L_end;
bar.sync 0;
$L_end:
ret;
"""
    with pytest.raises(Divided) as division:
        walk(body)
    assert {len(part) for part in division.value.parts} == {1, 127}
    assert walk(body, frozenset((0,))).ends[0][0] == (("sync", 0),)
    assert walk(body, frozenset((1, 2))).ends[0][0] == ()


def test_a_wait_is_over_when_its_predicate_is_set() -> None:
    body = """\
$L_again:
mbarrier.try_wait.parity.shared::cta.b64 %p1, [bars], 1;
@%p1 bra $L_done;
bra $L_again;
$L_done:
ret;
"""
    assert [state for state, _ in walk(body).ends] == [(("wait", 0),)]
    once = body.replace("bra $L_again;", "bra $L_done;")
    assert sorted(state for state, _ in walk(once).ends) == [(), (("wait", 0),)]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("atom.shared.add.u32 %r1, [memory], 1; ret;", "not followed: `atom.shared.add.u32`"),
        ("st.u32 [%rd1], %r1; ret;", "not followed: `st.u32`"),
        ("mov.u32 %r1, %clock; mbarrier.arrive.shared::cta.b64 _, [%r1]; ret;", "is not recovered"),
        ("ld.global.u32 %r1, [%rd1]; bar.sync %r1; ret;", "is not recovered"),
        ("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bars]; ret;", "an arrival that is not followed"),
        ("fence.proxy.async.global; ret;", "a fence that is not followed"),
        ("barrier.cta.sync 1, 128; ret;", "not followed"),
        (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [memory], [%rd1], 64, [bars]; ret;",
            "not followed",
        ),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1}, %rd1, %rd2, 1, 1, 1, 0, 0; ret;", "descriptor %rd1"),
        ("call.uni f, (); ret;", "not followed: `call.uni`"),
        ("ld.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 0; @%p1 bar.sync 0; ret;", "unknown condition"),
        ("bar.sync 0;", "runs past its end"),
        ("bra $L_nowhere;", "no label"),
    ],
)
def test_what_is_not_known_is_refused(body: str, why: str) -> None:
    with pytest.raises(Refusal, match=why.replace("(", r"\(")):
        walk(body)


def test_branches_on_data_are_walked_both_ways() -> None:
    body = "ld.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 0; @%p1 bra $L; bar.sync 0; $L: ret;"
    assert sorted(state for state, _ in walk(body).ends) == [(), (("sync", 0),)]


def test_branches_on_launch_values() -> None:
    """Decided where all launches agree; else walked both ways."""
    body = "ld.param.u32 %r1, [other]; setp.gt.s32 %p1, %r1, {}; @%p1 bra $L; bar.sync 0; $L: ret;"
    assert [state for state, _ in walk(body.format(3)).ends] == [()]
    assert len(walk(body.format(8)).ends) == 2
