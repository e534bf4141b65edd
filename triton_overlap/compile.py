"""Puts the overlap into Triton's compilation: as a decorator of a kernel, or as a replacement of ``triton.compile``."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from triton_overlap.errors import OverlapError, RefusedError
from triton_overlap.meeting import check_warps_meet
from triton_overlap.plan import Plan, Settings, make_plan

TRITON = "3.6.0"
NO_BARRIER = "SALA_NO_BARRIER"
_ATTRIBUTE = "sala_plan"

Kernel = TypeVar("Kernel")


def overlap(kernel: Kernel | None = None, *, remedy: str = "drop", on_refusal: str = "raise") -> Any:
    """Decorator for a function of ``triton.jit`` or ``gluon.jit``: every compilation of it is overlapped.

    ``remedy`` says what happens to mbarriers that Triton initialises and never uses: "drop" or "invalidate".
    ``on_refusal``: "raise" a RefusedError when the kernel is launched or warmed up first, or compile "stock" Triton's
    kernel and warn. With ``SALA_NO_BARRIER=1`` in the environment the guard of persistent kernels is left out, which is
    wrong on purpose and makes :attr:`Plan.unsafe` true.
    """
    if on_refusal not in ("raise", "stock"):
        raise ValueError(f"on_refusal is {on_refusal!r}; it is 'raise' or 'stock'")
    compiler = partial(compile_overlapped, settings=Settings(remedy=remedy), on_refusal=on_refusal)
    if kernel is None:
        return partial(install, compiler=compiler)
    return install(kernel, compiler=compiler)


def repair(kernel: Kernel | None = None, *, remedy: str = "drop", on_refusal: str = "raise") -> Any:
    """As :func:`overlap`, without any overlap: only the forgotten mbarriers are dropped or invalidated."""
    settings = Settings(overlap=False, remedy=remedy)
    compiler = partial(compile_overlapped, settings=settings, on_refusal=on_refusal)
    if kernel is None:
        return partial(install, compiler=compiler)
    return install(kernel, compiler=compiler)


def compile_overlapped(
    src: Any,
    target: Any = None,
    options: Mapping[str, Any] | None = None,
    *,
    settings: Settings | None = None,
    on_refusal: str = "raise",
) -> Any:
    """``triton.compile`` with the overlap; :func:`plan_of` the result says what was done.

    Raises RefusedError, or OverlapError if the result is not what was planned.
    """
    import triton

    if triton.__version__ != TRITON:
        raise OverlapError(f"this is Triton {triton.__version__}; the overlap is checked for {TRITON} only")
    options = dict(options or {})
    if options.get("ir_override"):
        raise RefusedError("the kernel is compiled with an ir_override of its own")
    stock = triton.compile(src, target=target, options=options)
    settings = settings or Settings()
    if os.environ.get(NO_BARRIER) == "1":
        settings = replace(settings, guard=False)
    try:
        plan = make_plan(_ttgir(stock), settings)
    except RefusedError as refusal:
        if on_refusal == "raise":
            raise
        warnings.warn(f"{stock.metadata.name} is compiled without overlap: {refusal}", stacklevel=2)
        return stock
    if plan.unsafe:
        warnings.warn(f"{stock.metadata.name} is compiled without its guard: results may be wrong", stacklevel=2)
    made = triton.compile(src, target=target, options={**options, "ir_override": str(_store(plan.text))})
    if made.metadata.shared != plan.final.total:
        raise OverlapError(f"Triton allocated {made.metadata.shared} bytes, not the planned {plan.final.total}")
    if plan.laid:
        check_warps_meet(made.asm["ptx"])
    setattr(made, _ATTRIBUTE, plan)
    return made


def plan_of(compiled: Any) -> Plan | None:
    """What was done to a compiled kernel; None for stock Triton's."""
    plan: Plan | None = getattr(compiled, _ATTRIBUTE, None)
    return plan


def install(kernel: Kernel, compiler: Callable[..., Any]) -> Kernel:
    """Makes ``kernel`` compile with ``compiler`` (the signature of ``triton.compile``). Raises TypeError."""
    from triton.runtime.jit import JITFunction

    if not isinstance(kernel, JITFunction):
        raise TypeError(f"overlap decorates a function of triton.jit or gluon.jit, not {type(kernel).__name__}")
    original = kernel.create_binder

    def create_binder() -> Any:
        made = original()
        kernel.compile = compiler
        return made

    kernel.create_binder = create_binder
    kernel.device_caches = defaultdict(create_binder)
    return kernel


def _ttgir(compiled: Any) -> str:
    try:
        text: str = compiled.asm["ttgir"]
    except KeyError:
        raise OverlapError("Triton kept no TTGIR (is TRITON_STORE_BINARY_ONLY set?)") from None
    return text


def _store(text: str) -> Path:
    """The file that Triton reads the rewritten kernel from; its path is in Triton's cache key, so it names the text."""
    from triton import knobs

    folder = Path(knobs.cache.dir) / "sala_overlap"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()}.ttgir"
    if not path.exists():
        unfinished = path.with_suffix(f".{os.getpid()}.tmp")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    return path
