"""The guard of persistent kernels, in the text and in the model."""

from __future__ import annotations

import re

from hb_analyzer.model import Loop, Trigger, Wait
from tests.triton_overlap.conftest import Text
from triton_overlap import guard, make_plan
from triton_overlap.edits import Edits
from triton_overlap.overlay import Overlay
from triton_overlap.translate import translate
from triton_overlap.ttgir import normalise


def test_producer_and_consumer_of_the_guard(ttgir_of: Text) -> None:
    """The producer waits at the head of its tile loop; the consumer arrives after its store."""
    translation = translate(ttgir_of("persistent"))
    pair = Overlay(translation.stagings[0], translation.rings[0])
    assert guard.applies(translation, pair)
    edits = Edits(translation.module.lines)
    guard.insert(translation, pair, edits)
    guarded = translate(normalise(edits.text())).program
    (name,) = {event.name for event in guarded.events if event.slots == 1}
    head, tail = guarded.roles[0].body[-1], guarded.roles[1].body[-1]
    assert isinstance(head, Loop) and isinstance(tail, Loop)
    first, last = head.body[0], tail.body[-1]
    assert isinstance(first, Wait) and first.event == name
    assert isinstance(last, Trigger) and last.event == name
    assert not any(isinstance(each, (Trigger, Wait)) and each.event == name for each in guarded.roles[2].body)


def test_no_guard_without_a_loop_over_tiles(ttgir_of: Text) -> None:
    for kind in ("gemm", "auto", "attention"):
        translation = translate(ttgir_of(kind, (128, 128), 2))
        assert not guard.applies(translation, Overlay(translation.stagings[0], translation.rings[0]))


def test_the_guarded_kernel_keeps_everything_else(ttgir_of: Text) -> None:
    text = ttgir_of("persistent")
    final = make_plan(text).text
    for name in ("async_tma_copy_global_to_local", "async_tma_copy_local_to_global", "warp_group_dot ", "scf.for"):
        assert final.count(name) == text.count(name)
    assert final.count("wait_barrier") == text.count("wait_barrier") + 2
    assert final.count("arrive_barrier") == text.count("arrive_barrier") + 2
    assert len(re.findall(r"memdesc_reinterpret", final)) == 2


def test_a_guard_at_the_wrong_place_is_refused(ttgir_of: Text) -> None:
    """The engine decides about the kernel with its guard: one that is set before the store is not taken."""
    lines = ttgir_of("persistent").splitlines()
    early, skip = [], 0
    for number, line in enumerate(lines):
        if skip:
            skip -= 1
            continue
        # Moves each wait for the store before the copy that it waits for.
        if "async_tma_copy_local_to_global" in line and "async_tma_store_wait" in lines[number + 1]:
            early += [lines[number + 1], line]
            skip = 1
        else:
            early.append(line)
    translation = translate("\n".join(early))
    assert guard.applies(translation, Overlay(translation.stagings[0], translation.rings[0]))
    try:
        plan = make_plan("\n".join(early))
    except Exception as refused:
        assert "not ordered" in str(refused)
    else:
        raise AssertionError(f"accepted: {plan}")
