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
from croqtile.stress import Stress
from hb_analyzer.report import Placement


@dataclass(frozen=True)
class UnitText:
    """``prelude``: host runtime, device header and the matrix instructions in use. ``functions``: device kernel and
    host wrapper of each tile function, in the order given."""

    prelude: str
    functions: tuple[str, ...]


def emit_unit(kernels: Iterable[tuple[ir.Kernel, Placement, Stress | None]]) -> UnitText:
    """CUDA C++ for lowered kernels at these placements, and how to stress them (None: a plain build). Raises
    CompileError for what the hardware cannot do."""
    instructions: set[Instruction] = set()
    functions = []
    stressed = False
    for kernel, placement, stress in kernels:
        plan = make_plan(kernel, placement, stress)
        stressed = stressed or stress is not None
        device, used = emit_device(plan)
        instructions |= used
        functions.append(f"{device}\n{emit_wrapper(plan)}")
    headers = ["choreo_device.cuh", *(["choreo_stress.cuh"] if stressed else [])]
    texts = [(DIRECTORY / name).read_text(encoding="utf-8") for name in headers]
    return UnitText("\n".join((prelude(), *texts, emit_wrappers(instructions))), tuple(functions))
