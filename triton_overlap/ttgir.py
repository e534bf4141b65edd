"""Triton's own parser, verifier, printer and allocator, used on TTGIR texts. Needs Triton, no GPU."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from triton_overlap.errors import OverlapError

CAPABILITY = 90
_PTX_VERSION = 85  # only instruction selection depends on it, not memory


def load(text: str) -> Any:
    """Parses and verifies ``text``. Raises OverlapError with Triton's message, or if there is no Triton."""
    try:
        from triton._C.libtriton import ir
        from triton.backends.compiler import GPUTarget
        from triton.backends.nvidia.compiler import CUDABackend
    except ModuleNotFoundError:
        raise OverlapError("its TTGIR is read with Triton, which is not installed: pip install triton==3.6.0") from None

    context = ir.context()
    ir.load_dialects(context)
    CUDABackend(GPUTarget("cuda", CAPABILITY, 32)).load_dialects(context)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ttgir"
        path.write_text(text, encoding="utf-8")
        try:
            module = ir.parse_mlir_module(str(path), context)
        except RuntimeError as error:
            raise OverlapError(f"Triton does not accept this TTGIR: {error}") from None
    module.context = context
    if not module.verify():
        raise OverlapError("Triton's verifier does not accept this TTGIR")
    return module


def normalise(text: str) -> str:
    """The module as Triton prints it without locations, which is what this package reads."""
    printed: str = load(text).str_nodebug()
    return printed


def allocate(text: str) -> str:
    """The module after Triton's shared-memory allocation, with ``allocation.offset`` on what was placed."""
    from triton._C.libtriton import ir, nvidia, passes

    module = load(text)
    manager = ir.pass_manager(module.context)
    passes.ttgpuir.add_combine_tensor_select_and_if(manager)
    passes.ttgpuir.add_allocate_warp_groups(manager)
    passes.convert.add_scf_to_cf(manager)
    passes.gluon.add_inliner(manager)
    nvidia.passes.ttgpuir.add_allocate_shared_memory_nv(manager, CAPABILITY, _PTX_VERSION)
    manager.run(module, "allocate")
    printed: str = module.str_nodebug()
    return printed
