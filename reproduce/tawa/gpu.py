"""Runs a Tawa kernel in every mode on the GPU: right or wrong, the same bits each time, how fast. Needs torch.

GEMM is checked against a matmul in f32 (relative error), attention against causal attention in f32
(|o − ref| ≤ 2 % + 2 % · |ref|). Outputs start as NaN. Modes that are wrong on purpose are counted, not judged.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import e, isfinite, log2, sqrt
from typing import Any

import torch
import triton
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from reproduce.tawa import sources
from reproduce.tawa.rows import CONTROL, HEAD_DIM, REPAIR, SHARED_LIMIT, STOCK, WRONG_ON_PURPOSE, Kernel
from triton_overlap import OverlapError, RefusedError, compile_overlapped
from triton_overlap.compile import install

REPEATS, WRONG_REPEATS = 100, 20
WARM_UP, TIMED, ROUNDS = 10, 50, 5
GEMM_SIZES = ((4096, 4096, 4096), (512, 384, 64), (256, 256, 192), (1024, 2048, 320))
ATTENTION_SIZES = ((2, 16, 4096), (1, 3, 128), (1, 3, 256), (1, 4, 1280))  # batch, heads, SEQ
ATTENTION_LONG = (2, 16, 16384)
HEAD_CHUNK = 2  # heads of the reference at once: 4 bytes · SEQ² each

Launch = Callable[[], Any]


@dataclass
class Problem:
    """Inputs, the output of every launch, and the f32 reference."""

    inputs: tuple[torch.Tensor, ...]
    output: torch.Tensor
    reference: torch.Tensor
    shape: tuple[int, int, int]


def gemm_problem(m: int, n: int, k: int, with_reference: bool = True) -> Problem:
    torch.manual_seed(m + 3 * n + 7 * k)
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    b = torch.randn(k, n, device="cuda", dtype=torch.float16)
    output = torch.empty(m, n, device="cuda", dtype=torch.float16)
    reference = a.float() @ b.float() if with_reference else torch.empty(0)
    return Problem((a, b), output, reference, (m, n, k))


def attention_problem(batch: int, heads: int, seq: int, with_reference: bool = True) -> Problem:
    torch.manual_seed(batch + 3 * heads + 7 * seq)
    rows = batch * heads
    q, k, v = (torch.randn(rows, seq, HEAD_DIM, device="cuda", dtype=torch.float16) for _ in range(3))
    output = torch.empty_like(q)
    reference = torch.empty(0)
    if with_reference:
        hidden = torch.ones(seq, seq, device="cuda", dtype=torch.bool).triu(1)
        parts = []
        for first in range(0, rows, HEAD_CHUNK):
            part = slice(first, first + HEAD_CHUNK)
            scores = q[part].float() @ k[part].float().transpose(1, 2) / sqrt(HEAD_DIM)
            parts.append(scores.masked_fill_(hidden, float("-inf")).softmax(-1) @ v[part].float())
        reference = torch.cat(parts)
    return Problem((q, k, v), output, reference, (batch, heads, seq))


def launcher(kernel: Kernel, mode: str, problem: Problem) -> Launch:
    """A function that launches once; compiles at its first call."""
    function = _jit(kernel, mode)
    options = sources.options(kernel)
    constants = sources.constants(kernel)
    if kernel.kind == "gemm":
        m, n, k = problem.shape
        tensors = dict(zip(sources.tiles(kernel), (*problem.inputs, problem.output), strict=True))
        described = [
            TensorDescriptor.from_tensor(tensor, list(tile), sources.tile_layout(tile))
            for tensor, tile in ((tensors[name], tile) for name, tile in sources.tiles(kernel).items())
        ]
        grid = (m // kernel.block[0], n // kernel.block[1])
        return lambda: function[grid](*described, k, *constants.values(), **options)
    if kernel.is_attention:
        batch, heads, seq = problem.shape
        grid = (seq // kernel.block[0], batch * heads)
        scale = log2(e) / sqrt(HEAD_DIM)
        return lambda: function[grid](
            *problem.inputs, problem.output, scale, batch * heads, seq, *constants.values(), **options
        )
    m, n, k = problem.shape
    tiles = (m // kernel.block[0], n // kernel.block[1])
    if kernel.kind == "persistent":
        sms = torch.cuda.get_device_properties(0).multi_processor_count
        tiles = (min(sms, tiles[0] * tiles[1]), 1)
    return lambda: function[tiles](*problem.inputs, problem.output, m, n, k, *constants.values(), **options)


@dataclass
class _Compiled:
    """Modes share one function of the kernel; each needs a compilation cache of its own."""

    function: Any


_JIT: dict[tuple[str, str], _Compiled] = {}


def _jit(kernel: Kernel, mode: str) -> Any:
    key = (kernel.name, mode)
    if key not in _JIT:
        original = sources.function(kernel, mode)
        fresh = type(original)(original.fn, do_not_specialize=original.do_not_specialize)
        if mode not in (STOCK, CONTROL):
            install(fresh, compiler=partial(compile_overlapped, settings=sources.SETTINGS[mode]))
        _JIT[key] = _Compiled(fresh)
    return _JIT[key].function


def launch_once(kernel: Kernel, mode: str) -> bool:
    """Launches the kernel on a small problem; False if it does not fit a block."""
    _allocator()
    if sources.build(kernel, mode).metadata.shared > SHARED_LIMIT:
        return False
    # Without a reference: its kernels could be taken for ours by their names.
    make, size = (attention_problem, (1, 4, 512)) if kernel.is_attention else (gemm_problem, (512, 512, 512))
    small = make(*size, with_reference=False)
    launcher(kernel, mode, small)()
    torch.cuda.synchronize()
    return True


def measure(kernel: Kernel) -> dict[str, Any]:
    """By ``mode.what``. A mode that cannot launch, or is refused, has ``mode_reason``."""
    _allocator()
    make = attention_problem if kernel.is_attention else gemm_problem
    sizes = ATTENTION_SIZES if kernel.is_attention else GEMM_SIZES
    problems = [make(*size) for size in sizes]
    found: dict[str, Any] = {"gpu": torch.cuda.get_device_name(0), "triton": triton.__version__}
    launchable = []
    for mode in kernel.modes:
        try:
            compiled = sources.build(kernel, mode)
        except (RefusedError, OverlapError) as error:
            found[f"{mode}_reason"] = f"refused: {error}"
            continue
        found[f"{mode}.bytes"] = compiled.metadata.shared
        if compiled.metadata.shared > SHARED_LIMIT:
            found[f"{mode}_reason"] = f"cannot launch: {compiled.metadata.shared} of {SHARED_LIMIT} bytes"
            continue
        launchable.append(mode)
    right: torch.Tensor | None = None
    safe = REPAIR if kernel.specialized_by_triton else STOCK
    for mode in sorted(launchable, key=lambda each: each != safe):  # the others are compared to its bits
        found |= _check(kernel, mode, problems)
        bits = problems[0].output.view(torch.int16).clone()
        if mode == safe or (right is None and mode not in (*WRONG_ON_PURPOSE, STOCK)):
            right = bits
            found["bits_of"] = mode
        if mode not in WRONG_ON_PURPOSE and right is not None:
            found[f"{mode}.same_bits"] = bool(torch.equal(bits, right))
    timed = [mode for mode in launchable if mode not in WRONG_ON_PURPOSE]
    found |= _time(kernel, timed, problems[0], "")
    if kernel.is_attention:
        found |= _time(kernel, timed, attention_problem(*ATTENTION_LONG, with_reference=False), "long_")
    return found


def _check(kernel: Kernel, mode: str, problems: list[Problem]) -> dict[str, Any]:
    """Every problem once, the first one many times."""
    worst, wrong, nan = 0.0, 0, 0
    for problem in problems[::-1]:
        run = launcher(kernel, mode, problem)
        repeats = (WRONG_REPEATS if mode in WRONG_ON_PURPOSE else REPEATS) if problem is problems[0] else 3
        first = None
        different = wrong_launches = nan_launches = 0
        for _ in range(repeats):
            problem.output.fill_(float("nan"))
            compiled = run()
            torch.cuda.synchronize()
            error, bad, missing = _errors(kernel, problem)
            worst = max(worst, error)
            wrong_launches += bad
            nan_launches += missing > 0
            nan = max(nan, missing)
            bits = problem.output.view(torch.int16)
            if first is None:
                first = bits.clone()
            else:
                different += not torch.equal(bits, first)
        wrong += wrong_launches
    return {
        f"{mode}.launched_bytes": compiled.metadata.shared,
        f"{mode}.wrong_launches": wrong_launches,  # of the first problem
        f"{mode}.wrong_small": wrong - wrong_launches,
        f"{mode}.launches": repeats,
        f"{mode}.different_launches": different,
        f"{mode}.nan_launches": nan_launches,
        f"{mode}.nan_elements": nan,
        f"{mode}.max_error": worst if isfinite(worst) else None,
        f"{mode}.registers": compiled.n_regs,
        f"{mode}.spills": compiled.n_spills,
    }


def _errors(kernel: Kernel, problem: Problem) -> tuple[float, int, int]:
    """(largest error, whether the launch is wrong, elements that are NaN). Errors of GEMM are relative to the largest
    element of the reference, of attention absolute."""
    output, reference = problem.output.float(), problem.reference
    missing = int(output.isnan().sum())
    distance = (output - reference).abs()
    distance[distance.isnan()] = float("inf")
    if kernel.is_attention:
        wrong = bool((distance > 0.02 + 0.02 * reference.abs()).any())
        return float(distance.max()), int(wrong), missing
    scale = float(reference.abs().max())
    return float(distance.max()) / scale, int(float(distance.max()) > 0.05 * scale), missing


def _time(kernel: Kernel, modes: list[str], problem: Problem, prefix: str) -> dict[str, Any]:
    """TFLOPS, the median of rounds in which the modes take turns."""
    x, y, z = problem.shape
    flops = 2.0 * x * y * z * z * HEAD_DIM if kernel.is_attention else 2.0 * x * y * z  # half of 4·B·H·SEQ²·D
    runs = {mode: launcher(kernel, mode, problem) for mode in modes}
    count = TIMED if flops < 1e12 else TIMED // 10
    times: dict[str, list[float]] = {mode: [] for mode in modes}
    for _ in range(ROUNDS):
        for mode, run in runs.items():
            for _ in range(WARM_UP if flops < 1e12 else 2):
                run()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(count):
                run()
            end.record()
            end.synchronize()
            times[mode].append(start.elapsed_time(end) / count)
    found: dict[str, Any] = {}
    for mode, each in times.items():
        found[f"{mode}.{prefix}ms"] = round(statistics.median(each), 5)
        found[f"{mode}.{prefix}tflops"] = round(flops / statistics.median(each) / 1e9, 1)
    return found


def _allocator() -> None:
    """Memory for the tensor maps that kernels make themselves."""
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
