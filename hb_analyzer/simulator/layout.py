"""Which bytes of which buffers coincide.

The unit is a *place*: a cell of one slot of one buffer, cut by all regions that the program names in it (and by warps,
each of which writes a part of its own). Every access has bit sets over places: those of its own buffer that it touches
(``own``) or certainly overwrites (``must``), and those of other buffers that lie on the same bytes (``foreign``).

Slots of two buffers coincide as soon as their address ranges intersect, whatever the layout of tiles inside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise, product

from hb_analyzer.model import WHOLE, Access, Buffer, Program, Region
from hb_analyzer.report import Placement
from hb_analyzer.simulator.code import Code, walk

Box = tuple[tuple[int, int], ...]
Coincide = Callable[[Buffer, int, Buffer, int], bool]  # do slot i of one buffer and slot j of another share bytes?


@dataclass(frozen=True)
class Place:
    buffer: int
    slot: int
    cell: Box
    warp: int


def everything(a: Buffer, i: int, b: Buffer, j: int) -> bool:
    """All placements at once: any two buffers lie on each other in every way."""
    return True


def nothing(a: Buffer, i: int, b: Buffer, j: int) -> bool:
    """Every buffer has its own place."""
    return False


def overlay(*names: str) -> Coincide:
    """The named buffers lie on each other in every way; all others have their own places."""
    return lambda a, i, b, j: a.name in names and b.name in names


def placed(placement: Placement) -> Coincide:
    """By address: slot s of a buffer starts at its offset + s · size / slots."""

    def span(buffer: Buffer, slot: int) -> tuple[int, int]:
        size = buffer.size // buffer.slots
        start = placement.offsets[buffer.name] + slot * size
        return start, start + size

    def coincide(a: Buffer, i: int, b: Buffer, j: int) -> bool:
        (low, high), (other_low, other_high) = span(a, i), span(b, j)
        return low < other_high and other_low < high

    return coincide


class Layout:
    """The places of a program, and the bit sets of its accesses."""

    def __init__(self, code: Code, coincide: Coincide) -> None:
        self.program = code.program
        self.places: list[Place] = []
        self._cells = {buffer.name: _cells(code.program, buffer) for buffer in code.program.buffers}
        self._bits: dict[tuple[int, int], int] = {}  # (buffer, slot) -> its places
        self._foreign: dict[tuple[int, int], int] = {}
        self._touched: dict[tuple[str, int, Region, int | None], tuple[int, int]] = {}
        self._number = {buffer.name: n for n, buffer in enumerate(code.program.buffers)}
        self.warps = max(1, code.warps)
        used: dict[tuple[int, int], None] = {}
        for instruction in code.instructions:
            if isinstance(instruction.op, Access):
                used.setdefault((self._number[instruction.op.buffer], instruction.slot))
        for buffer, slot in used:
            bits = 0
            for cell in self._cells[self.program.buffers[buffer].name]:
                for warp in range(self.warps):
                    bits |= 1 << len(self.places)
                    self.places.append(Place(buffer, slot, cell, warp))
            self._bits[buffer, slot] = bits
        for a, i in used:
            bits = 0
            for b, j in used:
                if a != b and coincide(self.program.buffers[a], i, self.program.buffers[b], j):
                    bits |= self._bits[b, j]
            self._foreign[a, i] = bits
        self._assign(code)

    def _assign(self, code: Code) -> None:
        for instruction in code.instructions:
            op = instruction.op
            if isinstance(op, Access):
                number = self._number[op.buffer]
                instruction.buffer, instruction.write = number, op.mode == "w"
                split = op.mode == "w" and not instruction.elected and self._several(code, instruction.thread)
                warp = code.threads[instruction.thread].warp if split else None
                instruction.own, instruction.must = self._touch(op, number, instruction.slot, warp)
                instruction.foreign = self._foreign[number, instruction.slot]

    @staticmethod
    def _several(code: Code, thread: int) -> bool:
        return sum(other.role == code.threads[thread].role for other in code.threads) > 1

    def _touch(self, op: Access, number: int, slot: int, warp: int | None) -> tuple[int, int]:
        key = (op.buffer, slot, op.region, warp)
        if key not in self._touched:
            known = op.region is not None and (op.region == WHOLE or _fits(op.region, self.program.buffers[number]))
            own = 0
            for bit in range(len(self.places)):
                place = self.places[bit]
                if (place.buffer, place.slot) == (number, slot) and warp in (None, place.warp):
                    inside = not known or op.region == WHOLE or _inside(place.cell, op.region)
                    own |= inside << bit
            self._touched[key] = own, own if known else 0
        return self._touched[key]


def _fits(region: Region, buffer: Buffer) -> bool:
    return region is not None and len(region) == len(buffer.shape)


def _inside(cell: Box, region: Region) -> bool:
    assert region is not None
    return all(low <= a and b <= high for (a, b), (low, high) in zip(cell, region, strict=True))


def _cells(program: Program, buffer: Buffer) -> list[Box]:
    """One slot of ``buffer``, cut along the edges of all boxes that accesses name in it."""
    boxes = {
        statement.region
        for role in program.roles
        for statement in walk(role.body)
        if isinstance(statement, Access) and statement.buffer == buffer.name and statement.region
    }
    edges = [{0, extent} for extent in buffer.shape]
    for box in boxes:
        if box is not None and _fits(box, buffer):
            for dim, bounds in enumerate(box):
                edges[dim] |= {min(max(edge, 0), buffer.shape[dim]) for edge in bounds}
    return list(product(*(list(pairwise(sorted(axis))) or [(0, 0)] for axis in edges)))
