"""Smallest reproducer of docs/triton-barrier-reuse.md: needs an sm_90 GPU, torch and Triton 3.6.0, nothing else.

    python docs/triton_barrier_reuse.py            # stock Triton: wrong
    python docs/triton_barrier_reuse.py --remedy   # placeholder mbarriers dropped by triton_overlap: right

B is zero, so that C must be zero. Stock Triton lets placeholder mbarriers lie under the tiles of B; where one's old
value comes back over B, C is not zero any more.
"""

# Triton reads annotations of kernels as objects, so this module does without `from __future__ import annotations`.

import argparse
import sys
from pathlib import Path

try:
    import torch
    import triton
    import triton.language as tl
except ImportError as error:
    sys.exit(f"{error.name} is not installed here: pip install torch triton==3.6.0 (and an sm_90 GPU is needed)")

STAGES, SIZE, LAUNCHES = 5, 4096, 20


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BLOCK_K, BLOCK_N])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    row = tl.program_id(0) * BLOCK_M
    column = tl.program_id(1) * BLOCK_N
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in tl.range(0, K, BLOCK_K, warp_specialize=True):
        acc = tl.dot(a_desc.load([row, k]), b_desc.load([k, column]), acc)
    c_desc.store([row, column], acc.to(tl.float16))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--remedy", nargs="?", choices=("drop", "invalidate"), const="drop")
    remedy = parser.parse_args().remedy
    if not torch.cuda.is_available():
        sys.exit("torch sees no GPU here: this needs one with sm_90")
    kernel = gemm
    if remedy:
        sys.path.insert(0, str(Path(__file__).parents[1]))
        from triton_overlap import repair

        kernel = repair(gemm, remedy=remedy)
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    a = torch.ones(SIZE, SIZE, device="cuda", dtype=torch.float16)
    b = torch.zeros(SIZE, SIZE, device="cuda", dtype=torch.float16)
    c = torch.empty(SIZE, SIZE, device="cuda", dtype=torch.float16)
    wrong, seen = 0, set()
    for _ in range(LAUNCHES):
        kernel[(SIZE // 128, SIZE // 128)](a, b, c, SIZE, SIZE, SIZE, 128, 128, 64, num_warps=4, num_stages=STAGES)
        bad = c[c != 0]  # NaN differs from 0, too
        wrong += len(bad) > 0
        seen |= {str(value) for value in bad[:1000].tolist()}
    how = f"remedy: {remedy}" if remedy else "stock Triton"
    values = f"; instead of 0: {', '.join(sorted(seen)[:4])}" if seen else ""
    print(f"{how}: {wrong} of {LAUNCHES} launches wrong{values}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
