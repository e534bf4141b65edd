"""CUTLASS' schedules as events and roles of the engine's model."""

from __future__ import annotations

from dataclasses import replace

from hb_analyzer.model import (
    Access,
    BinOp,
    Const,
    Event,
    If,
    Loop,
    Name,
    Role,
    Statement,
    Step,
    Trigger,
    Wait,
)
from reproduce.cutlass.configurations import Schedule
from reproduce.cutlass.parts import (
    K_TILES,
    STORES_DONE,
    TILES,
    Kernel,
    StagedEpilogue,
    load,
    multiply,
    slot_of,
    tile_loop,
)


def one_epilogue(kernel: Kernel) -> tuple[tuple[Event, ...], tuple[Role, ...]]:
    """Cooperative and non-persistent: all consumers work on one tile and share its epilogue."""
    epilogue = StagedEpilogue(kernel, kernel.consumers, "store")
    events = [
        Event("full", kernel.stages),
        # The producer starts in the opposite phase: its first pass over the ring does not wait.
        Event("empty", kernel.stages, arrivals=len(kernel.consumers), initial=1),
    ]
    loads: tuple[Statement, ...] = (load(kernel),)
    tile_end: tuple[Statement, ...] = ()
    if kernel.guarded:
        events.append(Event("stored", initial=1))
        loads = (Wait("stored", label="guard: wait for the epilogue before"), *loads)
        tile_end = (STORES_DONE, Trigger("stored", label="guard: the epilogue is done"))
    roles = [Role("producer", tile_loop(kernel, loads), "thread")]
    for index, name in enumerate(kernel.consumers):
        body = (*multiply(kernel, index), *epilogue.consumer(index))
        roles.append(Role(name, tile_loop(kernel, body)))
    storer = tile_loop(kernel, (*epilogue.storer(), *tile_end))
    roles.append(Role("store", (*storer, STORES_DONE), "thread"))
    return tuple(events), tuple(roles)


def ping_pong(kernel: Kernel) -> tuple[tuple[Event, ...], tuple[Role, ...]]:
    """Ping-pong: consumers take tiles in turn; order barriers let one multiply while the other stores.

    Both consumers use one ring, and each advances its state past the stages of the other's tiles. In the model, which
    counts the waits of each role, the ring's barriers are one set per consumer. The producer waits for releases in the
    order of use, whoever makes them: the role "releases" passes them on in that order, and so orders nothing more.
    """
    events = [Event("empty", kernel.stages, initial=1)]
    roles: list[Role] = []
    loads: list[tuple[Statement, ...]] = []
    passed: list[tuple[Statement, ...]] = []
    for index, name in enumerate(kernel.consumers):
        other = kernel.consumers[1 - index]
        full, released = f"full for {name}", f"released by {name}"
        # math_wg_order_barrier: all threads of the other consumer arrive. Its storing thread is one of them, and
        # arrives when its stores have read (store_tail). Consumer 0 starts in the opposite phase.
        events += [
            Event(full, kernel.stages),
            Event(released, kernel.stages),
            Event(f"multiply {name}", initial=1 - index),
            Event(f"store {name}", arrivals=2, initial=1 - index),
        ]
        loads.append((load(kernel, full),))
        slot = slot_of("released", kernel.stages)
        passed.append((Loop("k", Name(K_TILES), (Wait(released, slot), Trigger("empty", slot), Step("released"))),))
        epilogue = StagedEpilogue(kernel, (name,), f"store{index}")
        may_store = Trigger(f"store {other}", label="the other consumer may store")
        may_multiply = Trigger(f"multiply {other}", label="the other consumer may multiply")
        tile = (
            Wait(f"multiply {name}", label="wait for the turn to multiply"),
            *multiply(kernel, index, full, released, (may_multiply,)),
            Wait(f"store {name}", label="wait for the turn to store"),
            *epilogue.consumer(index),
            may_store,
        )
        # The other consumer's tile: its stages are skipped. Its pieces too, but a tile has a whole number of turns over
        # the staging ring.
        skip = (Loop("skipped", Name(K_TILES), (Step("used"),)),)
        own = BinOp("==", BinOp("%", Name("tile"), Const(2)), Const(index))
        store = (*epilogue.storer(), STORES_DONE, may_store)
        roles.append(Role(name, tile_loop(kernel, (If(own, tile, skip),))))
        roles.append(Role(f"store{index}", tile_loop(kernel, (If(own, store),)), "thread"))
    even = BinOp("==", BinOp("%", Name("tile"), Const(2)), Const(0))
    producer = Role("producer", tile_loop(kernel, (If(even, loads[0], loads[1]),)), "thread")
    releases = Role("releases", tile_loop(kernel, (If(even, passed[0], passed[1]),)), "thread")
    return tuple(events), (producer, *roles, releases)


def with_c_load(
    kernel: Kernel, events: tuple[Event, ...], roles: tuple[Role, ...]
) -> tuple[tuple[Event, ...], tuple[Role, ...]]:
    """Adds CollectiveEpilogue::load: bulk copies of C into the buffers in which D is staged later.

    The non-persistent kernel's producer does it after its last stage has been released (load_tail); the cooperative
    kernel has a warp for it, which runs on as soon as the first tile's operands have been asked for
    (load_order_barrier).
    """
    slot = slot_of("c loaded", kernel.staging_slots)
    copy = Access(
        kernel.staging, "w", slot, ends="event", event="c_full", event_slot=slot, proxy="async", label="bulk copy of C"
    )
    piece = (Wait("c_empty", slot, label="wait for a free buffer"), copy, Trigger("c_full", slot), Step("c loaded"))
    pieces = Loop("piece", Const(kernel.pieces), piece)
    added = (
        Event("c_full", kernel.staging_slots),
        Event("c_empty", kernel.staging_slots, arrivals=len(kernel.consumers), initial=1),
    )
    producer, *others = roles
    if kernel.schedule is Schedule.NON_PERSISTENT:
        stage = slot_of("loaded", kernel.stages)
        tail = Loop("stage", Const(kernel.stages), (Wait("empty", stage, label="load_tail"), Step("loaded")))
        return (*events, *added), (replace(producer, body=(*producer.body, tail, pieces)), *others)
    (tiles,) = producer.body
    assert isinstance(tiles, Loop)
    started = If(BinOp("==", Name("tile"), Const(0)), (Trigger("load_order", label="operands are asked for"),))
    producer = replace(producer, body=(replace(tiles, body=(*tiles.body, started)),))
    c_producer = Role("c_producer", (Wait("load_order"), Loop("tile", Name(TILES), (pieces,))), "thread")
    return (*events, *added, Event("load_order")), (producer, c_producer, *others)
