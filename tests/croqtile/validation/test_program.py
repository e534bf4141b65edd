"""Which registers matter, and which instructions do not."""

from __future__ import annotations

import pytest

from croqtile.validation.events import Refusal
from tests.croqtile.validation.walking import prepared

LOOP = """\
mov.u32 %r1, bars;
mov.u32 %r2, 0;
mov.f32 %f1, 0f00000000;
$L_head:
add.f32 %f1, %f1, %f1;
mul.f32 %f2, %f1, %f1;
mbarrier.arrive.shared::cta.b64 _, [%r1];
add.s32 %r2, %r2, 1;
setp.lt.s32 %p1, %r2, 4;
@%p1 bra $L_head;
ret;
"""


def test_what_matters_for_events_and_branches() -> None:
    program = prepared(LOOP)
    assert program.written == [("%r1",), ("%r2",), (), (), (), (), ("%r2",), ("%p1",), (), ()]
    assert program.heads == {3: {"%r1", "%r2"}}


def test_what_does_nothing_that_matters() -> None:
    """Up to the head of the loop, where states are compared."""
    assert prepared(LOOP).idle == [0, 0, 1, 2, 1, 0, 0, 0, 0, 0, 0]


def test_a_guarded_write_may_leave_what_was_there() -> None:
    body = "mov.u32 %r1, bars; {} mov.u32 %r1, bars; mbarrier.arrive.shared::cta.b64 _, [%r1]; ret;"
    assert prepared(body.format("@%p1")).written[:2] == [("%r1",), ("%r1",)]
    head = "$L: {} add.s32 %r1, %r2, 8; mbarrier.arrive.shared::cta.b64 _, [%r1]; bra $L;"
    assert prepared(head.format("")).heads == {0: {"%r2"}}
    assert prepared(head.format("@%p1")).heads == {0: {"%p1", "%r1", "%r2"}}


def test_a_branch_to_nowhere() -> None:
    with pytest.raises(Refusal, match="no label"):
        prepared("bra $L_nowhere;")
