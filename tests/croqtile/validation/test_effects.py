"""Registers that instructions write and read."""

from __future__ import annotations

from croqtile.validation.effects import effect_of, names


def test_arithmetic() -> None:
    effect = effect_of("mad.lo.s32", ("%r1", "%r2", "4", "%r3"), None)
    assert effect.targets == ("%r1",) and names(effect.written) == names(effect.killed) == {"%r1"}
    assert names(effect.sources) == {"%r2", "%r3"} and not effect.sinks and effect.pure


def test_a_guard_decides_whether_it_runs() -> None:
    effect = effect_of("mov.u32", ("%r1", "%r2"), "%p1")
    assert names(effect.sinks) == {"%p1"} and names(effect.written) == {"%r1"} and not effect.killed
    assert not effect_of("ret", (), "%p1").ends and effect_of("ret", (), None).ends
    assert effect_of("bra.uni", ("$L",), None).branches


def test_what_decides_an_event() -> None:
    arrival = effect_of("mbarrier.arrive.expect_tx.shared::cta.b64", ("_", "[%r1+8]", "%r2"), None)
    assert names(arrival.sinks) == {"%r1", "%r2"} and not arrival.pure and not arrival.targets
    wait = effect_of("mbarrier.try_wait.parity.shared::cta.b64", ("done@1", "[%r1]", "%r2"), None)
    assert wait.targets == ("done@1",) and names(wait.sinks) == {"%r1", "%r2"}
    copy = effect_of("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", ("[%rd1, {%r7, %r8}]", "[%r1]"), None)
    assert names(copy.sinks) == {"%rd1", "%r1"}  # wherever in global memory
    matrix = effect_of("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", ("{%f1, %f2}", "%rd1", "%rd2", "%p1"), None)
    assert matrix.targets == ("%f1", "%f2") and names(matrix.sinks) == {"%rd1", "%rd2"}
    store = effect_of("st.shared.v2.f32", ("[%r1]", "{%f1, %f2}"), None)
    assert names(store.sinks) == {"%r1"} and not store.targets
