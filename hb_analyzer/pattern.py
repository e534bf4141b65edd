"""What a pattern file says, before any inference: warpgroups as sequences of phases, buffers, events, loops.

A *phase* is a stretch of one role between synchronisations. It runs in this order: wait for every event of
``signal_in``, drain matrix groups, meet at the barriers, access the buffers, commit a matrix group, trigger every
event of ``signal_out``, step the counters. The README of this package describes the file format; ``pattern_load.py``
reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .model import WHOLE, Buffer, IntExpr, Parameter, Region


@dataclass(frozen=True)
class Signal:
    """A wait for, or a trigger of, an event. ``slot`` None: the slot of the iteration; outside loops, every slot."""

    event: str
    slot: IntExpr | None = None


@dataclass(frozen=True)
class PhaseAccess:
    """One use of a buffer by a phase. ``mode`` is "r", "w", or "rw?" where the file only lists the buffer: the phase
    reads it and may write it. ``ends``, ``event``, ``proxy`` and ``fenced`` are those of :class:`model.Access`."""

    buffer: str
    mode: str
    slot: IntExpr | None = None
    region: Region = WHOLE
    ends: str = "here"
    event: str | None = None
    event_slot: IntExpr | None = None
    proxy: str = "generic"
    fenced: bool = True
    label: str | None = None
    where: str | None = None


@dataclass(frozen=True)
class OpaqueNote:
    """Something that the pattern cannot express, as :class:`model.Opaque`."""

    reason: str
    buffers: tuple[str, ...] = ()
    events: tuple[str, ...] = ()


@dataclass(frozen=True)
class Phase:
    label: str
    waits: tuple[Signal, ...] = ()
    triggers: tuple[Signal, ...] = ()
    accesses: tuple[PhaseAccess, ...] = ()
    loop: tuple[str, ...] = ()  # names of the loops around it, outermost first
    when: IntExpr | None = None
    barriers: tuple[str, ...] = ()
    commit: bool = False
    drain: int | None = None
    steps: tuple[tuple[str, int], ...] = ()
    opaque: OpaqueNote | None = None
    where: str | None = None

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of the buffers that this phase uses, each once."""
        opaque = self.opaque.buffers if self.opaque else ()
        return tuple(dict.fromkeys((*(access.buffer for access in self.accesses), *opaque)))


@dataclass(frozen=True)
class WarpGroup:
    """One role instance. ``name`` is unique; ``role`` is what the file calls it (several consumers may share it)."""

    name: str
    role: str
    phases: tuple[Phase, ...]
    kind: str = "warpgroup"

    @property
    def is_producer(self) -> bool:
        return "producer" in self.role.lower()


@dataclass(frozen=True)
class EventSpec:
    """None: the file does not say (``infer.py`` decides)."""

    slots: int | None = None
    arrivals: int | None = None
    initial: int | None = None


@dataclass(frozen=True)
class LoopSpec:
    """A counted loop: ``trip`` iterations; ``counter`` is its name in expressions."""

    counter: str
    trip: IntExpr


class PhaseId(NamedTuple):
    """A phase of a pattern: the name of its warpgroup and its position there."""

    role: str
    position: int


@dataclass(frozen=True)
class Pattern:
    kernel: str
    groups: tuple[WarpGroup, ...]
    buffers: tuple[Buffer, ...]
    events: Mapping[str, EventSpec] = field(default_factory=dict)
    loops: Mapping[str, LoopSpec] = field(default_factory=dict)
    parameters: tuple[Parameter, ...] = ()
    barriers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # name -> member roles
    marked: bool = False  # the file says which phases loop
    stages: int | None = None  # default depth of rings
    undeclared_stages: frozenset[str] = frozenset()  # buffers whose depth the file does not say
    framework: str = ""
    arch: str = ""
    notes: str = ""
    assumptions: tuple[str, ...] = ()
    expect: Mapping[str, Any] | None = None  # what the author of the file expects of the analysis
    ignored: tuple[str, ...] = ()  # JSON paths of keys that mean nothing here
    file: str = ""

    def phases(self) -> Iterator[tuple[PhaseId, Phase]]:
        """Every phase, in the order of the file."""
        for group in self.groups:
            for index, phase in enumerate(group.phases):
                yield PhaseId(group.name, index), phase

    def phase(self, id: PhaseId) -> Phase:
        return self.group(id.role).phases[id.position]

    def group(self, name: str) -> WarpGroup:
        return next(group for group in self.groups if group.name == name)

    def triggers_of(self, event: str) -> list[PhaseId]:
        return [id for id, phase in self.phases() if any(s.event == event for s in phase.triggers)]

    def waits_of(self, event: str) -> list[PhaseId]:
        return [id for id, phase in self.phases() if any(s.event == event for s in phase.waits)]

    def event_names(self) -> list[str]:
        """Every event of the pattern: the declared ones as in the file, then those only used, sorted."""
        used = {s.event for _, phase in self.phases() for s in (*phase.waits, *phase.triggers)}
        completed = {a.event for _, phase in self.phases() for a in phase.accesses if a.event}
        return [*self.events, *sorted((used | completed) - set(self.events))]
