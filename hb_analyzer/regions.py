"""Regions of a buffer slot as bit sets over *atoms*.

The boundaries of all regions that a program names in one buffer cut its slot into cells; cells that lie in the same
regions form one atom. Regions then intersect, cover and unite by integer operations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise, product
from typing import NamedTuple

from hb_analyzer.model import WHOLE, Access, Buffer, Region

_CELL_LIMIT = 1 << 14


class Footprint(NamedTuple):
    """Atoms that an access certainly touches, and atoms that it may touch (they differ for unknown regions)."""

    must: int
    may: int


@dataclass(frozen=True)
class Atoms:
    """The atoms of one buffer. ``count`` ≥ 1; ``footprints`` has every region that was given."""

    count: int
    footprints: dict[Region, Footprint]


def atoms_of(buffer: Buffer, regions: Iterable[Region]) -> Atoms:
    """Cuts one slot of ``buffer`` by ``regions``. Boxes that do not fit its rank count as unknown regions."""
    distinct = set(regions)
    boxes = {r for r in distinct if r is not None and r != WHOLE and len(r) == len(buffer.shape)}
    cuts = [
        sorted({0, extent, *(min(max(edge, 0), extent) for box in boxes for edge in box[dim])})
        for dim, extent in enumerate(buffer.shape)
    ]
    cells = 1
    for axis in cuts:
        cells *= max(len(axis) - 1, 1)
    if cells > _CELL_LIMIT:
        boxes = set()
    members: dict[frozenset[Region], int] = {}  # the regions that contain a cell -> atom number
    if boxes:
        for cell in product(*(list(pairwise(axis)) for axis in cuts)):
            inside = frozenset(
                box for box in boxes if all(b[0] <= c[0] and c[1] <= b[1] for b, c in zip(box, cell, strict=True))
            )
            members.setdefault(inside, len(members))
    count = max(len(members), 1)
    everything = (1 << count) - 1
    footprints: dict[Region, Footprint] = {}
    for region in distinct:
        if region == WHOLE:
            footprints[region] = Footprint(everything, everything)
        elif region in boxes:
            bits = sum(1 << atom for inside, atom in members.items() if region in inside)
            footprints[region] = Footprint(bits, bits)
        else:
            footprints[region] = Footprint(0, everything)
    return Atoms(count, footprints)


def footprint(atoms: Atoms, access: Access) -> Footprint:
    """The atoms that ``access`` touches in its slot."""
    return atoms.footprints[access.region]
