"""Arithmetic on known numbers."""

from __future__ import annotations

from croqtile.validation.values import UNKNOWN
from tests.croqtile.validation.evaluating import run


def test_integers_wrap_and_have_signs() -> None:
    assert run("add.s32", 0xFFFFFFFF, 2) == 1
    assert run("shr.s32", -8 & 0xFFFFFFFF, 1) == -4 & 0xFFFFFFFF
    assert run("shr.u32", -8 & 0xFFFFFFFF, 31) == 1
    assert run("mul.wide.u32", 0xFFFFFFFF, 2) == 0x1FFFFFFFE
    assert run("mad.wide.u32", 0xFFFFFFFF, 2, 1 << 40) == 0x1FFFFFFFE + (1 << 40)
    assert run("mad.wide.s32", 0xFFFFFFFF, 3, 2) == -1 & 0xFFFFFFFFFFFFFFFF
    assert run("mul.hi.s32", 10, 1431655766) == 3
    assert run("div.s32", -7 & 0xFFFFFFFF, 2) == -3 & 0xFFFFFFFF
    assert run("rem.s32", -7 & 0xFFFFFFFF, 2) == -1 & 0xFFFFFFFF
    assert run("setp.lt.s32", -1 & 0xFFFFFFFF, 0) == 1 and run("setp.lt.u32", -1 & 0xFFFFFFFF, 0) == 0
    assert run("selp.b32", 5, 6, 0) == 6
    assert run("div.s32", 1, 0) is UNKNOWN and run("prmt.b32", 1, 2, 3) is UNKNOWN and run("add.f32", 1, 2) is UNKNOWN
