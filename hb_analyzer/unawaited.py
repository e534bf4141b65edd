"""Bulk copies that may still be under way when their CTA ends.

A copy in belongs to a setting of its event, and only a wait for that setting can tell that its bytes have landed. If no
instance makes that wait, the last thread may end first; the memory of the CTA is then given to another one, and nothing
in the PTX ISA says that the copy does not write there (or, as a copy out, read there). Whoever waits for a later
setting of the slot needs no case of its own: where no event overruns, the arrivals for that one follow this setting, so
its graph has an edge on.

This is a defect of the program under every placement. It bears on no pair of buffers: a copy without an end is ordered
before nothing, so whatever could meet it inside the CTA is refused or a race already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from hb_analyzer.model import Access
from hb_analyzer.report import Defect
from hb_analyzer.unrolling import AccessInstance, Unrolling


def is_copy(op: Access) -> bool:
    """Is it a bulk copy that somebody should wait for? Matrix instructions belong to their warps, which do not leave
    them behind."""
    return op.ends == "event" or (op.ends == "never" and op.proxy == "async")


@dataclass(frozen=True)
class Tiles:
    """The parameter whose smaller values, down to ``least``, an unrolling stands for (``Domain.prefix``)."""

    parameter: str
    least: int


def unawaited(unrolling: Unrolling, silent: Collection[str], tiles: Tiles | None = None) -> Iterator[Defect]:
    """The first such copy of each buffer. ``unrolling`` is linked and acyclic. Copies bound to ``silent`` events are
    left out: those events have a defect of their own, or are used in a way that the model cannot express."""
    copies = [a for a in unrolling.accesses if is_copy(a.op) and a.op.event not in silent]
    if not copies:
        return
    seen = _seen(unrolling, {copy.end for copy in copies if copy.end is not None})
    reported: set[str] = set()
    for copy in copies:
        values = _values(unrolling, copy, seen, tiles)
        if values is not None and copy.op.buffer not in reported:
            reported.add(copy.op.buffer)
            yield _defect(unrolling, copy, values)


def _seen(unrolling: Unrolling, settings: set[int]) -> dict[int, int]:
    """For each of these settings, the first tile in which somebody waits for it."""
    seen: dict[int, int] = {}
    waits = (wait for by_role in unrolling.waits.values() for nodes in by_role.values() for wait in nodes)
    for wait in waits:
        for p in unrolling.preds[wait]:
            if p in settings:
                seen[p] = min(seen.get(p, unrolling.tiles[wait]), unrolling.tiles[wait])
    return seen


def _values(
    unrolling: Unrolling, copy: AccessInstance, seen: Mapping[int, int], tiles: Tiles | None
) -> Mapping[str, int] | None:
    """Parameter values at which the copy is issued and nobody waits for it; None if there are none. If somebody does,
    in a later tile than the copy's, it is too late for the numbers of tiles between the two."""
    if copy.end is None or copy.end not in seen:
        return unrolling.values
    if tiles is None:
        return None
    fewest = max(unrolling.tiles[copy.begin] + 1, tiles.least)
    return {**unrolling.values, tiles.parameter: fewest} if fewest <= seen[copy.end] else None


def _defect(unrolling: Unrolling, copy: AccessInstance, values: Mapping[str, int]) -> Defect:
    op, site = copy.op, unrolling.site(copy.begin)
    what = f"the copy {'into' if op.mode == 'w' else 'out of'} {op.buffer}[{copy.slot}]"
    missing = f" for the setting of {op.event} that it completes" if op.event is not None else ""
    return Defect(
        "unawaited",
        f"{site}: {what} may be under way when the CTA ends: nobody waits{missing or ' for it'}",
        first=site,
        buffer=op.buffer,
        event=op.event,
        parameters=tuple(values.items()),
    )
