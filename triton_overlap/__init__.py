"""Shared-memory overlap for warp-specialized Triton kernels (sm_90, Triton 3.6), proved by ``hb_analyzer``.

    from triton_overlap import overlap

    @overlap
    @triton.jit
    def kernel(...): ...

The output tile that a consumer stages in shared memory then lies over a ring of operands that it no longer needs. The
kernel is translated into the concurrency model, the engine decides, and what it does not accept is refused with its
reason. Placeholder mbarriers that Triton 3.6 leaves under the rings are removed on the way
(``docs/triton-barrier-reuse.md``).
"""

from triton_overlap.compile import compile_overlapped, overlap, plan_of, repair
from triton_overlap.errors import OverlapError, RefusedError
from triton_overlap.plan import Plan, Settings, make_plan

__all__ = [
    "OverlapError",
    "Plan",
    "RefusedError",
    "Settings",
    "compile_overlapped",
    "make_plan",
    "overlap",
    "plan_of",
    "repair",
]
