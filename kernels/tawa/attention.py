"""Causal attention, specialized by Triton's own compiler: it forks a producer and two consumers from this loop.

O[h, i] = softmax(scale · Q[h, i] · K[h, :i + 1]ᵀ) · V[h, :i + 1], f16 in and out, f32 inside; h counts batch · heads.
SEQ is a multiple of the blocks. One CTA per block of queries; ``num_warps`` is 4 (per consumer), ``num_stages`` is the
depth of the K and V rings.
"""

# Triton reads annotations of kernels as objects, so this module does without `from __future__ import annotations`.

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["heads"])
def attention(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    scale_log2,  # scale · log2(e): the kernel computes 2^x
    heads,
    SEQ,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    rows = heads * SEQ
    q_desc = tl.make_tensor_descriptor(q_ptr, [rows, D], [D, 1], [BLOCK_M, D])
    k_desc = tl.make_tensor_descriptor(k_ptr, [rows, D], [D, 1], [BLOCK_N, D])
    v_desc = tl.make_tensor_descriptor(v_ptr, [rows, D], [D, 1], [BLOCK_N, D])
    o_desc = tl.make_tensor_descriptor(o_ptr, [rows, D], [D, 1], [BLOCK_M, D])
    block = tl.program_id(0)
    first = tl.program_id(1) * SEQ
    query_row = first + block * BLOCK_M
    queries = block * BLOCK_M + tl.arange(0, BLOCK_M)
    keys = tl.arange(0, BLOCK_N)

    row_max = tl.full([BLOCK_M], float("-inf"), tl.float32)
    row_sum = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    q = q_desc.load([query_row, 0])
    end = (block + 1) * BLOCK_M if CAUSAL else SEQ
    for start in tl.range(0, end, BLOCK_N, warp_specialize=True):
        k = k_desc.load([first + start, 0])
        scores = tl.dot(q, k.T) * scale_log2
        if CAUSAL:
            scores = tl.where(queries[:, None] >= (start + keys)[None, :], scores, float("-inf"))
        new_max = tl.maximum(row_max, tl.max(scores, 1))
        p = tl.math.exp2(scores - new_max[:, None])
        correction = tl.math.exp2(row_max - new_max)
        row_sum = row_sum * correction + tl.sum(p, 1)
        acc = acc * correction[:, None]
        v = v_desc.load([first + start, 0])
        acc = tl.dot(p.to(tl.float16), v, acc)
        row_max = new_max
    o_desc.store([query_row, 0], (acc / row_sum[:, None]).to(tl.float16))
