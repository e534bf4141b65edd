"""Defects of the synchronisation itself: deadlocks, event overruns, arrival counts.

An event whose arrivals cannot be matched with settings orders nothing: the caller links again with its name in
``silent``. That is the case when the number of triggering instances differs from ``arrivals``, and when an arrival (or
a copy) for setting k+1 of a slot may come before setting k: it would then count for the wrong setting. A setting that
may come before some instance's previous wait (a waiter is lapped) is reported too; it orders no less, as every instance
counts its own settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hb_analyzer.graph import Ordering, find_cycle
from hb_analyzer.model import Program
from hb_analyzer.report import Defect
from hb_analyzer.unrolling import SlotKey, Unrolling

Parameters = tuple[tuple[str, int], ...]


@dataclass
class ArrivalCensus:
    """Which role instances trigger which event slots, and bind copies to them, over all unrolled trip counts."""

    roles: dict[SlotKey, set[int]] = field(default_factory=dict)
    copying: dict[SlotKey, set[int]] = field(default_factory=dict)

    def add(self, unrolling: Unrolling) -> None:
        for key, by_role in unrolling.triggers.items():
            self.roles.setdefault(key, set()).update(by_role)
        for key, copies in unrolling.copies.items():
            issuers = {unrolling.roles[unrolling.accesses[access].begin] for _, access in copies}
            self.copying.setdefault(key, set()).update(issuers)

    def defects(self, program: Program) -> dict[str, Defect]:
        """One defect for each event with a slot that is triggered by other than ``arrivals`` instances, or to which an
        instance that never triggers it binds a copy: those bytes are meant for no setting, and delay any."""
        found: dict[str, Defect] = {}
        for event in program.events:
            for slot in range(event.slots):
                roles = self.roles.get((event.name, slot), set())
                strangers = self.copying.get((event.name, slot), set()) - roles
                if roles and len(roles) != event.arrivals:
                    names = ", ".join(sorted(program.roles[role].name for role in roles))
                    why = (
                        f"{event.name}[{slot}] needs {event.arrivals} arrivals for each setting, but "
                        f"{len(roles)} instances trigger it ({names}); it orders nothing"
                    )
                elif roles and strangers:
                    names = ", ".join(sorted(program.roles[role].name for role in strangers))
                    why = f"{names} binds copies to {event.name}[{slot}] and never triggers it; it orders nothing"
                else:
                    continue
                found[event.name] = Defect("arrivals", why, event=event.name)
                break
        return found


def deadlocks(unrolling: Unrolling, parameters: Parameters) -> Iterator[Defect]:
    """Waits and meetings that never complete, and one cycle, if any. Empty iff every node can execute."""
    for stuck in unrolling.stuck:
        site = unrolling.site(stuck.node)
        yield Defect("deadlock", f"{site}: {stuck.why}", first=site, event=stuck.event, parameters=parameters)
    cycle = find_cycle(unrolling.preds)
    if cycle:
        # Where the cycle changes role, one role waits for another: those are the operations to show.
        hops = [node for i, node in enumerate(cycle) if unrolling.roles[node] != unrolling.roles[cycle[i - 1]]]
        start = hops.index(min(hops)) if hops else 0
        sites = [unrolling.site(node) for node in (hops[start:] + hops[:start] or cycle)]
        chain = " → ".join(map(str, [*sites, sites[0]]))
        yield Defect("deadlock", f"circular wait: {chain}", first=sites[0], second=sites[-1], parameters=parameters)


@dataclass(frozen=True)
class Overrun:
    """``breaks_order``: the event must order nothing from here on."""

    defect: Defect
    event: str
    breaks_order: bool


def overruns(unrolling: Unrolling, ordering: Ordering, parameters: Parameters) -> Iterator[Overrun]:
    """At most two for each event: one of its arrivals, one of its waits."""
    reported: set[tuple[str, bool]] = set()

    def report(key: SlotKey, breaks_order: bool, why: str, first: int, second: int) -> Iterator[Overrun]:
        if (key[0], breaks_order) not in reported:
            reported.add((key[0], breaks_order))
            a, b = unrolling.site(first), unrolling.site(second)
            text = f"{key[0]}[{key[1]}]: {why}: {b} does not follow {a}"
            yield Overrun(Defect("overrun", text, a, b, None, key[0], parameters), key[0], breaks_order)

    for key, settings in unrolling.settings.items():
        waits = unrolling.waits.get(key, {})
        arrivals = _arrivals(unrolling, key)
        for k, previous in enumerate(settings):
            for arrival in arrivals.get(k + 1, ()):
                if not all(ordering.happened(node, arrival) for node in previous.made_by):
                    number = previous.number + 1
                    why = f"an arrival for setting {number + 1} can come before setting {number}"
                    yield from report(key, True, why, previous.node, arrival)
        for arrival in arrivals.get(len(settings) + 1, ()):
            # The setting before its own never completes, so it makes up for what is missing there.
            site = unrolling.site(arrival)
            if (key[0], True) not in reported:
                reported.add((key[0], True))
                why = f"{key[0]}[{key[1]}]: {site} arrives although too few arrivals ever come for the setting before"
                yield Overrun(Defect("overrun", why, site, None, None, key[0], parameters), key[0], True)
        for setting in settings:
            k = setting.number - 1  # the wait that this setting must not lap
            for instances in waits.values():
                if 0 <= k < len(instances) and not ordering.happened(instances[k], setting.node):
                    yield from report(
                        key,
                        False,
                        f"setting {setting.number + 1} can come before wait {k + 1}",
                        instances[k],
                        setting.node,
                    )


def _arrivals(unrolling: Unrolling, key: SlotKey) -> dict[int, list[int]]:
    """Every trigger and copy for each setting that the program makes (from 0), complete or not."""
    by_role = unrolling.triggers.get(key, {})
    arrivals: dict[int, list[int]] = {}
    for nodes in by_role.values():
        for number, node in enumerate(nodes):
            arrivals.setdefault(number, []).append(node)
    for number, access in unrolling.copies.get(key, ()):
        begin = unrolling.accesses[access].begin
        if unrolling.roles[begin] in by_role:
            arrivals.setdefault(number, []).append(begin)
    return arrivals


def smallest(defects: Iterable[Defect]) -> tuple[Defect, ...]:
    """The first defect of each cause (same kind, buffer, event and operations, whatever the iteration)."""
    kept: dict[object, Defect] = {}
    for defect in defects:
        kept.setdefault(cause(defect), defect)
    return tuple(kept.values())


def cause(defect: Defect) -> object:
    """What two defects that differ in iterations and trip counts only have in common."""
    places = tuple((s.role, s.label, s.where) for s in (defect.first, defect.second) if s is not None)
    return (defect.kind, defect.buffer, defect.event, places)
