"""Triton sources of the Tawa rows, and their compilation in every mode. Imports Triton; compiling needs no GPU."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from functools import cache
from types import ModuleType
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource

from reproduce import ROOT
from reproduce.tawa.rows import (
    BLOCK_K,
    CONTROL,
    HEAD_DIM,
    INVALIDATE,
    NO_GUARD,
    OVERLAP,
    REPAIR,
    STOCK,
    UNCHECKED,
    Kernel,
)
from triton_overlap import Settings, compile_overlapped

TARGET = GPUTarget("cuda", 90, 32)
SETTINGS = {
    OVERLAP: Settings(),
    INVALIDATE: Settings(remedy="invalidate"),
    REPAIR: Settings(overlap=False),
    NO_GUARD: Settings(guard=False),
    UNCHECKED: Settings(remedy="keep", checked=False),
}
_ALIGNED = [["tt.divisibility", 16]]


@cache
def module(name: str) -> ModuleType:
    """A file of kernels/tawa. Triton reads the source of what it compiles, so that it must come from a file."""
    spec = importlib.util.spec_from_file_location(f"tawa_{name}", ROOT / "kernels" / "tawa" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


def function(kernel: Kernel, mode: str = STOCK) -> Any:
    """The kernel's function, as ``triton.jit`` or ``gluon.jit`` made it."""
    if kernel.kind == "gemm":
        return module("gemm").gemm_epilogue_outside if mode == CONTROL else module("gemm").gemm
    if kernel.is_attention:
        return module("attention").attention
    return getattr(module("gemm_auto"), f"gemm_{kernel.kind}")


def constants(kernel: Kernel) -> dict[str, Any]:
    """Compile-time arguments."""
    m, n = kernel.block
    if kernel.kind == "gemm":
        layout = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, n, 16])
        return {"STAGES": kernel.stages, "layout": layout}
    if kernel.is_attention:
        return {"D": HEAD_DIM, "BLOCK_M": m, "BLOCK_N": n, "CAUSAL": True}
    return {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": BLOCK_K}


def options(kernel: Kernel) -> dict[str, int]:
    """Compile options. The Gluon kernel asks for 128 registers per thread (its consumer then gets 232, its producer
    24), so that not registers but shared memory decides whether a second CTA fits an SM."""
    if kernel.kind == "gemm":
        return {"num_warps": 4, "maxnreg": 128}
    return {"num_warps": 4, "num_stages": kernel.stages}


def tiles(kernel: Kernel) -> dict[str, tuple[int, int]]:
    """Tiles that the descriptors of the Gluon kernel move."""
    m, n = kernel.block
    return {"a_desc": (m, BLOCK_K), "b_desc": (BLOCK_K, n), "c_desc": (m, n)}


def tile_layout(tile: tuple[int, int]) -> Any:
    return gl.NVMMASharedLayout.get_default_for(list(tile), gl.float16)


def source(kernel: Kernel, mode: str = STOCK) -> Any:
    """What ``triton.compile`` takes, specialised as a launch on aligned, 16-divisible arguments is."""
    values = constants(kernel)
    if kernel.kind == "gemm":
        signature = {
            name: f"tensordesc<fp16{list(tile)},{tile_layout(tile)!r}>" for name, tile in tiles(kernel).items()
        }
        signature |= {"K": "i32"} | dict.fromkeys(values, "constexpr")
        return GluonASTSource(function(kernel, mode), signature, values, {(3,): _ALIGNED})
    pointers, sizes = (("a_ptr", "b_ptr", "c_ptr"), ("M", "N", "K"))
    signature = dict.fromkeys(pointers, "*fp16") | dict.fromkeys(sizes, "i32")
    aligned = range(6)
    if kernel.is_attention:
        signature = dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "o_ptr"), "*fp16")
        signature |= {"scale_log2": "fp32", "heads": "i32", "SEQ": "i32"}
        aligned = range(7)
    signature |= dict.fromkeys(values, "constexpr")
    positions = [n for n in aligned if not (kernel.is_attention and n == 4)]
    return ASTSource(function(kernel, mode), signature, values, {(n,): _ALIGNED for n in positions})


def build(kernel: Kernel, mode: str) -> Any:
    """Compiles for sm_90. Raises RefusedError or OverlapError where the overlap does."""
    return compile_mode(source(kernel, mode), TARGET, options(kernel), mode)


def compile_mode(src: Any, target: Any, chosen: Any, mode: str) -> Any:
    """``triton.compile`` in ``mode``."""
    if mode in (STOCK, CONTROL):
        return triton.compile(src, target=target, options=dict(chosen))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unsafe modes are unsafe on purpose, and marked
        return compile_overlapped(src, target, chosen, settings=SETTINGS[mode])
