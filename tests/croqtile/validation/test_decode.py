"""Instructions that are not known, or whose operands are not."""

from __future__ import annotations

import pytest

from croqtile.validation.events import Refusal
from tests.croqtile.validation.walking import walk


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
