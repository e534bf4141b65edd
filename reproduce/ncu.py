"""Nsight Compute: the launch's resources and active warps of the compiler's kernel, read from its CSV output."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reproduce.programs import Program
from reproduce.step import Context, NoRunError, NotMeasuredError

METRICS = {
    "dynamic": "launch__shared_mem_per_block_dynamic",
    "static": "launch__shared_mem_per_block_static",
    "registers": "launch__registers_per_thread",
    "threads": "launch__block_size",
    "limit_shared": "launch__occupancy_limit_shared_mem",
    "limit_registers": "launch__occupancy_limit_registers",
    "limit_warps": "launch__occupancy_limit_warps",
    "limit_blocks": "launch__occupancy_limit_blocks",
    "active": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
LIMIT_S = 180.0

NO_PERMISSION = (
    "ncu may not read performance counters (ERR_NVGPUCTRPERM): run as root, or set "
    "NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module; in a container, add the capability SYS_ADMIN"
)


@dataclass(frozen=True)
class Profile:
    """One launch: bytes of shared memory per CTA, registers per thread, CTAs per SM by resource, active warps in %."""

    dynamic: int
    static: int
    registers: int
    threads: int
    limit_shared: int
    limit_registers: int
    limit_warps: int
    limit_blocks: int
    active: float

    @property
    def ctas(self) -> int:
        return min(self.limit_shared, self.limit_registers, self.limit_warps, self.limit_blocks)


def profile(context: Context, program: Program, arguments: Sequence[str], *, key: str, **env: str) -> Profile:
    """Profiles the first launch of the compiler's kernel in ``program``; errors as :func:`profile_launch`."""
    quick = {"CHOREO_SKIP_VERIFY": "1", "CHOREO_DISABLE_TIMING": "1"}
    return profile_launch(context, [program.executable, *arguments], "__choreo_device_", key=key, **quick, **env)


def profile_launch(context: Context, argv: Sequence[str | Path], kernel: str, *, key: str, **env: str) -> Profile:
    """Profiles the first launch of a kernel whose name contains ``kernel``; errors as :func:`profile_launches`."""
    return profile_launches(context, argv, kernel, 1, key=key, **env)[0]


def profile_launches(
    context: Context, argv: Sequence[str | Path], kernel: str, count: int, *, key: str, **env: str
) -> list[Profile]:
    """Profiles the first ``count`` launches of kernels whose names match the regular expression ``kernel``.

    The clocks are left alone: no claim here depends on them. Raises NotMeasuredError if ncu may not profile here,
    NoRunError if it fails otherwise.
    """
    ncu = context.machine.ncu
    if ncu is None:
        raise NotMeasuredError("no ncu")
    log = context.log(f"{key}.csv")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)  # a launch of an earlier run must not be taken for this one's
    command: list[str | Path] = [ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"]
    command += [
        "--kernel-name",
        f"regex:{kernel}",
        "--launch-count",
        str(count),
        "--metrics",
        ",".join(METRICS.values()),
    ]
    command += ["--log-file", log, "--force-overwrite", *argv]
    finished = context.run(command, timeout_s=LIMIT_S, log=key, **env)
    text = finished.output + (log.read_text(encoding="utf-8", errors="replace") if log.exists() else "")
    if "ERR_NVGPUCTRPERM" in text:
        raise NotMeasuredError(NO_PERMISSION)
    if finished.timed_out:
        raise NoRunError(f"no end under ncu after {LIMIT_S:.0f} s (ended)")
    errors = [line.removeprefix("==ERROR==").strip() for line in text.splitlines() if line.startswith("==ERROR==")]
    if errors or not finished.ok:
        raise NoRunError(f"ncu: {errors[0] if errors else finished.last_line()}")
    return read_all(text, kernel)


def read(text: str, kernel: str = "__choreo_device_") -> Profile:
    """The profile of the first launch in ncu's output; errors as :func:`read_all`."""
    return read_all(text, kernel)[0]


def read_all(text: str, kernel: str = "__choreo_device_") -> list[Profile]:
    """The profiles in ncu's output: raw page, one row of names, one of units, one per launch.

    Raises NoRunError if there is none or a metric is missing.
    """
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise NoRunError(f"ncu saw no launch of {kernel}…")
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[start:]))))
    if len(rows) < 2:
        raise NoRunError("ncu wrote no row for the launch")
    return [_profile(launch) for launch in rows[1:]]  # rows[0] has the units; --print-units base: bytes and %


def _profile(launch: dict[str, str]) -> Profile:
    values = {}
    for name, metric in METRICS.items():
        try:
            values[name] = float(launch[metric].replace(",", ""))
        except (KeyError, ValueError, AttributeError):
            raise NoRunError(f"ncu gave no number for {metric}") from None
    whole = {name: round(value) for name, value in values.items() if name != "active"}
    return Profile(**whole, active=values["active"])
