"""The generated parts of one file: what precedes its first line, and what takes the place of each tile function."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from croqtile import ir
from croqtile.emit.device import emit_device, emit_wrappers
from croqtile.emit.host import emit_wrapper
from croqtile.emit.planning import make_plan
from croqtile.emit.wgmma import Instruction
from croqtile.runtime import DIRECTORY, prelude
from hb_analyzer.report import Placement


@dataclass(frozen=True)
class UnitText:
    """``prelude``: host runtime, device header and the matrix instructions in use. ``functions``: device kernel and
    host wrapper of each tile function, in the order given."""

    prelude: str
    functions: tuple[str, ...]


def emit_unit(kernels: Iterable[tuple[ir.Kernel, Placement]]) -> UnitText:
    """CUDA C++ for lowered kernels at these placements. Raises CompileError for what the hardware cannot do."""
    instructions: set[Instruction] = set()
    functions = []
    for kernel, placement in kernels:
        plan = make_plan(kernel, placement)
        device, used = emit_device(plan)
        instructions |= used
        functions.append(f"{device}\n{emit_wrapper(plan)}")
    header = (DIRECTORY / "choreo_device.cuh").read_text(encoding="utf-8")
    return UnitText("\n".join((prelude(), header, emit_wrappers(instructions))), tuple(functions))
