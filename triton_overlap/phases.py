"""Which setting of an mbarrier a wait is for.

Hardware waits name a parity, the model counts: the k-th wait of a role for a slot is for the k-th setting. Both agree
if the role waits at one place only, with slot c mod S and parity (c div S) mod 2, where c counts the executions of that
place; with the inverted parity the first wait returns at once, which is a setting made before the start.
"""

from __future__ import annotations

from triton_overlap.errors import RefusedError
from triton_overlap.memory import Allocation
from triton_overlap.roles import Shared, WaitUse
from triton_overlap.values import const


def initial_settings(shared: Shared) -> dict[str, int]:
    """Settings made before the start, by name of the allocation. Raises RefusedError where the phases do not count."""
    found: dict[str, set[int]] = {}
    places: dict[tuple[int, Allocation], list[WaitUse]] = {}
    for wait in shared.waits:
        places.setdefault((wait.role, wait.allocation), []).append(wait)
        found.setdefault(wait.allocation.name, set()).add(_inverted(wait, shared))
    for waits in places.values():
        slots = [wait.slot for wait in waits]
        if len(waits) > 1 and (len(set(slots)) < len(slots) or any(slot[0] != "const" for slot in slots)):
            raise RefusedError("a role waits for these mbarriers at two places", waits[1].op.where)
    for wait in shared.waits:
        if len(found[wait.allocation.name]) > 1:
            raise RefusedError("roles disagree on the first phase of these mbarriers", wait.op.where)
    return {name: inverted.pop() for name, inverted in found.items()}


def _inverted(wait: WaitUse, shared: Shared) -> int:
    """1 if the first wait is for the phase before the first, else 0."""
    slots = wait.allocation.slots
    if wait.phase[0] == "const" and wait.slot[0] == "const" and wait.phase[1] in (0, 1) and not wait.loops:
        return int(wait.phase[1])
    if wait.phase[0] != "parity" or not wait.loops:
        raise RefusedError("the phase of this wait is not understood", wait.op.where)
    _, counted, period, inverted = wait.phase
    agrees = wait.slot == ("rem", counted, slots) or (slots == 1 and wait.slot == const(0))
    if not agrees or period != slots or not _counts(wait, counted[1], shared):
        raise RefusedError("the phase of this wait does not count its executions", wait.op.where)
    return int(inverted)


def _counts(wait: WaitUse, name: str, shared: Shared) -> bool:
    """Whether counter ``name`` counts the executions of the wait: it steps in the innermost loop around it, and no
    outer loop starts it anew."""
    steps_in = shared.steps.get(name)
    if steps_in is not None:
        return steps_in is wait.loops[-1]
    return len(wait.loops) == 1 and shared.iterations.get(name) is wait.loops[0]
