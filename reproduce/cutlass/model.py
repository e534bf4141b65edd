"""CUTLASS' kernels as programs of the analysis engine: who touches main loop and epilogue storage, and what orders it.

One CTA of ``include/cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized{,_cooperative,_pingpong}.hpp`` ("the kernel"
below), with its main loop ``gemm/collective/sm90_mma_tma_gmma_ss_warpspecialized.hpp``, its epilogue
``epilogue/collective/sm90_epilogue_tma_warpspecialized.hpp`` and ``pipeline/sm90_pipeline.hpp``, as of CUTLASS 4.5.0.

Roles: the main loop's producer thread; the epilogue's producer thread, where C is loaded; the consumer warpgroups;
and, per group of warpgroups that share an epilogue, the thread that issues the stores of D. That thread belongs to a
consumer warp. It is a role of its own because its bulk stores are committed and awaited in a queue apart from the
matrix instructions'.

Buffers: A and B (the main loop's storage) and D, or C and D in one (the epilogue's). The union is valid iff each
epilogue buffer may overlap both A and B.
"""

from __future__ import annotations

from hb_analyzer.model import Buffer, Parameter, Program
from hb_analyzer.report import Report
from reproduce.cutlass.configurations import PIECE_COLUMNS, TILE_K, Configuration, Epilogue, Schedule
from reproduce.cutlass.parts import K_TILES, LOADS, TILES, Kernel, Source
from reproduce.cutlass.schedules import one_epilogue, ping_pong, with_c_load

HALF_BYTES, FLOAT_BYTES = 2, 4


def source_of(configuration: Configuration, beta: float) -> Source:
    """What the epilogue of a kernel does about C when it is launched with ``beta``."""
    if configuration.epilogue is Epilogue.FLOAT_D:
        return Source.ABSENT
    return Source.LOADED if beta else Source.UNUSED


def program(
    configuration: Configuration,
    *,
    max_tiles_per_cta: int | None,
    beta: float = 0,
    guarded: bool = False,
) -> Program:
    """The model of one kernel, launched with ``beta`` (not 0: C is loaded, where the kernel has one).

    ``max_tiles_per_cta`` bounds the tiles of a CTA where the launch does (grid ≥ tiles: 1); None leaves it open.
    ``guarded`` adds what CUTLASS does not have: the producer waits, before each tile but the first, until the epilogue
    of the tile before has read its staging buffers. That is what a valid union of the cooperative kernel would take.
    Raises ValueError for what is not modelled: a guard or a C of the ping-pong kernel; the non-persistent kernel with
    an unused C, whose warps stage D without having met (the model has no warps).
    """
    source = source_of(configuration, beta)
    if configuration.schedule is Schedule.PING_PONG and (guarded or source is not Source.ABSENT):
        raise ValueError("the ping-pong kernel is modelled without a guard and without a C")
    if configuration.schedule is Schedule.NON_PERSISTENT and source is Source.UNUSED:
        raise ValueError("the non-persistent kernel is modelled without a C, or with one that is loaded")
    kernel = Kernel(configuration.schedule, configuration.stages, configuration.pieces, source, guarded)
    stage = configuration.stages * TILE_K * HALF_BYTES
    piece = configuration.piece_rows * PIECE_COLUMNS * (FLOAT_BYTES if source is Source.ABSENT else HALF_BYTES)
    # A and the staging buffer have two halves: in the cooperative kernel each consumer has its own.
    buffers = (
        Buffer("A", configuration.tile_m * stage, 1024, kernel.stages, (2,), "main loop: tiles of A"),
        Buffer("B", configuration.tile_n * stage, 1024, kernel.stages, (), "main loop: tiles of B"),
        Buffer(kernel.staging, kernel.staging_slots * piece, 1024, kernel.staging_slots, (2,), "epilogue: staging"),
    )
    if configuration.schedule is Schedule.PING_PONG:
        events, roles = ping_pong(kernel)
    else:
        events, roles = one_epilogue(kernel)
    if source is Source.LOADED:
        events, roles = with_c_load(kernel, events, roles)
    parameters = [Parameter(K_TILES, minimum=1)]
    if configuration.schedule is not Schedule.NON_PERSISTENT:
        parameters.insert(0, Parameter(TILES, minimum=1, maximum=max_tiles_per_cta))
    return Program(
        name=configuration.name,
        buffers=buffers,
        events=events,
        roles=roles,
        parameters=tuple(parameters),
        framework="CUTLASS",
        arch="sm_90a",
        notes=f"{configuration.schedule.value}, source C {source.value}" + (", guarded" if guarded else ""),
        assumptions=(
            "cluster 1x1x1, static persistent scheduler",
            "each warp of a consumer waits for full stages and releases them itself (num_consumers arrivals)",
        ),
    )


def union_refusals(report: Report) -> list[str]:
    """Why the union is not valid, one line per pair or defect; empty if the engine accepts it."""
    refused = [
        f"{verdict.a} over {verdict.b}: {verdict.kind}: {verdict.why}"
        for verdict in report.verdicts
        if not verdict.overlap and (verdict.a in LOADS) != (verdict.b in LOADS)
    ]
    return refused + defects_of(report)


def defects_of(report: Report) -> list[str]:
    """What is wrong with the kernel's synchronisation itself, one line each."""
    defects = (*report.deadlocks, *report.overruns, *report.races, *report.unawaited, *report.arrivals)
    return [f"{defect.kind}: {defect.why}" for defect in defects]
