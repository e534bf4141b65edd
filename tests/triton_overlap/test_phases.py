"""Parities that count, and parities that do not."""

from __future__ import annotations

from typing import Any

import pytest

from triton_overlap.errors import RefusedError
from triton_overlap.memory import Allocation, MemoryType
from triton_overlap.phases import initial_settings
from triton_overlap.roles import Shared, WaitUse
from triton_overlap.syntax import Op
from triton_overlap.values import Key, const, counter

OP = Op("ttng.wait_barrier", [], "", 7)
TILES, INNER = Op("scf.for", [], "", 1), Op("scf.for", [], "", 2)
C = counter("c")


def barriers(slots: int) -> Allocation:
    return Allocation("%b", OP, MemoryType((slots, 1), "i64", "#s", True), None, barrier=True)


def settings(
    slot: Key, phase: Key, loops: tuple[Op, ...] = (INNER,), slots: int = 3, role: int = 0, **shared: Any
) -> int:
    known = {"iterations": {"c": INNER}, **shared}
    wait = WaitUse(role, barriers(slots), OP, slot, phase, loops)
    return initial_settings(Shared(waits=[wait], **known))["%b"]


def test_the_first_wait_is_for_the_first_setting_or_the_one_before() -> None:
    assert settings(("rem", C, 3), ("parity", C, 3, 0)) == 0
    assert settings(("rem", C, 3), ("parity", C, 3, 1)) == 1
    assert settings(const(0), ("parity", C, 1, 1), slots=1) == 1


def test_one_wait_outside_of_loops() -> None:
    assert settings(const(2), const(0), loops=()) == 0
    assert settings(const(2), const(1), loops=()) == 1
    with pytest.raises(RefusedError, match="phase of this wait is not understood"):
        settings(const(2), const(1))  # in a loop the same parity does not count


@pytest.mark.parametrize(
    ("slot", "phase"),
    [
        (("rem", C, 3), ("parity", C, 2, 0)),  # of another depth
        (("rem", C, 3), ("parity", counter("d"), 3, 0)),  # of another counter
        (const(1), ("parity", C, 3, 0)),  # of one slot only
    ],
)
def test_parities_that_do_not_count(slot: Key, phase: Key) -> None:
    with pytest.raises(RefusedError, match="does not count its executions"):
        settings(slot, phase)


def test_a_counter_that_starts_anew_with_every_tile() -> None:
    with pytest.raises(RefusedError, match="does not count its executions"):
        settings(("rem", C, 3), ("parity", C, 3, 0), loops=(TILES, INNER))
    assert settings(("rem", C, 3), ("parity", C, 3, 0), loops=(TILES, INNER), steps={"c": INNER}) == 0


def test_a_counter_that_steps_in_another_loop() -> None:
    with pytest.raises(RefusedError, match="does not count its executions"):
        settings(("rem", C, 3), ("parity", C, 3, 0), loops=(TILES,), steps={"c": INNER})


def test_two_places_and_two_opinions() -> None:
    shared = barriers(3)
    first = WaitUse(0, shared, OP, ("rem", C, 3), ("parity", C, 3, 0), (INNER,))
    again = WaitUse(0, shared, OP, ("rem", C, 3), ("parity", C, 3, 0), (INNER,))
    with pytest.raises(RefusedError, match="at two places"):
        initial_settings(Shared(waits=[first, again], iterations={"c": INNER}))
    other = WaitUse(1, shared, OP, ("rem", C, 3), ("parity", C, 3, 1), (INNER,))
    with pytest.raises(RefusedError, match="disagree on the first phase"):
        initial_settings(Shared(waits=[first, other], iterations={"c": INNER}))
