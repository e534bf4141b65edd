"""How long the tools take: ``choreo -gs`` and the analysis of each kernel, and Figure 2 as a whole. Judges nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from reproduce import ROOT, kernels
from reproduce.choreo import Choreo
from reproduce.steps.registers import KERNELS

REPEATS = 5


def main() -> int:
    choreo = Choreo.project()
    print(f"{'kernel':48} {'choreo -gs':>12} {'analysis':>12}   (median of {REPEATS})")
    for kernel in KERNELS:
        walls = [choreo.allocate(kernels.source(kernel), sala=True, log=None) for _ in range(REPEATS)]
        wall = statistics.median(found.finished.duration_s for found in walls)
        print(f"{kernel:48} {1000 * wall:9.0f} ms {1000 * _analysis(kernel):9.1f} ms")
    started = time.monotonic()
    command = [sys.executable, "-m", "invoke", "figure2", "--fresh", "--results", str(ROOT / "build" / "bench")]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    print(f"{'./ae figure2':48} {time.monotonic() - started:9.1f} s")
    return 0


def _analysis(kernel: str) -> float:
    """Seconds of the analysis alone, in this process, after one run to warm up."""
    from croqtile import frontend
    from croqtile.analyse import analyse

    lowered = frontend.load(str(kernels.source(kernel))).kernels
    times = []
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        for each in lowered:
            analyse(each, sala=True)
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])


if __name__ == "__main__":
    sys.exit(main())
