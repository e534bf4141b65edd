"""Table 2, the Tawa rows: warp-specialized Triton kernels, stock and with the overlap of ``triton_overlap``.

Bytes are what Triton's allocator gives and need Triton only: no GPU, no torch. On a GPU every kernel is checked in
every mode that can launch, 100 launches each, and timed; Nsight Compute confirms the bytes.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from reproduce import ncu, process
from reproduce.machine import Need
from reproduce.step import Context, FailedError, Measurement, NoRunError, NotMeasuredError
from reproduce.tables import Scalar
from reproduce.tawa.rows import ALL, WRONG_ON_PURPOSE, Kernel

_COMPILE_LIMIT_S, _RUN_LIMIT_S = 600.0, 300.0
_ON_GPU = frozenset({Need.GPU, Need.TRITON})


def measurements(context: Context) -> list[Measurement]:
    found = [Measurement("bytes", _bytes, seconds=60.0, parallel=True)]
    for kernel in ALL:
        key = f"run.{kernel.name}"
        found.append(Measurement(key, partial(_run, kernel=kernel, key=key), _ON_GPU, seconds=15.0, timed=True))
    found.append(Measurement("ncu", _profile, _ON_GPU | {Need.NCU}, seconds=30.0))
    return found


def _child(context: Context, words: list[str], *, limit_s: float, key: str) -> dict[str, Any]:
    argv: list[str | Path] = [sys.executable, "-m", "reproduce.tawa.child", *words]
    finished = context.run(argv, timeout_s=limit_s, log=key)
    if finished.timed_out:
        raise NoRunError(f"no end after {limit_s:.0f} s (ended)")
    return _result(finished)


def _result(finished: process.Finished) -> dict[str, Any]:
    """The JSON object in the last line of what a child printed."""
    if not finished.ok:
        raise NoRunError(f"exit status {finished.returncode}: {finished.last_line()}")
    try:
        found: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        raise NoRunError(f"the child printed no result: {finished.last_line()}") from None
    return found


def _bytes(context: Context) -> dict[str, Scalar]:
    if importlib.util.find_spec("triton") is None:
        raise NotMeasuredError("no triton")
    return _child(context, ["bytes"], limit_s=_COMPILE_LIMIT_S, key="bytes")


def _run(context: Context, *, kernel: Kernel, key: str) -> dict[str, Scalar]:
    values = _child(context, ["run", kernel.name], limit_s=_RUN_LIMIT_S, key=key)
    problems = wrong_modes(kernel, values)
    if problems:
        raise FailedError("; ".join(problems))
    return values


def wrong_modes(kernel: Kernel, values: dict[str, Any]) -> list[str]:
    """What is wrong in modes that must be right. Stock kernels with placeholder mbarriers need not be."""
    found = []
    for mode in kernel.modes:
        if mode in WRONG_ON_PURPOSE or f"{mode}.launches" not in values:
            continue
        if mode == "stock" and kernel.specialized_by_triton:
            continue  # it is reported, and is Triton's; the remedy is what is judged
        wrong = values[f"{mode}.wrong_launches"] + values[f"{mode}.wrong_small"]
        if wrong:
            found.append(f"{mode}: {wrong} launches are wrong")
        if values[f"{mode}.different_launches"]:
            found.append(f"{mode}: {values[f'{mode}.different_launches']} launches differ from the first")
        if not values.get(f"{mode}.same_bits", True):
            found.append(f"{mode}: other bits than {values['bits_of']}")
    return found


def _profile(context: Context) -> dict[str, Scalar]:
    """All launches in one process, in an order that the child prints."""
    argv: list[str | Path] = [sys.executable, "-m", "reproduce.tawa.child", "launch"]
    order = _child(context, ["launch"], limit_s=_RUN_LIMIT_S, key="launch")["order"]
    profiles = ncu.profile_launches(context, argv, "^(gemm|attention)", len(order), key="ncu")
    if len(profiles) != len(order):
        raise NoRunError(f"ncu saw {len(profiles)} of {len(order)} launches")
    values: dict[str, Scalar] = {}
    for name, found in zip(order, profiles, strict=True):
        values[f"{name}.dynamic"], values[f"{name}.static"] = found.dynamic, found.static
        values[f"{name}.registers"], values[f"{name}.ctas"] = found.registers, found.ctas
    return values
