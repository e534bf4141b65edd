"""mbarriers that Triton 3.6 initialises and then forgets.

Its compiler-specialized kernels initialise mbarriers that nothing uses or invalidates. To the allocator their life ends
at the init, so it puts tiles over them; to the hardware they own their bytes until an mbarrier.inval, and their old
value comes back over the tile (docs/triton-barrier-reuse.md).
"""

from __future__ import annotations

import re

from triton_overlap.edits import Edits
from triton_overlap.memory import Allocation
from triton_overlap.syntax import VALUE, Op, Region, walk
from triton_overlap.translate import Translation


def drop(translation: Translation, edits: Edits) -> None:
    """Removes the placeholders: that index and init are their only uses was seen when they were read."""
    for allocation in translation.placeholders:
        for op in (allocation.op, *allocation.indices, *allocation.inits):
            edits.drop(op.line)


def invalidate(translation: Translation, edits: Edits) -> None:
    """Invalidates the placeholders before the region forks, between two barriers of the CTA."""
    placeholders = translation.placeholders
    if not placeholders:
        return
    lines = ["gpu.barrier"]
    for allocation in placeholders:
        lines += [op.text.replace("ttng.init_barrier", "ttng.inval_barrier", 1) for op in _invalidations(allocation)]
    edits.insert_before(translation.outside.region.line, *lines, "gpu.barrier")


def _invalidations(allocation: Allocation) -> list[Op]:
    made = []
    for op in allocation.inits:
        text = re.sub(rf"({VALUE}), \d+", r"\1", op.text, count=1)
        made.append(Op(op.name, [], text, op.line))
    return made


def uses(region: Region, name: str) -> list[Op]:
    """Operations of ``region`` that mention ``name``."""
    pattern = re.compile(rf"{re.escape(name)}(?![\w$.-])")
    return [op for op in walk(region) if pattern.search(op.text)]
