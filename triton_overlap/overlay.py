"""Rewrites a staging tile into a view of the ring that it may lie over, before Triton allocates memory.

The ring's lifetime then includes the tile's, so that the allocator, and the barrier insertion after it, see the overlap
and stay consistent. Offsets are never edited.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from triton_overlap.edits import Edits
from triton_overlap.errors import RefusedError
from triton_overlap.memory import MEMDESC, Allocation, View
from triton_overlap.outside import initial_value
from triton_overlap.placeholders import uses
from triton_overlap.translate import Translation


@dataclass(frozen=True)
class Overlay:
    """``staging`` goes over the first bytes of ``ring``."""

    staging: Allocation
    ring: Allocation


def fits(overlay: Overlay) -> bool:
    """Whether the tile is small enough, and swizzled (so aligned) like the ring."""
    tile, ring = overlay.staging, overlay.ring
    return tile.type.size <= ring.type.size and tile.slots == 1 and tile.type.encoding == ring.type.encoding


def lay(translation: Translation, overlay: Overlay, edits: Edits) -> None:
    """Makes the rewrite. Raises RefusedError if the text around the tile is not as expected."""
    staging, ring = overlay.staging, overlay.ring
    assert staging.role is not None
    source = _name_of(translation, ring, staging.role)
    if source is None:
        raise RefusedError("the ring is not known to the partition that stages", staging.op.where)
    kind = replace(staging.type, mutable=True)
    view = f"ttg.memdesc_reinterpret {source} : {ring.type} -> {kind}"
    value = initial_value(staging.op)
    if value is None:
        edits.replace(staging.op.line, _indent(edits.line(staging.op.line)) + f"{staging.name} = {view}")
        return
    tensor = re.fullmatch(rf".* : \((?P<type>.*)\) -> {MEMDESC}", staging.op.text)
    if not tensor:
        raise RefusedError("the tile is not stored as expected", staging.op.where)
    indent = _indent(edits.line(staging.op.line))
    edits.replace(staging.op.line, indent + f"{staging.name} = {view}")
    edits.insert_after(staging.op.line, f"ttg.local_store {value}, {staging.name} : {tensor['type']} -> {kind}")
    for op in uses(translation.roles[staging.role], staging.name):
        if op is not staging.op:
            if op.name != "ttng.async_tma_copy_local_to_global":
                raise RefusedError("the tile is used in a way that is not understood", op.where)
            edits.substitute(op.line, str(staging.type), str(kind))


def _name_of(translation: Translation, ring: Allocation, role: int) -> str | None:
    for name, value in translation.names[role].values.items():
        if isinstance(value, View) and value.allocation is ring and value.slot is None and value.whole:
            return name
    return None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
