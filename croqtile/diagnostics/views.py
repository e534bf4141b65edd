"""Messages about shapes, views of tensors and tiles, slots of arrays."""

from __future__ import annotations

from croqtile.diagnostics.base import Diagnostic


class ShapeMismatch(Diagnostic):
    template = "shapes differ: {left} is {left_shape}, {right} is {right_shape}"
    left: str
    left_shape: str
    right: str
    right_shape: str


class ElementTypeMismatch(Diagnostic):
    template = "element types differ: {left} is {left_type}, {right} is {right_type}"
    left: str
    left_type: str
    right: str
    right_type: str


class UnknownViewStep(Diagnostic):
    template = "unknown view operation '{name}'; known are subspan, step, at, chunkat, sqz"
    name: str


class MisplacedViewStep(Diagnostic):
    template = "{step} must {must}"
    step: str
    must: str


class NeedsSlot(Diagnostic):
    template = "'{name}' is an array of {count} {things}: name one as {name}[…]"
    name: str
    count: int
    things: str


class NotAnArray(Diagnostic):
    template = "'{name}' is a single {thing}, not an array: it takes no index"
    name: str
    thing: str


class SlotOutOfRange(Diagnostic):
    template = "slot {slot} of '{name}' does not exist: it has {count} (0 to {last})"
    name: str
    slot: int
    count: int
    last: int


class TileOutOfRange(Diagnostic):
    template = "this tile is {start} to {end} in dimension {dim} of '{name}', which has {extent} elements there"
    name: str
    dim: int
    start: int
    end: int
    extent: int


class ChunkNotDividing(Diagnostic):
    template = "chunkat cannot cut dimension {dim} ({extent}) into {parts} equal parts"
    dim: int
    extent: str
    parts: str


class ChunkOnBothSides(Diagnostic):
    template = "chunkat on both sides of a copy leaves its extents undefined: use subspan on one side"
