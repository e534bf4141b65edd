"""Shared memory as TTGIR names it: allocations, and views of one slot of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import prod

from triton_overlap.errors import RefusedError
from triton_overlap.syntax import Op
from triton_overlap.values import Key

_BITS = {
    "i64": 64,
    "i32": 32,
    "i16": 16,
    "i8": 8,
    "f64": 64,
    "f32": 32,
    "f16": 16,
    "bf16": 16,
    "f8E4M3FN": 8,
    "f8E5M2": 8,
}
_TYPE = re.compile(r"!ttg\.memdesc<((?:\d+x)+)(\w+), (#\w+), #smem(, mutable)?(?:, (?:\d+x)*\d+)?>")
MEMDESC = r"!ttg\.memdesc<[^<>]*>"


@dataclass(frozen=True)
class MemoryType:
    """A memory descriptor type: extents, element type and the name of its encoding."""

    shape: tuple[int, ...]
    element: str
    encoding: str
    mutable: bool

    @property
    def size(self) -> int:
        """Bytes."""
        return prod(self.shape) * _BITS[self.element] // 8

    def __str__(self) -> str:
        extents = "".join(f"{extent}x" for extent in self.shape)
        return f"!ttg.memdesc<{extents}{self.element}, {self.encoding}, #smem{', mutable' if self.mutable else ''}>"


def memory_type(text: str, op: Op) -> MemoryType:
    """Parses a memory descriptor type. Raises RefusedError for other types."""
    match = _TYPE.fullmatch(text)
    if not match or match[2] not in _BITS:
        raise RefusedError(f"the type {text} is not understood", op.where)
    shape = tuple(int(extent) for extent in match[1].rstrip("x").split("x"))
    return MemoryType(shape, match[2], match[3], match[4] is not None)


@dataclass(eq=False)
class Allocation:
    """One ttg.local_alloc. ``role`` is the index of the partition that contains it, None outside of all.

    A leading extent beyond two (beyond one, for barriers) is the ring: ``slots`` equal slots.
    """

    name: str
    op: Op
    type: MemoryType
    role: int | None
    barrier: bool = False
    counts: dict[int, int] = field(default_factory=dict)  # barriers: arrivals that init gives, by slot
    invalidated: set[int] = field(default_factory=set)  # barriers: slots that are invalidated before the roles start
    inits: list[Op] = field(default_factory=list)
    indices: list[Op] = field(default_factory=list)  # memdesc_index operations outside of the roles
    used: bool = False  # barriers: by anything but index, init and inval

    @property
    def slots(self) -> int:
        rank = 2 if self.barrier else 3
        return self.type.shape[0] if len(self.type.shape) == rank else 1

    @property
    def alignment(self) -> int:
        """Bytes; swizzled tiles need the period of their swizzle, 1024 at most."""
        return 16 if self.barrier else 1024


@dataclass(frozen=True)
class View:
    """A memory descriptor inside a kernel: one slot of an allocation, or (slot None) all of it.

    ``whole`` is false where it covers the slot in part only, or with another shape.
    """

    allocation: Allocation
    slot: Key | None
    whole: bool = True
