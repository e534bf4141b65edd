"""Messages about the parallel structure: parameters, the grid, levels, counts of threads."""

from __future__ import annotations

from croqtile.diagnostics.base import Diagnostic


class NotHere(Diagnostic):
    template = "{what} {where}"
    what: str
    where: str


class BadParameter(Diagnostic):
    template = "a parameter is a tensor in device memory, as in 'global f16 [M, K] {name}'"
    name: str


class BadResult(Diagnostic):
    template = "a __co__ function returns void, not {name}"
    name: str


class MissingLevel(Diagnostic):
    template = "{what} has no '{missing}'"
    what: str
    missing: str


class SecondGrid(Diagnostic):
    template = "a second grid: a __co__ function is one kernel launch"


class UnknownLevel(Diagnostic):
    template = "unknown level '{name}'; known are block, cluster, group-4, thread"
    name: str


class WrongLevel(Diagnostic):
    template = "'{level}' must stand {where}"
    level: str
    where: str


class WrongBoundCount(Diagnostic):
    template = "{names:name}, but {extents:bound}"
    names: int
    extents: int


class TooManyDimensions(Diagnostic):
    template = "{what} has at most {limit:dimension}, not {found}"
    what: str
    limit: int
    found: int


class TooManySlots(Diagnostic):
    template = "{slots} slots are more than the {most} mbarriers that the shared memory of a block can hold"
    slots: int
    most: int


class WrongThreadCount(Diagnostic):
    template = "a warpgroup (group-4) has 128 threads, not {found}"
    found: int


class TooManyThreads(Diagnostic):
    template = "{warpgroups} warpgroups of 128 threads are more than the 1024 threads that a block can have"
    warpgroups: int


class WarpgroupCountDiffers(Diagnostic):
    template = "{found} warpgroups here, but {earlier} before: a kernel has one number of threads"
    found: int
    earlier: int
