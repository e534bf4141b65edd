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

import enum
from dataclasses import dataclass, replace

from hb_analyzer.model import (
    WHOLE,
    Access,
    Barrier,
    BinOp,
    Buffer,
    Commit,
    Const,
    Drain,
    Event,
    If,
    IntExpr,
    Loop,
    Name,
    Parameter,
    Program,
    Region,
    Role,
    Statement,
    Step,
    Trigger,
    Wait,
)
from hb_analyzer.report import Report
from reproduce.cutlass.configurations import Configuration, Epilogue, Schedule

TILES, K_TILES = "tiles", "k_tiles"  # output tiles of this CTA; steps of the main loop per tile
LOADS = ("A", "B")


class Source(enum.Enum):
    """What the epilogue does about C.

    ABSENT: C is void. The consumers meet at a barrier before each write of a staging buffer.
    UNUSED: C has D's width, beta is 0. Staging buffers are shared with C, whose load would release them; nothing is
    loaded, and the consumers do not meet before the first write.
    LOADED: C has D's width, beta is not 0. The epilogue's producer loads it into the buffers in which D is staged.
    """

    ABSENT = "absent"
    UNUSED = "unused"
    LOADED = "loaded"


def source_of(configuration: Configuration, *, beta: float = 0) -> Source:
    """The source of a kernel of the table when it is launched with ``beta``."""
    if configuration.epilogue is Epilogue.FLOAT_D:
        return Source.ABSENT
    return Source.LOADED if beta else Source.UNUSED


@dataclass(frozen=True)
class _Kernel:
    """What the builders below need to know; ``consumers`` are warpgroups."""

    schedule: Schedule
    stages: int
    epilogue_tiles: int
    source: Source
    guarded: bool

    @property
    def consumers(self) -> tuple[str, ...]:
        return ("consumer0",) if self.schedule is Schedule.NON_PERSISTENT else ("consumer0", "consumer1")

    @property
    def staging(self) -> str:
        return "D" if self.source is Source.ABSENT else "CD"

    @property
    def staging_slots(self) -> int:
        """StagesD, or StagesC where C and D share buffers (sm90_builder.inl, sm90_get_tma_dispatch_policy)."""
        return min(self.epilogue_tiles, 2 if self.source is Source.ABSENT else 4)


def program(
    configuration: Configuration,
    *,
    mainloop_bytes: int,
    epilogue_bytes: int,
    max_tiles_per_cta: int | None,
    source: Source = Source.ABSENT,
    guarded: bool = False,
) -> Program:
    """The model of one kernel.

    ``max_tiles_per_cta`` bounds the tiles of a CTA where the launch does (grid ≥ tiles: 1); None leaves it open.
    ``guarded`` adds what CUTLASS does not have: the producer waits, before each tile but the first, until the epilogue
    of the tile before has read its staging buffers. That is what a valid union of the cooperative kernel would take.
    Raises ValueError for a combination that is not modelled: a guard or a source C of the ping-pong kernel.
    """
    if configuration.schedule is Schedule.PING_PONG and (guarded or source is not Source.ABSENT):
        raise ValueError("the ping-pong kernel is modelled without a guard and without a source C")
    kernel = _Kernel(configuration.schedule, configuration.stages, configuration.epilogue_tiles, source, guarded)
    operand_a = mainloop_bytes * configuration.tile_m // (configuration.tile_m + configuration.tile_n)
    # Consumers in halves where two of them share a tile: rows of A and of the staging buffer.
    buffers = (
        Buffer("A", operand_a, 1024, kernel.stages, (2,), "main loop: tiles of A"),
        Buffer("B", mainloop_bytes - operand_a, 1024, kernel.stages, (), "main loop: tiles of B"),
        Buffer(kernel.staging, epilogue_bytes, 1024, kernel.staging_slots, (2,), "epilogue: staging"),
    )
    if configuration.schedule is Schedule.PING_PONG:
        events, roles = _ping_pong(kernel)
    else:
        events, roles = _one_epilogue(kernel)
    if source is Source.LOADED:
        events, roles = _with_c_load(kernel, events, roles)
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
    defects = (*report.deadlocks, *report.overruns, *report.races, *report.arrivals)
    return refused + [f"{defect.kind}: {defect.why}" for defect in defects]


# --------------------------------------------------------------------------------------------------------------
# Small builders


def _slot(counter: str, slots: int, back: int = 0) -> IntExpr:
    """``(counter - back) mod slots``, never negative."""
    return BinOp("%", BinOp("+", Name(counter), Const((slots - back) % slots)), Const(slots))


def _tile_loop(kernel: _Kernel, counter: str, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The scheduler loop of a persistent kernel; the other one has a single tile and no loop."""
    if kernel.schedule is Schedule.NON_PERSISTENT:
        return body
    return (Loop(counter, Name(TILES), body),)


def _half(kernel: _Kernel, consumer: int) -> Region:
    """The rows of a tile that a consumer works on."""
    return ((consumer, consumer + 1),) if kernel.schedule is Schedule.COOPERATIVE else WHOLE


# --------------------------------------------------------------------------------------------------------------
# Main loop


def _load_stage(kernel: _Kernel, acquire: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """CollectiveMma::load, one k step: producer_acquire, then the two bulk copies that complete the full barrier.

    The barrier is told of the bytes before they are issued (arrive_and_expect_tx), so that the copies belong to the
    setting that this arrival takes part in: in the model, the trigger comes after them.
    """
    slot = _slot("loaded", kernel.stages)
    copies = (
        Access(
            name, "w", slot, ends="event", event="full", event_slot=slot, proxy="async", label=f"bulk copy into {name}"
        )
        for name in LOADS
    )
    return (*acquire, *copies, Trigger("full", slot, label="expect the bytes of A and B"), Step("loaded"))


def _multiply(kernel: _Kernel, consumer: int, empty: str, cue: tuple[Statement, ...] = ()) -> tuple[Statement, ...]:
    """CollectiveMma::mma and mma_tail for one tile; ``cue`` stands between the two.

    K_PIPE_MMAS is 1: a stage is released when the matrix instructions of the next one have been issued, the last one
    after all have completed (warpgroup_wait<0>).
    """
    slot = _slot("used", kernel.stages)
    release = Trigger(empty, _slot("used", kernel.stages, back=1), label="release the stage before")
    step: tuple[Statement, ...] = (
        Wait("full", slot, label="wait for A and B"),
        Access(
            "A", "r", slot, _half(kernel, consumer), ends="group", proxy="async", label="matrix instructions read A"
        ),
        Access("B", "r", slot, ends="group", proxy="async", label="matrix instructions read B"),
        Commit(),
        If(BinOp(">", Name("k"), Const(0)), (Drain(1, label="at most one step of matrix instructions runs"), release)),
        Step("used"),
    )
    tail = (Drain(0, label="matrix instructions have completed"), replace(release, label="release the last stage"))
    return (Loop("k", Name(K_TILES), step), *cue, *tail)


# --------------------------------------------------------------------------------------------------------------
# Epilogue


@dataclass(frozen=True)
class _Epilogue:
    """Names of one epilogue: the warpgroups that share it, and the thread that issues its stores."""

    kernel: _Kernel
    members: tuple[str, ...]
    store: str

    def meet(self, label: str) -> Barrier:
        """``synchronize``: named barrier of all threads that share the epilogue; the storing thread is one of them."""
        return Barrier(f"epilogue of {self.members[0]}", (*self.members, self.store), label=label)

    def consumer(self, consumer: int) -> tuple[Statement, ...]:
        """CollectiveEpilogue::store as a consumer warpgroup runs it, for one tile."""
        kernel = self.kernel
        slot = _slot("stored", kernel.staging_slots)
        write = Access(kernel.staging, "w", slot, _half(kernel, consumer), label="write D to the staging buffer")
        written = self.meet("D is staged, proxy fence before")
        if kernel.source is Source.ABSENT:
            # DelayTmaStore: the store of a piece is issued in the next turn, before that turn waits for its own buffer.
            free = self.meet("the staging buffer is free")
            turn: tuple[Statement, ...] = (
                If(BinOp(">", Name("piece"), Const(0)), (written,)),
                free,
                write,
                Step("stored"),
            )
            return (Loop("piece", Const(kernel.epilogue_tiles), turn), written)
        load: tuple[Statement, ...] = ()
        release: tuple[Statement, ...] = ()
        if kernel.source is Source.LOADED:
            load = (
                Wait("c_full", slot, label="wait for C"),
                Access(kernel.staging, "r", slot, _half(kernel, consumer), label="read C"),
            )
            # From the second store on (store_finished): the buffer of the store before the last committed one.
            release = (
                If(
                    BinOp(">", Name("stored"), Const(0)),
                    (Trigger("c_empty", _slot("stored", kernel.staging_slots, back=1), label="release C's buffer"),),
                ),
            )
        turn = (*load, write, written, self.meet("at most one store is reading"), *release, Step("stored"))
        return (Loop("piece", Const(kernel.epilogue_tiles), turn),)

    def storer(self) -> tuple[Statement, ...]:
        """The same as the thread that issues the bulk stores runs it.

        producer_acquire is ``cp.async.bulk.wait_group.read 1``: all but one committed store have read their buffer.
        """
        kernel = self.kernel
        slots = kernel.staging_slots
        acquire = Drain(1, label="at most one store is reading")
        written = self.meet("D is staged, proxy fence before")

        def store(back: int) -> tuple[Statement, ...]:
            slot = _slot("stored", slots, back=back)
            read = Access(kernel.staging, "r", slot, ends="group", proxy="async", label="bulk store reads D")
            return (read, Commit())

        if kernel.source is Source.ABSENT:
            turn: tuple[Statement, ...] = (
                If(BinOp(">", Name("piece"), Const(0)), (written, *store(1))),
                acquire,
                self.meet("the staging buffer is free"),
                Step("stored"),
            )
            return (Loop("piece", Const(kernel.epilogue_tiles), turn), written, *store(1))
        turn = (written, *store(0), acquire, self.meet("at most one store is reading"), Step("stored"))
        return (Loop("piece", Const(kernel.epilogue_tiles), turn),)


_STORES_DONE = Drain(0, label="every store has read its buffer (store_tail)")


# --------------------------------------------------------------------------------------------------------------
# The kernels


def _one_epilogue(kernel: _Kernel) -> tuple[tuple[Event, ...], tuple[Role, ...]]:
    """Cooperative and non-persistent: all consumers work on one tile and share its epilogue."""
    epilogue = _Epilogue(kernel, kernel.consumers, "store")
    events = [
        Event("full", kernel.stages),
        # The producer starts in the opposite phase: its first pass over the ring does not wait.
        Event("empty", kernel.stages, arrivals=len(kernel.consumers), initial=1),
    ]
    acquire = Wait("empty", _slot("loaded", kernel.stages), label="wait until the stage is released")
    load: tuple[Statement, ...] = (Loop("k", Name(K_TILES), _load_stage(kernel, (acquire,))),)
    tile_end: tuple[Statement, ...] = ()
    if kernel.guarded:
        events.append(Event("stored", initial=1))
        load = (Wait("stored", label="guard: wait for the epilogue before"), *load)
        tile_end = (_STORES_DONE, Trigger("stored", label="guard: the epilogue is done"))
    roles = [Role("producer", _tile_loop(kernel, "tile", load), "thread")]
    for index, name in enumerate(kernel.consumers):
        body = (*_multiply(kernel, index, "empty"), *epilogue.consumer(index))
        roles.append(Role(name, _tile_loop(kernel, "tile", body)))
    storer = _tile_loop(kernel, "tile", (*epilogue.storer(), *tile_end))
    roles.append(Role("store", (*storer, _STORES_DONE), "thread"))
    return tuple(events), tuple(roles)


def _ping_pong(kernel: _Kernel) -> tuple[tuple[Event, ...], tuple[Role, ...]]:
    """Ping-pong: consumers take tiles in turn; order barriers let one multiply while the other stores.

    A stage is released by the consumer of the tile that used it. In the model each consumer has an ``empty`` ring of
    its own, and the producer waits on that of the consumer that releases the stage: use u of the ring follows use u -
    stages.
    """
    events = [Event("full", kernel.stages)]
    roles: list[Role] = []
    acquire: list[Statement] = []
    for index, name in enumerate(kernel.consumers):
        other = f"consumer{1 - index}"
        # math_wg_order_barrier: all threads of the other consumer arrive. Its storing thread is one of them, and
        # arrives when its stores have read (store_tail). Consumer 0 starts in the opposite phase.
        events += [
            Event(f"empty of {name}", kernel.stages),
            Event(f"multiply {name}", initial=1 - index),
            Event(f"store {name}", arrivals=2, initial=1 - index),
        ]
        acquire.append(_acquire_from(kernel, index))
        epilogue = _Epilogue(kernel, (name,), f"store{index}")
        may_store = Trigger(f"store {other}", label="the other consumer may store")
        skip = Loop("skipped", Name(K_TILES), (Step("used"),))  # the stages that the other consumer's tile uses
        cue = Trigger(f"multiply {other}", label="the other consumer may multiply")
        tile = (
            Wait(f"multiply {name}", label="wait for the turn to multiply"),
            *_multiply(kernel, index, f"empty of {name}", (cue,)),
            skip,
            Wait(f"store {name}", label="wait for the turn to store"),
            # Tiles have a whole number of turns over the staging ring, so that skipping a tile skips nothing of it.
            *epilogue.consumer(index),
            may_store,
        )
        # Consumer w computes tiles w, w + 2, …: (tiles + 1 - w) / 2 of them.
        own = BinOp("/", BinOp("+", Name(TILES), Const(1 - index)), Const(2))
        first = (replace(skip, counter="skipped at first"),) if index else ()
        roles.append(Role(name, (*first, Loop("own tile", own, tile))))
        store = (*epilogue.storer(), _STORES_DONE, may_store)
        roles.append(Role(f"store{index}", (Loop("own tile", own, store),), "thread"))
    load = Loop("k", Name(K_TILES), _load_stage(kernel, tuple(acquire)))
    return tuple(events), (Role("producer", (Loop("tile", Name(TILES), (load,)),), "thread"), *roles)


def _acquire_from(kernel: _Kernel, consumer: int) -> Statement:
    """Waits for ``consumer``'s release of the stage, if the stage was used before and it was the one that used it."""
    use = Name("loaded")
    before = BinOp("max", BinOp("-", use, Const(kernel.stages)), Const(0))
    its_tile = BinOp("==", BinOp("%", BinOp("/", before, Name(K_TILES)), Const(2)), Const(consumer))
    condition = BinOp("&&", BinOp(">=", use, Const(kernel.stages)), its_tile)
    name = kernel.consumers[consumer]
    return If(condition, (Wait(f"empty of {name}", _slot("loaded", kernel.stages), label="wait for its release"),))


def _with_c_load(
    kernel: _Kernel, events: tuple[Event, ...], roles: tuple[Role, ...]
) -> tuple[tuple[Event, ...], tuple[Role, ...]]:
    """Adds CollectiveEpilogue::load: bulk copies of C into the buffers in which D is staged later.

    The non-persistent kernel's producer does it after its last stage has been released (load_tail); the cooperative
    kernel has a warp for it, which runs on as soon as the first tile's operands have been asked for
    (load_order_barrier).
    """
    slot = _slot("c loaded", kernel.staging_slots)
    copy = Access(
        kernel.staging, "w", slot, ends="event", event="c_full", event_slot=slot, proxy="async", label="bulk copy of C"
    )
    piece = (Wait("c_empty", slot, label="wait for a free buffer"), copy, Trigger("c_full", slot), Step("c loaded"))
    load = Loop("piece", Const(kernel.epilogue_tiles), piece)
    added = (
        Event("c_full", kernel.staging_slots),
        Event("c_empty", kernel.staging_slots, arrivals=len(kernel.consumers), initial=1),
    )
    producer, *others = roles
    if kernel.schedule is Schedule.NON_PERSISTENT:
        stage = _slot("loaded", kernel.stages)
        tail = Loop("stage", Const(kernel.stages), (Wait("empty", stage, label="load_tail"), Step("loaded")))
        return (*events, *added), (replace(producer, body=(*producer.body, tail, load)), *others)
    (tiles,) = producer.body
    assert isinstance(tiles, Loop)
    started = If(BinOp("==", Name("tile"), Const(0)), (Trigger("load_order", label="operands are asked for"),))
    producer = replace(producer, body=(replace(tiles, body=(*tiles.body, started)),))
    c_producer = Role("c_producer", (Wait("load_order"), Loop("tile", Name(TILES), (load,))), "thread")
    return (*events, *added, Event("load_order")), (producer, c_producer, *others)
