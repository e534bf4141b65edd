"""What the device kernel and its host wrapper must agree on: parameters, tensor maps, grid, shared memory.

The device side (``device.py``) and the host side (``host.py``) are emitted from one :class:`EmitPlan`, so that a
parameter, a box or a byte count is decided once. ``planning.make_plan`` builds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from croqtile import ir
from croqtile.stress import Stress


@dataclass(frozen=True)
class MapDim:
    """One dimension of a tensor map. ``extent`` and ``stride`` are in elements of the tensor; they are expressions of
    constants and symbolic dimensions only, which the wrapper evaluates at launch. The stride of the innermost dimension
    is always 1 (the driver does not take it)."""

    extent: ir.Expr
    stride: ir.Expr
    box: int  # elements per copy instruction along this dimension, 1 … 256


@dataclass(frozen=True)
class MapPlan:
    """One ``CUtensorMap`` parameter: how the copy engine sees ``tensor`` for one shape of tile.

    ``dims`` innermost first (the order of ``cuTensorMapEncodeTiled``), one to five of them. A tensor dimension that is
    cut twice (a head's rows, then a tile of these) is two map dimensions, so that the engine clips the tile at the
    head's end and not at the tensor's; ``tensormap.access`` says how a view becomes dimensions and an origin. ``whole``
    lists (inner extent, dimension) pairs that must divide exactly at launch because of that: the wrapper stops with a
    message if ``dimension % extent != 0``.
    ``swizzle`` is 0, 32, 64 or 128 bytes; box[0] · element size ≤ swizzle unless it is 0.
    """

    name: str  # of the kernel parameter
    tensor: ir.Tensor
    dims: tuple[MapDim, ...]
    swizzle: int
    writes: bool = False  # used by shared → global copies
    whole: tuple[tuple[ir.Expr, ir.Expr], ...] = ()

    @property
    def box(self) -> tuple[int, ...]:
        return tuple(dim.box for dim in self.dims)


@dataclass(frozen=True)
class GridAxis:
    """Index ``symbol`` (0 ≤ symbol < symbol.bound) is ``blockIdx.<axis>``.

    Limits of the extents: x 2³¹ − 1; y and z 65535."""

    symbol: ir.Symbol
    axis: str  # "x" | "y" | "z"


@dataclass(frozen=True)
class Param:
    """One parameter of the device kernel, in order. ``source`` says what the wrapper passes:

    a MapPlan (``const __grid_constant__ CUtensorMap``), a Tensor (its device pointer), a DIM symbol (its value) or a
    Captured (its value, converted to ``ctype``).
    """

    name: str
    ctype: str
    source: MapPlan | ir.Tensor | ir.Symbol | ir.Captured


@dataclass(frozen=True)
class EmitPlan:
    """Everything that both sides of the launch need.

    ``placement_bytes`` is the peak of the placement, ``dynamic_bytes`` what the launch requests: placement + slack
    (1024 for kernels that load operands with ``mma.load.swiz<128>``, else 128). ``barrier_offsets`` gives the byte
    offset of each event's first slot from the base of dynamic memory (behind every buffer, 8 bytes per slot); events
    in ``static_events`` did not fit into the slack and live in static shared memory instead. ``stress`` is set only in
    builds for stress tests.
    """

    kernel: ir.Kernel
    offsets: Mapping[str, int]  # buffer name → byte offset
    placement_bytes: int
    dynamic_bytes: int
    barrier_offsets: Mapping[str, int]  # event name → byte offset
    static_events: tuple[ir.Event, ...]
    maps: tuple[MapPlan, ...]
    params: tuple[Param, ...]
    grid: tuple[GridAxis, ...]  # in the order of kernel.grid
    threads: int  # per CTA: 128 · warpgroups
    stress: Stress | None = None

    @property
    def function(self) -> str:
        """Name of the ``__global__`` function."""
        return f"__choreo_device_{self.kernel.name}"

    @property
    def static_bytes(self) -> int:
        return 8 * sum(event.slots for event in self.static_events)
