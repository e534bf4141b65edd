"""Where Triton puts shared memory, and whether anything lies over an mbarrier that is still owned by the hardware.

An mbarrier owns its bytes from its init until an mbarrier.inval, whatever its last use. Triton's allocator takes the
last use instead, so its result is checked on the final offsets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from triton_overlap.memory import MEMDESC, memory_type
from triton_overlap.syntax import VALUE, Op

_OFFSET = re.compile(r"allocation\.offset = (\d+) : i32")
_LINE = re.compile(rf"(?:(?P<result>{VALUE}(?::\d+)?) = )?(?P<name>[a-z_]+\.[\w.]+)")
_TOTAL = re.compile(r"ttg\.shared = (\d+) : i32")
_INDEX = re.compile(rf"(?P<result>{VALUE}) = ttg\.memdesc_index (?P<base>{VALUE})\[")
_INIT = re.compile(rf"ttng\.init_barrier (?P<barrier>{VALUE}), ")
_INVALIDATE = re.compile(rf"ttng\.inval_barrier (?P<barrier>{VALUE})[ {{]")
_SIZES = {"ttng.tensormap_create": 128}


@dataclass(frozen=True)
class Block:
    """Placed memory: bytes from ``offset``; ``size`` None: scratch of an operation, of a size not printed."""

    name: str
    offset: int
    size: int | None
    line: int
    barriers: bool = False  # holds mbarriers that are never invalidated
    outside: bool = False  # after the specialized region

    @property
    def end(self) -> int:
        return self.offset + (self.size or 0)

    def __str__(self) -> str:
        size = "scratch" if self.size is None else f"{self.size} B"
        return f"{self.name} at {self.offset} ({size})"


@dataclass(frozen=True)
class Violation:
    """``block`` lies over mbarriers that are still owned by the hardware."""

    barriers: Block
    block: Block

    def __str__(self) -> str:
        return f"{self.block} lies over the mbarriers {self.barriers}, which are never invalidated"


@dataclass(frozen=True)
class Layout:
    """All placed memory of a kernel; ``total`` is what a launch requests, in bytes."""

    total: int
    blocks: tuple[Block, ...]

    def violations(self) -> tuple[Violation, ...]:
        """Every block over an mbarrier, other than what only lived before that mbarrier was initialised."""
        found = []
        for barriers in self.blocks:
            if not barriers.barriers:
                continue
            for block in self.blocks:
                if block is not barriers and block.line > barriers.line and _over(block, barriers):
                    found.append(Violation(barriers, block))
        return tuple(found)


def _over(block: Block, barriers: Block) -> bool:
    if block.size is None:
        # Its end is not known. Inside the region the allocator keeps it off what is live there.
        return block.offset < barriers.end and (block.offset >= barriers.offset or block.outside)
    return block.offset < barriers.end and barriers.offset < block.end


def read_layout(text: str) -> Layout:
    """Reads an allocated module, as :func:`triton_overlap.ttgir.allocate` prints it."""
    lines = text.splitlines()
    fork = next((n for n, line in enumerate(lines) if "ttg.warp_specialize(" in line), len(lines))
    join = next((n for n, line in enumerate(lines) if n > fork and re.match(r"\s*\} : \(.*\) -> ", line)), fork)
    owned = _owned(lines[:fork])
    blocks = []
    for number, line in enumerate(lines):
        offset = _OFFSET.search(line)
        head = _LINE.match(line.strip())
        if not offset or not head:
            continue
        result, name = head["result"] or "", head["name"]
        barriers = number < fork and result in owned
        blocks.append(
            Block(
                f"{result or name} (line {number + 1})",
                int(offset[1]),
                _size(name, line, number),
                number,
                barriers,
                number > join,
            )
        )
    total = _TOTAL.search(text)
    return Layout(int(total[1]) if total else 0, tuple(blocks))


def _owned(lines: list[str]) -> set[str]:
    """Names of allocations with an mbarrier that is initialised and not invalidated before the region."""
    bases: dict[str, str] = {}
    owned: dict[str, str] = {}  # view -> allocation
    slots: dict[str, str] = {}  # view -> allocation and index, as text
    for line in lines:
        index = _INDEX.search(line)
        if index:
            bases[index["result"]] = index["base"]
            slots[index["result"]] = line.split("=", 1)[1].split(" : ")[0].split("{")[0].strip()
        init, gone = _INIT.search(line), _INVALIDATE.search(line)
        if init:
            owned[slots.get(init["barrier"], init["barrier"])] = bases.get(init["barrier"], init["barrier"])
        if gone:
            owned.pop(slots.get(gone["barrier"], gone["barrier"]), None)
    return set(owned.values())


def _size(name: str, line: str, number: int) -> int | None:
    if name == "ttg.local_alloc":
        kinds = re.findall(MEMDESC, line)
        return memory_type(kinds[-1], Op(name, [], line, number)).size
    return _SIZES.get(name)
