"""What CUTLASS' kernels are made of, as statements of the engine's model: the main loop and the epilogue of one tile.

Named after the functions in CUTLASS that they stand for; :mod:`reproduce.cutlass.model` says which files.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from hb_analyzer.model import (
    WHOLE,
    Access,
    Barrier,
    BinOp,
    Commit,
    Const,
    Drain,
    If,
    IntExpr,
    Loop,
    Name,
    Region,
    Statement,
    Step,
    Trigger,
    Wait,
)
from reproduce.cutlass.configurations import Schedule

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


@dataclass(frozen=True)
class Kernel:
    """What the builders of a model need to know; ``consumers`` are warpgroups."""

    schedule: Schedule
    stages: int
    pieces: int
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
        return min(self.pieces, 2 if self.source is Source.ABSENT else 4)


# --------------------------------------------------------------------------------------------------------------
# Small builders


def slot_of(counter: str, slots: int, back: int = 0) -> IntExpr:
    """``(counter - back) mod slots``, never negative."""
    return BinOp("%", BinOp("+", Name(counter), Const((slots - back) % slots)), Const(slots))


def tile_loop(kernel: Kernel, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The scheduler loop of a persistent kernel; the other one has a single tile and no loop."""
    if kernel.schedule is Schedule.NON_PERSISTENT:
        return body
    return (Loop("tile", Name(TILES), body),)


def half_of(kernel: Kernel, consumer: int) -> Region:
    """The rows of a tile that a consumer works on."""
    return ((consumer, consumer + 1),) if kernel.schedule is Schedule.COOPERATIVE else WHOLE


# --------------------------------------------------------------------------------------------------------------
# Main loop


def load(kernel: Kernel, full: str = "full") -> Loop:
    """CollectiveMma::load for one tile: producer_acquire, then the two bulk copies that complete the full barrier.

    The barrier is told of the bytes before they are issued (arrive_and_expect_tx), so that the copies belong to the
    setting that this arrival takes part in: in the model, the trigger comes after them.
    """
    slot = slot_of("loaded", kernel.stages)
    copies = (
        Access(
            name, "w", slot, ends="event", event=full, event_slot=slot, proxy="async", label=f"bulk copy into {name}"
        )
        for name in LOADS
    )
    acquire = Wait("empty", slot, label="wait until the stage is released")
    commit = Trigger(full, slot, label="expect the bytes of A and B")
    return Loop("k", Name(K_TILES), (acquire, *copies, commit, Step("loaded")))


def multiply(
    kernel: Kernel, consumer: int, full: str = "full", empty: str = "empty", cue: tuple[Statement, ...] = ()
) -> tuple[Statement, ...]:
    """CollectiveMma::mma and mma_tail for one tile; ``cue`` stands between the two.

    K_PIPE_MMAS is 1: a stage is released when the matrix instructions of the next one have been issued, the last one
    after all have completed (warpgroup_wait<0>).
    """
    slot = slot_of("used", kernel.stages)
    release = Trigger(empty, slot_of("used", kernel.stages, back=1), label="release the stage before")
    step: tuple[Statement, ...] = (
        Wait(full, slot, label="wait for A and B"),
        Access(
            "A", "r", slot, half_of(kernel, consumer), ends="group", proxy="async", label="matrix instructions read A"
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
class StagedEpilogue:
    """Names of one epilogue: the warpgroups that share it, and the thread that issues its stores."""

    kernel: Kernel
    members: tuple[str, ...]
    store: str

    def meet(self, label: str) -> Barrier:
        """``synchronize``: named barrier of all threads that share the epilogue; the storing thread is one of them."""
        return Barrier(f"epilogue of {self.members[0]}", (*self.members, self.store), label=label)

    def consumer(self, consumer: int) -> tuple[Statement, ...]:
        """CollectiveEpilogue::store as a consumer warpgroup runs it, for one tile."""
        kernel = self.kernel
        slot = slot_of("stored", kernel.staging_slots)
        write = Access(kernel.staging, "w", slot, half_of(kernel, consumer), label="write D to the staging buffer")
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
            return (Loop("piece", Const(kernel.pieces), turn), written)
        read: tuple[Statement, ...] = ()
        release: tuple[Statement, ...] = ()
        if kernel.source is Source.LOADED:
            read = (
                Wait("c_full", slot, label="wait for C"),
                Access(kernel.staging, "r", slot, half_of(kernel, consumer), label="read C"),
            )
            # From the second store on (store_finished): the buffer of the store before the last committed one.
            release = (
                If(
                    BinOp(">", Name("stored"), Const(0)),
                    (Trigger("c_empty", slot_of("stored", kernel.staging_slots, back=1), label="release C's buffer"),),
                ),
            )
        turn = (*read, write, written, self.meet("at most one store is reading"), *release, Step("stored"))
        return (Loop("piece", Const(kernel.pieces), turn),)

    def storer(self) -> tuple[Statement, ...]:
        """The same as the thread that issues the bulk stores runs it.

        producer_acquire is ``cp.async.bulk.wait_group.read 1``: all but one committed store have read their buffer.
        """
        kernel = self.kernel
        slots = kernel.staging_slots
        acquire = Drain(1, label="at most one store is reading")
        written = self.meet("D is staged, proxy fence before")

        def store(back: int) -> tuple[Statement, ...]:
            slot = slot_of("stored", slots, back=back)
            read = Access(kernel.staging, "r", slot, ends="group", proxy="async", label="bulk store reads D")
            return (read, Commit())

        if kernel.source is Source.ABSENT:
            turn: tuple[Statement, ...] = (
                If(BinOp(">", Name("piece"), Const(0)), (written, *store(1))),
                acquire,
                self.meet("the staging buffer is free"),
                Step("stored"),
            )
            return (Loop("piece", Const(kernel.pieces), turn), written, *store(1))
        turn = (written, *store(0), acquire, self.meet("at most one store is reading"), Step("stored"))
        return (Loop("piece", Const(kernel.pieces), turn),)


STORES_DONE = Drain(0, label="every store has read its buffer (store_tail)")
