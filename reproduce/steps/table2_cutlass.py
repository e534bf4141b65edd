"""Table 2, the CUTLASS rows: main loop and epilogue storage as CUTLASS has them (a struct) and in one union.

Bytes are exact and need no GPU. On a GPU every kernel is run and checked; where the engine refuses the union, the paper
does not check it, and it is run only with ``--show-race``. What the engine says and what the GPU shows must agree: a
kernel is accepted at a size iff no element is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from croqtile import toolchain
from reproduce import ncu
from reproduce.cutlass import headers
from reproduce.cutlass.compile import Compiler, Program
from reproduce.cutlass.configurations import ALL, SIZES, Configuration, Storage
from reproduce.cutlass.errors import CutlassError
from reproduce.cutlass.run import RIGHT, WRONG, Outcome, read_outcome
from reproduce.cutlass.verdict import decide
from reproduce.machine import Need
from reproduce.step import Context, FailedError, Measurement, NoRunError
from reproduce.tables import Scalar

LAUNCHES = 3
RUN_LIMIT_S = 120.0
ONE, TWO, ANY = "one", "two", "any"  # tiles per CTA, as the keys of verdicts name them
_TILES = {ONE: 1, TWO: 2, ANY: None}


def builds() -> Iterator[tuple[str, Configuration, Storage]]:
    """(name, configuration, storage) of every program."""
    for configuration in ALL:
        for storage in configuration.storages:
            yield f"{storage.value}.{configuration.name}", configuration, storage


def measurements(context: Context) -> list[Measurement]:
    found = [
        Measurement("sizes", _sizes, frozenset({Need.NVCC}), seconds=12.0, parallel=True),
        Measurement("verdicts", _verdicts, seconds=2.0, parallel=True),
    ]
    on_gpu = frozenset({Need.NVCC, Need.GPU})
    for name, configuration, storage in builds():
        this: dict[str, Any] = {"configuration": configuration, "storage": storage}
        key = f"build.{name}"
        found.append(Measurement(key, partial(_build, key=key, **this), on_gpu, seconds=60.0, parallel=True))
        key = f"ncu.{name}"
        found.append(Measurement(key, partial(_profile, key=key, **this), on_gpu | {Need.NCU}, seconds=5.0))
        for size in SIZES:
            key = f"run.{name}.{size}"
            run = partial(_run, size=size, key=key, show_race=False, **this)
            found.append(Measurement(key, run, on_gpu, seconds=3.0))
            if context.options.show_race and storage is Storage.UNION:
                key = f"race.{name}.{size}"
                run = partial(_run, size=size, key=key, show_race=True, **this)
                found.append(Measurement(key, run, on_gpu, seconds=3.0))
    return found


def _compiler(context: Context) -> Compiler:
    build = context.build / "cutlass"
    try:
        return Compiler(toolchain.find(), headers.find(build), build)
    except CutlassError as error:
        raise FailedError(str(error)) from None


def _sizes(context: Context) -> dict[str, Scalar]:
    compiler = _compiler(context)
    values: dict[str, Scalar] = {"headers": str(compiler.headers)}
    for storage in Storage:
        try:
            sizes = compiler.sizes(storage, log=context.log(f"sizes.{storage.value}"))
        except CutlassError as error:
            raise FailedError(str(error)) from None
        for name, found in sizes.items():
            values |= {f"{storage.value}.{name}.{part}": value for part, value in asdict(found).items()}
    return values


def _verdicts(context: Context) -> dict[str, Scalar]:
    values: dict[str, Scalar] = {}
    for name, configuration, storage in builds():
        for label, tiles in _TILES.items():
            verdict = decide(configuration, storage, max_tiles_per_cta=tiles)
            values[f"{name}.{label}"] = str(verdict)
            values[f"{name}.{label}.why"] = verdict.reasons[0] if verdict.reasons else ""
    return values


def _program(context: Context, configuration: Configuration, storage: Storage, log: Path | None = None) -> Program:
    try:
        return _compiler(context).program(configuration, storage, log)
    except CutlassError as error:
        raise FailedError(str(error)) from None


def _build(context: Context, *, configuration: Configuration, storage: Storage, key: str) -> dict[str, Scalar]:
    program = _program(context, configuration, storage, context.log(key))
    return {"registers": program.registers, "spill_bytes": program.spill_bytes}


def _profile(context: Context, *, configuration: Configuration, storage: Storage, key: str) -> dict[str, Scalar]:
    """The smallest size: one tile per CTA, so that a union is right."""
    program = _program(context, configuration, storage)
    argv: list[str | Path] = [program.path, "--size", str(SIZES[0]), "--launches", "1"]
    found = ncu.profile_launch(context, argv, "device_kernel", key=key)
    return {"dynamic": found.dynamic, "static": found.static, "registers": found.registers, "ctas": found.ctas}


def _run(
    context: Context, *, configuration: Configuration, storage: Storage, size: int, key: str, show_race: bool
) -> dict[str, Scalar]:
    """Runs and checks the kernel if the engine accepts it at the grid that this GPU gets, or if ``show_race``."""
    program = _program(context, configuration, storage)
    described = _outcome(context, program, size, launches=0, key=key)
    verdict = decide(configuration, storage, max_tiles_per_cta=min(described.tiles_per_cta, 2))
    checked = verdict.accepted or show_race
    outcome = _outcome(context, program, size, launches=LAUNCHES, key=key) if checked else described
    tiles = outcome.tiles_per_cta
    return {**asdict(outcome), "tiles_per_cta": tiles, "verdict": str(verdict), "checked": checked}


def _outcome(context: Context, program: Program, size: int, *, launches: int, key: str) -> Outcome:
    argv: list[str | Path] = [program.path, "--size", str(size), "--launches", str(launches)]
    finished = context.run(argv, timeout_s=RUN_LIMIT_S, log=key)
    if finished.timed_out:
        raise NoRunError(f"no end after {RUN_LIMIT_S:.0f} s (ended)")
    if finished.returncode not in (RIGHT, WRONG):
        raise NoRunError(f"exit status {finished.returncode}: {finished.last_line()}")
    try:
        return read_outcome(finished.stdout)
    except CutlassError as error:
        raise NoRunError(str(error)) from None
