"""Loops: for every trip count."""

from __future__ import annotations

from tests.croqtile.validation.walking import walk

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
