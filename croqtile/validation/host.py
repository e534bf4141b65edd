"""What the host side of a generated file says: tensor maps, sizes of the launch, names of the kernel's parameters.

Read from the CUDA text itself (its kernel's head and its wrapper's calls), not from what generated it: the host code is
no part of the PTX.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from croqtile.validation.ptx import PtxError, split_operands


@dataclass(frozen=True)
class TensorMap:
    """``box`` in elements, innermost first; ``swizzle`` in bytes, 0 for none."""

    name: str
    element_bytes: int
    box: tuple[int, ...]
    swizzle: int

    @property
    def bytes(self) -> int:
        """What one copy instruction moves, and what its barrier counts."""
        return math.prod(self.box) * self.element_bytes


@dataclass(frozen=True)
class HostSide:
    """``parameters``: names of the kernel's parameters in order. ``block``: grid index → its axis (x, y, z)."""

    parameters: tuple[str, ...]
    maps: Mapping[str, TensorMap]
    block: Mapping[str, str]
    threads: int
    dynamic_bytes: int


# CUtensorMapDataType → bytes (CUDA driver API)
_TYPES = {"UINT8": 1, "UINT16": 2, "FLOAT16": 2, "BFLOAT16": 2, "UINT32": 4, "INT32": 4, "FLOAT32": 4, "FLOAT64": 8}
_MAP = re.compile(
    r"const CUtensorMap (\w+) = choreo::launch::encode\(\s*\w+\s*,\s*choreo::launch::TileMap<\d>\{\s*\"[^\"]*\",\s*"
    r"[^,]+,\s*CU_TENSOR_MAP_DATA_TYPE_(\w+),\s*(\d+),\s*\{[^{}]*\},\s*\{[^{}]*\},\s*\{([^{}]*)\},\s*"
    r"CU_TENSOR_MAP_SWIZZLE_(\w+)\s*\}\)"
)


def read_host(cuda: str, function: str) -> HostSide:
    """The host side of the kernel ``function`` in the generated file ``cuda``. Raises PtxError."""
    head = re.search(rf"__global__ void[^{{;]*?\b{function}\(([^{{]*)\) \{{", cuda)
    launch = re.search(rf"choreo::launch::enqueue\(\w+, {function}, \w+, (\d+), (\d+),([^;]*)\);", cuda)
    allowed = re.search(rf"choreo::launch::allow_dynamic_memory\(\w+, {function}, (\d+),", cuda)
    if head is None or launch is None or allowed is None or launch.start() < head.end():
        raise PtxError(f"the generated file neither defines nor launches {function} as expected")
    parameters = tuple(re.split(r"[\s*&]+", part)[-1] for part in split_operands(head[1]))
    passed = [re.sub(r"static_cast<\w+>\((\w+)\)", r"\1", part) for part in split_operands(launch[3])]
    names = tuple(re.sub(r"\.data\(\)$", "", part) for part in passed)
    wrapper = cuda[head.end() : launch.end()]
    maps = {}
    for found in _MAP.finditer(wrapper):
        name, kind, size = found[1], found[2], int(found[3])
        if _TYPES.get(kind) != size:
            raise PtxError(f"the tensor map {name} has elements of type {kind}, which are not {size} bytes wide")
        box = tuple(int(extent) for extent in found[4].split(","))
        swizzle = 0 if found[5] == "NONE" else int(found[5].rstrip("B"))
        if swizzle and box[0] * size != swizzle:
            raise PtxError(f"the rows of the tensor map {name} have {box[0] * size} bytes, its swizzle {swizzle}")
        maps[name] = TensorMap(name, size, box, swizzle)
    if len(names) != len(parameters):
        raise PtxError(f"{function} has {len(parameters)} parameters, but {len(names)} are passed")
    for position, name in enumerate(parameters):
        if names[position] != name:
            raise PtxError(f"parameter {position} of {function} is {name}, but {names[position]} is passed")
    if launch[2] != allowed[1]:
        raise PtxError(f"{launch[2]} bytes are requested for {function}, but {allowed[1]} are allowed")
    block: dict[str, str] = dict(re.findall(r"const int (\w+) = blockIdx\.([xyz]);", wrapper))
    return HostSide(parameters, maps, block, int(launch[1]), int(launch[2]))
