"""Measurements that GPU steps share: compiling a kernel in one mode, and profiling its first launch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from reproduce import ncu, programs
from reproduce.machine import Need
from reproduce.occupancy import Occupancy, occupancy
from reproduce.programs import OutOfBoundError
from reproduce.results import MISSING, Record
from reproduce.step import Context, FailedError, Measurement
from reproduce.tables import MEASURED, NOT_MEASURED, Scalar

MODES = ("base", "sala")


def build_measurements(kernels: Iterable[str], needs: frozenset[Need] = frozenset()) -> list[Measurement]:
    """One measurement ``build.<kernel>.<mode>`` per program; they run beside each other before anything is timed."""
    return [
        Measurement(
            f"build.{kernel}.{mode}",
            partial(_build, kernel=kernel, mode=mode),
            needs=frozenset({Need.NVCC}) | needs,
            seconds=8.0,
            parallel=True,
        )
        for kernel in dict.fromkeys(kernels)
        for mode in MODES
    ]


def _build(context: Context, *, kernel: str, mode: str) -> dict[str, Scalar]:
    try:
        program = programs.build(context, kernel, sala=mode == "sala", key=f"build.{kernel}.{mode}")
    except OutOfBoundError as error:
        return {"out_of_bound": True, "message": str(error)}
    names = ("placement", "registers", "spills", "static", "launch", "threads", "compile_s")
    return {"out_of_bound": False, **{name: getattr(program, name) for name in names}}


def profile_measurement(
    kernel: str, mode: str, arguments: Sequence[str], *, carveout_kib: int | None = None
) -> Measurement:
    """``ncu.<kernel>.<mode>[.carveout]``: the first launch of the program as Nsight Compute sees it."""
    suffix = "" if carveout_kib is None else ".carveout"
    key = f"ncu.{kernel}.{mode}{suffix}"
    run: Any = partial(
        _profile, kernel=kernel, mode=mode, arguments=list(arguments), key=key, carveout_kib=carveout_kib
    )
    return Measurement(key, run, needs=frozenset({Need.NVCC, Need.GPU, Need.NCU}), seconds=6.0)


def _profile(
    context: Context, *, kernel: str, mode: str, arguments: list[str], key: str, carveout_kib: int | None
) -> dict[str, Scalar]:
    try:
        program = programs.build(context, kernel, sala=mode == "sala", key=key)
    except OutOfBoundError as error:
        return {"out_of_bound": True, "message": str(error)}
    env = {} if carveout_kib is None else {"CHOREO_CARVEOUT_KIB": str(carveout_kib)}
    found = ncu.profile(context, program, arguments, key=key, **env)
    return {"out_of_bound": False, **asdict(found), "ctas": found.ctas}


def program(context: Context, kernel: str, mode: str, key: str) -> programs.Program:
    """The built program, for a step that runs it; a refused allocation is a failure there."""
    try:
        return programs.build(context, kernel, sala=mode == "sala", key=key)
    except OutOfBoundError as error:
        raise FailedError(str(error)) from None


def launch_bytes(records: Mapping[str, Record], kernel: str, mode: str) -> tuple[Record, str, str]:
    """The record that knows the dynamic shared memory of the launch, the name of the value in it, and its source.

    Nsight Compute's if it could measure, else the generated program's request.
    """
    profiled = records.get(f"ncu.{kernel}.{mode}", MISSING)
    if profiled.status == NOT_MEASURED:
        return records.get(f"build.{kernel}.{mode}", MISSING), "launch", "launch request"
    return profiled, "dynamic", "ncu"


def as_built(record: Record, carveout_kib: int | None = None) -> Occupancy | None:
    """Occupancy of a built program by the CUDA rules; None if the record does not say what the launch requests."""
    values = record.values
    needed = [values.get(name) for name in ("registers", "threads", "launch", "static")]
    if record.status != MEASURED or not all(isinstance(value, int) for value in needed):
        return None
    registers, threads, launch, static = (int(value) for value in needed if isinstance(value, int))
    return occupancy(registers, threads, launch + static, carveout_kib)
