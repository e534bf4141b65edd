"""``python -m reproduce.tawa.child bytes|run|launch [KERNEL…]``: works on kernels and prints one JSON object.

``bytes`` compiles every mode (no GPU); ``run`` checks and times every mode that can launch; ``launch`` launches each
kernel's stock and overlapped mode once, for Nsight Compute.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from reproduce.tawa.rows import ALL, CONTROL, OVERLAP, PAPER, STOCK, Kernel, find


def compile_all(kernels: tuple[Kernel, ...]) -> dict[str, Any]:
    """By ``kernel.mode``: bytes of shared memory; and what was decided, as text."""
    import triton

    from reproduce.tawa.sources import build
    from triton_overlap import OverlapError, plan_of

    found: dict[str, Any] = {"triton": triton.__version__}
    for kernel in kernels:
        for mode in kernel.modes:
            key = f"{kernel.name}.{mode}"
            try:
                compiled = build(kernel, mode)
            except OverlapError as error:
                found[f"{key}_reason"] = f"refused: {error}"
                continue
            found[key] = compiled.metadata.shared
            plan = plan_of(compiled)
            if plan is not None:
                found[f"{key}.guarded"] = any(each.guarded for each in plan.laid)
                found[f"{key}.unsafe"] = plan.unsafe
                found[f"{key}.over"] = "; ".join(f"{each.staging} over {each.ring}" for each in plan.laid)
                found[f"{kernel.name}.stock.violations"] = len(plan.stock_violations)
                if mode == OVERLAP:
                    found[f"{kernel.name}.stock.placeholders"] = plan.removed
    return found


def measure(kernel: Kernel) -> dict[str, Any]:
    from reproduce.tawa import gpu

    return gpu.measure(kernel)


def launch_each() -> dict[str, Any]:
    """Launches in this order; the names of what was launched are in the result."""
    from reproduce.tawa import gpu

    order = []
    for kernel in PAPER:
        for mode in (STOCK, OVERLAP, CONTROL):
            if mode in kernel.modes and gpu.launch_once(kernel, mode):
                order.append(f"{kernel.name}.{mode}")
    return {"order": order}


def main(argv: list[str]) -> int:
    what, names = argv[0], argv[1:]
    kernels = tuple(find(name) for name in names) if names else ALL
    if what == "bytes":
        result = compile_all(kernels)
    elif what == "run":
        result = measure(kernels[0])
    elif what == "launch":
        result = launch_each()
    else:
        raise SystemExit(f"unknown work {what!r}")
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
