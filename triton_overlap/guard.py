"""The guard of persistent kernels: the producer waits for the consumer's store before it loads the next tile.

Stock kernels need no such wait, since nothing of the next tile touches the staging memory. The guard is only proposed
here; the engine decides about the kernel with it, as about any other.
"""

from __future__ import annotations

import re

from triton_overlap.edits import Edits
from triton_overlap.memory import MemoryType
from triton_overlap.overlay import Overlay
from triton_overlap.roles import Use
from triton_overlap.syntax import Op, captures_of, parse_for
from triton_overlap.translate import Translation


def applies(translation: Translation, overlay: Overlay) -> bool:
    """Whether consumer and producer both work in a loop over tiles, in the known form."""
    producer, consumer = _producer(translation, overlay), _consumer(translation, overlay)
    return bool(producer and consumer and _store_wait(translation, overlay))


def insert(translation: Translation, overlay: Overlay, edits: Edits) -> None:
    """Adds an mbarrier that the consumer sets after its store, and for which the producer waits at each tile's head."""
    producer = _producer(translation, overlay)
    stored = _store_wait(translation, overlay)
    assert producer is not None and stored is not None and overlay.staging.role is not None
    array, one = _types(translation)
    region = translation.outside.region
    name = "%guard"  # unique: Triton's printer gives out numbers, and names of constants and arguments
    at_producer, at_consumer = (name if role == 0 else f"{name}_part" for role in (producer.role, overlay.staging.role))
    edits.insert_before(
        region.line,
        f"{name}_start = arith.constant 0 : i32",
        f"{name} = ttg.local_alloc : () -> {array}",
        f"{name}_init = ttg.memdesc_index {name}[{name}_start] : {array} -> {one}",
        f"ttng.init_barrier {name}_init, 1 : {one}",
        "gpu.barrier",
    )
    _capture(translation, edits, name, array)
    loop = parse_for(producer.loops[0])
    edits.insert_after(
        producer.loops[0].line,
        f"{name}_zero = arith.constant 0 : i32",
        f"{name}_one = arith.constant 1 : i32",
        f"{name}_done = arith.subi {loop.iv}, {loop.lower} : i32",
        f"{name}_tile = arith.divui {name}_done, {loop.step} : i32",
        f"{name}_next = arith.addi {name}_tile, {name}_one : i32",
        f"{name}_phase = arith.andi {name}_next, {name}_one : i32",
        f"{name}_head = ttg.memdesc_index {at_producer}[{name}_zero] : {array} -> {one}",
        f"ttng.wait_barrier {name}_head, {name}_phase : {one}",
    )
    edits.insert_after(
        stored.line,
        f"{name}_zero = arith.constant 0 : i32",
        f"{name}_tail = ttg.memdesc_index {at_consumer}[{name}_zero] : {array} -> {one}",
        f"ttng.arrive_barrier {name}_tail, 1 : {one}",
    )


def _producer(translation: Translation, overlay: Overlay) -> Use | None:
    found = [use for use in translation.shared.uses if use.allocation is overlay.ring and use.copy_in and use.loops]
    return found[0] if found and len({(use.role, use.loops[0].line) for use in found}) == 1 else None


def _consumer(translation: Translation, overlay: Overlay) -> Use | None:
    found = [use for use in translation.shared.uses if use.allocation is overlay.staging]
    return found[0] if found and all(len(use.loops) == 1 for use in found) else None


def _store_wait(translation: Translation, overlay: Overlay) -> Op | None:
    """The last wait for stores in the loop of the staging tile."""
    consumer = _consumer(translation, overlay)
    if consumer is None:
        return None
    body = consumer.loops[0].regions[0].ops
    found = [op for op in body if op.name == "ttng.async_tma_store_wait"]
    return found[-1] if found else None


def _types(translation: Translation) -> tuple[MemoryType, MemoryType]:
    """Types of the array of one mbarrier and of its slot, in the encoding of the kernel's own."""
    known = next(each for each in translation.outside.allocations.values() if each.barrier)
    return MemoryType((1, 1), "i64", known.type.encoding, True), MemoryType((1,), "i64", known.type.encoding, True)


def _capture(translation: Translation, edits: Edits, name: str, array: MemoryType) -> None:
    """Hands the mbarrier to every partition: they see captured values only."""
    region = translation.outside.region
    captures = captures_of(region)
    head = edits.line(region.line)
    position = head.index(")", head.index("ttg.warp_specialize("))
    edits.replace(region.line, head[:position] + (", " if captures else "") + name + head[position:])
    for part in region.regions[1:]:
        line = edits.line(part.first)
        edits.replace(part.first, re.sub(r"\) num_warps\(", f", {name}_part: {array}) num_warps(", line, count=1))
    last = edits.line(region.last)
    edits.replace(region.last, re.sub(r"^(\s*\} : \(.*)\) -> (\(\)|.*)$", rf"\1, {array}) -> \2", last, count=1))
