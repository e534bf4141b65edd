"""Warp-specialized GEMM in Gluon: one producer warp issues bulk copies, one consumer warpgroup multiplies.

D[M, N] = A[M, K] · B[K, N], f16 in and out, f32 accumulation. M, N and K are multiples of the tile.

``gemm`` stages the output tile inside the specialized region, so that stock Triton keeps it apart from the operands.
``gemm_epilogue_outside`` is the control: the consumer returns its accumulator and stages it after the region, where
stock Triton itself reuses the operands' memory.
"""

# Triton reads annotations of kernels as objects, so this module does without `from __future__ import annotations`.

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@gluon.jit
def _load(a_desc, b_desc, a_ring, b_ring, full, empty, k_tiles, row, column, STAGES: gl.constexpr):
    """Producer: fills stage i mod STAGES once its consumer has released it."""
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    for i in range(k_tiles):
        stage = i % STAGES
        mbarrier.wait(empty.index(stage), (i // STAGES) & 1)
        mbarrier.expect(full.index(stage), a_desc.block_type.nbytes + b_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(a_desc, [row, i * BLOCK_K], full.index(stage), a_ring.index(stage))
        tma.async_copy_global_to_shared(b_desc, [i * BLOCK_K, column], full.index(stage), b_ring.index(stage))


@gluon.jit
def _accumulate(acc, a_ring, b_ring, full, empty, k_tiles, STAGES: gl.constexpr):
    """Consumer: releases a stage when the matrix instructions that read it are done."""
    for i in range(STAGES):
        mbarrier.arrive(empty.index(i), count=1)
    for i in range(k_tiles):
        stage = i % STAGES
        mbarrier.wait(full.index(stage), (i // STAGES) & 1)
        acc = warpgroup_mma(a_ring.index(stage), b_ring.index(stage), acc, is_async=True)
        acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
        mbarrier.arrive(empty.index(stage), count=1)
    return acc


@gluon.jit
def _store(acc, c_desc, row, column):
    staging = gl.allocate_shared_memory(c_desc.dtype, c_desc.block_type.shape, c_desc.layout)
    staging.store(acc.to(c_desc.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(c_desc, [row, column], staging)
    tma.store_wait(pendings=0)


@gluon.jit
def _multiply_and_store(
    a_ring, b_ring, full, empty, c_desc, k_tiles, row, column, STAGES: gl.constexpr, layout: gl.constexpr
):
    acc = gl.full(c_desc.block_type.shape, 0, gl.float32, layout)
    acc = _accumulate(acc, a_ring, b_ring, full, empty, k_tiles, STAGES)
    _store(acc, c_desc, row, column)


@gluon.jit
def _multiply(a_ring, b_ring, full, empty, c_desc, k_tiles, STAGES: gl.constexpr, layout: gl.constexpr):
    acc = gl.full(c_desc.block_type.shape, 0, gl.float32, layout)
    acc = _accumulate(acc, a_ring, b_ring, full, empty, k_tiles, STAGES)
    return (acc,)


@gluon.jit
def _rings(a_desc, b_desc, STAGES: gl.constexpr):
    a_ring = gl.allocate_shared_memory(a_desc.dtype, [STAGES] + a_desc.block_type.shape, a_desc.layout)  # noqa: RUF005  (no unpacking in Gluon)
    b_ring = gl.allocate_shared_memory(b_desc.dtype, [STAGES] + b_desc.block_type.shape, b_desc.layout)  # noqa: RUF005  (no unpacking in Gluon)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    fence_async_shared()
    return a_ring, b_ring, full, empty


@gluon.jit
def gemm(a_desc, b_desc, c_desc, K, STAGES: gl.constexpr, layout: gl.constexpr):
    BLOCK_M: gl.constexpr = c_desc.block_type.shape[0]
    BLOCK_N: gl.constexpr = c_desc.block_type.shape[1]
    a_ring, b_ring, full, empty = _rings(a_desc, b_desc, STAGES)
    k_tiles = gl.cdiv(K, a_desc.block_type.shape[1])
    row = gl.program_id(0) * BLOCK_M
    column = gl.program_id(1) * BLOCK_N
    gl.warp_specialize(
        [
            (_multiply_and_store, (a_ring, b_ring, full, empty, c_desc, k_tiles, row, column, STAGES, layout)),
            (_load, (a_desc, b_desc, a_ring, b_ring, full, empty, k_tiles, row, column, STAGES)),
        ],
        [1],
        [24],
    )


@gluon.jit
def gemm_epilogue_outside(a_desc, b_desc, c_desc, K, STAGES: gl.constexpr, layout: gl.constexpr):
    BLOCK_M: gl.constexpr = c_desc.block_type.shape[0]
    BLOCK_N: gl.constexpr = c_desc.block_type.shape[1]
    a_ring, b_ring, full, empty = _rings(a_desc, b_desc, STAGES)
    k_tiles = gl.cdiv(K, a_desc.block_type.shape[1])
    row = gl.program_id(0) * BLOCK_M
    column = gl.program_id(1) * BLOCK_N
    (acc,) = gl.warp_specialize(
        [
            (_multiply, (a_ring, b_ring, full, empty, c_desc, k_tiles, STAGES, layout)),
            (_load, (a_desc, b_desc, a_ring, b_ring, full, empty, k_tiles, row, column, STAGES)),
        ],
        [1],
        [24],
    )
    _store(acc, c_desc, row, column)
