"""Edges of one event in the distance graph: which setting each wait of each iteration waits for.

Before the loop a slot s is set pre[s] times. The loop's trigger at iteration i has slot (i + c) mod S and is, at that
slot, number pre[s] + i div S; a wait at iteration j, of slot (j + c') mod S, has number w[s] + j div S, w[s] being the
role's waits before the loop. Equal slots and numbers give j − i, which must be the same for all slots: the distance,
S·r when c = c' and pre[s] − w[s] = r. Waits of lower number wait for settings made before the loop or at the start.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hb_analyzer.distance_graph import DistanceGraph, LoopAccess, RingSetting
from hb_analyzer.model import Event, Trigger
from hb_analyzer.single_loop import LOOP, POST, PRE, OutOfClassError, Placed


@dataclass(frozen=True)
class Use:
    """A trigger or wait of the event, or a copy (``access``) bound to it."""

    placed: Placed
    node: int
    access: LoopAccess | None = None


@dataclass
class _RoleUses:
    """What one role does with the slots of a family, in program order."""

    before: dict[int, list[Use]] = field(default_factory=dict)  # slot -> uses before the loop
    loop: list[Use] = field(default_factory=list)
    after: list[Use] = field(default_factory=list)


Roles = dict[int, _RoleUses]


def link_event(graph: DistanceGraph, event: Event, uses: list[Use]) -> None:
    """Adds the settings of ``event`` and their edges. Raises OutOfClassError."""
    running = [use.placed.event_slot.ring for use in uses if use.placed.segment != PRE]
    if any(running):
        if not all(running):
            raise OutOfClassError(f"{event.name} is used with constant and running slots")
        _Family(graph, event, event.slots, uses, ring=True).link()
    else:
        for slot in sorted({use.placed.event_slot.index for use in uses}):
            _Family(graph, event, 1, [use for use in uses if use.placed.event_slot.index == slot], ring=False).link()


class _Family:
    """All slots of a ring, or one slot that is used by its number."""

    def __init__(self, graph: DistanceGraph, event: Event, slots: int, uses: list[Use], ring: bool) -> None:
        self.graph = graph
        self.event = event
        self.slots = slots
        self.ring = ring
        self.triggers: Roles = {}
        self.waits: Roles = {}
        self.copies: Roles = {}
        for use in uses:
            kind = self.copies if use.access else self.triggers if isinstance(use.placed.op, Trigger) else self.waits
            role = kind.setdefault(use.placed.role, _RoleUses())
            if use.placed.segment == PRE:
                role.before.setdefault(self._index(use), []).append(use)
            else:
                (role.loop if use.placed.segment == LOOP else role.after).append(use)

    def _index(self, use: Use) -> int:
        """The slot, or c of (i + c) mod S in and after the loop; one-slot families count from 0."""
        return use.placed.event_slot.index % self.slots if self.ring else 0

    def _outside(self, why: str) -> OutOfClassError:
        return OutOfClassError(f"{self.event.name}: {why}")

    def link(self) -> None:
        looped = any(uses.loop for kind in (self.triggers, self.waits, self.copies) for uses in kind.values())
        if self.triggers and len(self.triggers) != self.event.arrivals:
            raise self._outside("arrivals differ from the triggering instances")
        if looped:
            self._link_loop()
        else:
            self._link_straight()

    # ----------------------------------------------------------------------------------------------------------
    # Outside the loop: settings and waits have fixed numbers

    def _link_straight(self) -> None:
        triggers = {role: [*uses.before.get(0, []), *uses.after] for role, uses in self.triggers.items()}
        count = min(map(len, triggers.values())) if triggers else 0
        bound: dict[int, list[Use]] = {}
        for role, uses in self.copies.items():
            for copy in [*uses.before.get(0, []), *uses.after]:
                number = _closing(copy, triggers.get(role, []))
                if role in triggers and number < count:
                    bound.setdefault(number, []).append(copy)
        nodes = [self._setting([own[k] for own in triggers.values()], bound.get(k, [])) for k in range(count)]
        late = [any(own[k].placed.segment == POST for own in triggers.values()) for k in range(count)]
        for uses in self.waits.values():
            for number, wait in enumerate([*uses.before.get(0, []), *uses.after]):
                k = number - self.event.initial
                if k < 0:
                    continue
                if k >= count or (late[k] and wait.placed.segment == PRE):
                    raise self._outside("a wait whose setting does not come before the loop ends")
                self.graph.connect(nodes[k], wait.node)

    def _setting(self, triggers: list[Use], copies: list[Use]) -> int:
        """The node of one setting outside the loop."""
        if len(triggers) == 1 and not copies:
            return triggers[0].node
        node = self.graph.add()
        for trigger in triggers:
            self.graph.connect(trigger.node, node)
        for copy in copies:
            assert copy.access is not None
            self.graph.connect(self.graph.end_of(copy.access), node)
        return node

    # ----------------------------------------------------------------------------------------------------------
    # In the loop

    def _link_loop(self) -> None:
        if not self.triggers or any(len(uses.loop) != 1 for uses in self.triggers.values()):
            raise self._outside("not one trigger in each iteration by each triggering instance")
        offsets = {self._index(uses.loop[0]) for uses in self.triggers.values()}
        counts = [{slot: len(own) for slot, own in uses.before.items()} for uses in self.triggers.values()]
        if len(offsets) != 1 or any(count != counts[0] for count in counts):
            raise self._outside("its triggering instances run apart")
        offset = offsets.pop()
        before = self._settings_before(counts[0])
        ring = self._ring_setting(offset)
        after = self._settings_after(ring, offset)
        for uses in self.waits.values():
            self._link_waits(uses, offset, before, ring, after)
        self.graph.rings.append(ring)

    def _awaited_copies(self) -> list[tuple[int, _RoleUses]]:
        """The copies of roles that trigger this family: another role's copies are closed by no trigger of its own."""
        return [(role, copies) for role, copies in self.copies.items() if role in self.triggers]

    def _settings_before(self, counts: dict[int, int]) -> dict[int, list[int]]:
        nodes: dict[int, list[int]] = {}
        for slot, count in counts.items():
            bound: dict[int, list[Use]] = {}
            for role, copies in self._awaited_copies():
                for copy in copies.before.get(slot, []):
                    number = _closing(copy, self.triggers[role].before.get(slot, []))
                    bound.setdefault(number, []).append(copy)
            if any(number >= count for number in bound):
                raise self._outside("a copy before the loop that a trigger in the loop completes")
            nodes[slot] = [
                self._setting([uses.before[slot][k] for uses in self.triggers.values()], bound.get(k, []))
                for k in range(count)
            ]
        if any(slot not in counts for _, copies in self._awaited_copies() for slot in copies.before):
            raise self._outside("a copy before the loop that a trigger in the loop completes")
        return nodes

    def _ring_setting(self, offset: int) -> RingSetting:
        graph = self.graph
        triggers = [uses.loop[0].node for uses in self.triggers.values()]
        copies: list[tuple[Use, int]] = []
        for role, bound in self._awaited_copies():
            for copy in bound.loop:
                distance = (self._index(copy) - offset) % self.slots
                if distance == 0 and _closing(copy, self.triggers[role].loop) == 1:
                    distance = self.slots  # issued after its trigger: the slot's next setting
                copies.append((copy, distance))
        node = triggers[0] if len(triggers) == 1 and not copies else graph.add()
        for trigger in triggers:
            if trigger != node:
                graph.connect(trigger, node)
        for copy, distance in copies:
            assert copy.access is not None
            graph.connect(graph.end_of(copy.access), node, distance)
        return RingSetting(self.event.name, self.slots, node, triggers, [(copy.node, d) for copy, d in copies])

    def _past_end(self, uses: list[Use], offset: int) -> list[int]:
        """The u of each use after the loop: iteration M + u would make it if the loop went on.

        ``offset``: c of the slot (i + c) mod S that the loop uses."""
        seen: dict[int, int] = {}
        result = []
        for use in uses:
            residue = (self._index(use) - offset) % self.slots
            result.append(residue + self.slots * seen.get(residue, 0))
            seen[residue] = seen.get(residue, 0) + 1
        return result

    def _settings_after(self, ring: RingSetting, offset: int) -> dict[int, int]:
        """Settings after the loop by the iteration M + u that they stand for; with the copies that they complete."""
        own = {
            role: dict(zip(self._past_end(uses.after, offset), uses.after, strict=True))
            for role, uses in self.triggers.items()
        }
        numbers = {frozenset(triggers) for triggers in own.values()}
        if len(numbers) != 1:
            raise self._outside("its triggering instances run apart after the loop")
        bound: dict[int, list[Use]] = {}
        for role, copies in self._awaited_copies():
            for copy in copies.after:
                later = [
                    u
                    for u, use in own[role].items()
                    if (self._index(use) - self._index(copy)) % self.slots == 0 and _closing(copy, [use]) == 0
                ]
                if later:
                    bound.setdefault(min(later), []).append(copy)
            for copy in copies.loop:
                if own[role] and any(node == copy.node and distance > 0 for node, distance in ring.copies):
                    if self.slots > 1:
                        raise self._outside("copies of the last iterations that triggers after the loop complete")
                    bound.setdefault(0, []).append(copy)
        return {
            u: self._setting([triggers[u] for triggers in own.values()], bound.get(u, [])) for u in sorted(*numbers)
        }

    def _link_waits(
        self, uses: _RoleUses, offset: int, before: dict[int, list[int]], ring: RingSetting, after: dict[int, int]
    ) -> None:
        graph, initial = self.graph, self.event.initial
        for slot, waits in uses.before.items():
            for number, wait in enumerate(waits):
                if number >= initial + len(before.get(slot, [])):
                    raise self._outside("a wait before the loop for a setting made in it")
                if number >= initial:
                    graph.connect(before[slot][number - initial], wait.node)
        if len(uses.loop) > 1:
            raise self._outside("several waits of one instance in each iteration")
        ahead = {
            slot: len(before.get(slot, [])) + initial - len(uses.before.get(slot, [])) for slot in range(self.slots)
        }
        if uses.loop:
            wait = uses.loop[0]
            first = {slot: (slot - self._index(wait)) % self.slots for slot in range(self.slots)}
            distances = {
                first[slot] - (slot - offset) % self.slots + self.slots * ahead[slot] for slot in range(self.slots)
            }
            if len(distances) != 1:
                raise self._outside("its slots run at different distances")
            distance = distances.pop()
            graph.connect(ring.node, wait.node, distance)
            ring.waits.append((wait.node, distance))
            for slot, nodes in before.items():
                for number, node in enumerate(nodes, initial - len(uses.before.get(slot, []))):
                    if number >= 0:
                        graph.connect(node, wait.node, first[slot] + self.slots * number)
            for u, late in zip(self._past_end(uses.after, self._index(wait)), uses.after, strict=True):
                # Iteration M + u would wait for the setting of iteration M + u − distance.
                if u - distance == -1:
                    graph.connect(ring.node, late.node)
                elif u - distance in after:
                    graph.connect(after[u - distance], late.node)
                else:
                    raise self._outside("a wait after the loop that no setting meets at its end")
        elif uses.after:
            self._link_late_waits(uses, before)

    def _link_late_waits(self, uses: _RoleUses, before: dict[int, list[int]]) -> None:
        """Waits after the loop of a role that does not wait in it: their number does not grow with the loop."""
        for position, wait in enumerate(uses.after):
            number = len(uses.before.get(0, [])) + position - self.event.initial
            if self.slots > 1 or number >= len(before.get(0, [])):
                raise self._outside("a wait after the loop for one of its settings by number")
            if number >= 0:
                self.graph.connect(before[0][number], wait.node)


def _closing(copy: Use, triggers: list[Use]) -> int:
    """How many of ``triggers`` (of the copy's role) come before it: the number of the one that closes its setting."""
    return sum((t.placed.segment, t.placed.position) < (copy.placed.segment, copy.placed.position) for t in triggers)
