"""From TTGIR to the concurrency model: partitions are roles, mbarriers events, allocations buffers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hb_analyzer.model import Buffer, Event, Opaque, Parameter, Program, Role, Statement
from triton_overlap.errors import RefusedError
from triton_overlap.memory import Allocation
from triton_overlap.outside import Names, Outside, read_outside
from triton_overlap.phases import initial_settings
from triton_overlap.roles import RoleReader, Shared, buffer_name, event_name
from triton_overlap.syntax import Module, Region, captures_of, parse_module

ASSUMPTIONS = (
    "the warps of a partition meet before an arrival and before a write to memory that the partition's matrix "
    "instructions have read (Triton's barrier insertion sees the overlap; tested on the PTX)",
    "scratch memory that Triton itself needs is placed by its allocator",
)


@dataclass
class Translation:
    """The program, and what a rewrite needs to know about where its parts are in the text."""

    module: Module
    program: Program
    outside: Outside
    shared: Shared
    roles: list[Region]
    names: list[Names]

    @property
    def rings(self) -> list[Allocation]:
        """Data that the kernel allocates before it forks."""
        return [each for each in self.outside.allocations.values() if not each.barrier]

    @property
    def stagings(self) -> list[Allocation]:
        """Data that a partition allocates."""
        return self.shared.allocations

    @property
    def placeholders(self) -> list[Allocation]:
        """mbarriers that are initialised, never used, and not invalidated."""
        return [
            each
            for each in self.outside.allocations.values()
            if each.barrier and not each.used and len(each.invalidated) < each.slots and not self._captured(each)
        ]

    def _captured(self, allocation: Allocation) -> bool:
        return allocation.name in captures_of(self.outside.region)


def translate(text: str, name: str = "kernel") -> Translation:
    """Translates a TTGIR module (as ``module.str_nodebug()`` prints it). Raises RefusedError."""
    module = parse_module(text)
    outside = read_outside(module)
    region = outside.region
    captures = captures_of(region)
    shared = Shared()
    roles: list[Role] = []
    readers: list[RoleReader] = []
    for number, part in enumerate(region.regions):
        names = Names(role_name(number), dict(outside.names.values) if number == 0 else {})
        if number:
            if len(part.args) != len(captures):
                raise RefusedError("a partition does not have the captured values as arguments", region.where)
            for (argument, _), captured in zip(part.args, captures, strict=True):
                value = outside.names.values.get(captured)
                names.values[argument] = value if value is not None else outside.names.key(captured)
        reader = RoleReader(number, names, shared)
        readers.append(reader)
        roles.append(Role(role_name(number), reader.read(part), "thread" if part.warps == 1 else "warpgroup"))
    touched = [outside.allocations[each] for each in outside.touched]
    if touched:
        opaque: Statement = Opaque(
            "it is used outside of the specialized region",
            tuple(buffer_name(each) for each in touched),
            where=next(iter(outside.touched.values())).where,
        )
        roles[0] = Role(roles[0].name, (opaque, *roles[0].body), roles[0].kind)
    allocations = [*outside.allocations.values(), *shared.allocations]
    program = Program(
        name=re.sub(r".*@(\w+).*", r"\1", module.function.text.partition("(")[0]) or name,
        buffers=tuple(_buffer(each) for each in allocations),
        events=_events(outside, shared),
        roles=tuple(roles),
        parameters=tuple(Parameter(each) for each in shared.trips.values()),
        framework="triton",
        arch="sm_90a",
        assumptions=ASSUMPTIONS,
    )
    return Translation(module, program, outside, shared, region.regions, [reader.names for reader in readers])


def role_name(number: int) -> str:
    return "default" if number == 0 else f"partition{number - 1}"


def _buffer(allocation: Allocation) -> Buffer:
    return Buffer(
        buffer_name(allocation),
        allocation.type.size,
        allocation.alignment,
        1 if allocation.barrier else allocation.slots,
        barrier_storage=allocation.barrier,
    )


def _events(outside: Outside, shared: Shared) -> tuple[Event, ...]:
    initial = initial_settings(shared)
    events = []
    for allocation in outside.allocations.values():
        if not allocation.barrier or not allocation.used:
            continue
        if allocation.invalidated:
            raise RefusedError("an mbarrier is used after it was invalidated", allocation.op.where)
        inits = set(allocation.counts.values())
        arrivals = shared.arrivals.get(allocation.name, set())
        if len(inits) != 1 or len(arrivals) > 1:
            raise RefusedError("arrivals at these mbarriers have unequal counts", allocation.op.where)
        needed, each = inits.pop(), arrivals.pop() if arrivals else 1
        if needed % each:
            raise RefusedError("the count of an arrival does not divide what the mbarrier needs", allocation.op.where)
        events.append(Event(event_name(allocation), allocation.slots, needed // each, initial.get(allocation.name, 0)))
    return tuple(events)
