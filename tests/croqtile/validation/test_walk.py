"""Paths over small pieces of PTX."""

from __future__ import annotations

import pytest

from croqtile.validation.walk import Divided
from tests.croqtile.validation.walking import walk


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


def test_branches_on_data_are_walked_both_ways() -> None:
    body = "ld.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 0; @%p1 bra $L; bar.sync 0; $L: ret;"
    assert sorted(state for state, _ in walk(body).ends) == [(), (("sync", 0),)]


def test_branches_on_launch_values() -> None:
    """Decided where all launches agree; else walked both ways."""
    body = "ld.param.u32 %r1, [other]; setp.gt.s32 %p1, %r1, {}; @%p1 bra $L; bar.sync 0; $L: ret;"
    assert [state for state, _ in walk(body.format(3)).ends] == [()]
    assert len(walk(body.format(8)).ends) == 2
