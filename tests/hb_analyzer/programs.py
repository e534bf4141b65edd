"""Small programs with the synchronisation of real kernels, shared by the tests of the engine."""

from __future__ import annotations

from hb_analyzer.model import (
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
    Role,
    Statement,
    Step,
    Trigger,
    Wait,
)

K = Name("k")
N = Name("N")


def ring(counter: str, slots: int, offset: int = 0) -> IntExpr:
    """(counter + offset) mod slots."""
    index: IntExpr = Name(counter)
    if offset:
        index = BinOp("+", index, Const(offset))
    return BinOp("%", index, Const(slots))


def load(buffer: str, event: str, slot: IntExpr) -> Access:
    """A bulk copy in."""
    return Access(buffer, "w", slot, ends="event", event=event, event_slot=slot, proxy="async")


def mma(buffer: str, slot: IntExpr) -> Access:
    """A matrix instruction's read of an operand."""
    return Access(buffer, "r", slot, ends="group", proxy="async")


def released(event: str, slots: int) -> tuple[Statement, ...]:
    """Every slot triggered once in advance."""
    return tuple(Trigger(event, Const(s)) for s in range(slots))


def store(buffer: str, region: tuple[tuple[int, int], ...] = ()) -> tuple[Statement, ...]:
    """Epilogue staging: threads write, a bulk copy out reads and is awaited."""
    return (Access(buffer, "w", region=region), Access(buffer, "r", region=region, proxy="async"))


def gemm(
    consumers: int = 1,
    stages: int = 4,
    barrier: bool = False,
    pending: int = 0,
    arrivals: int | None = None,
    released_slots: int | None = None,
) -> Program:
    """Producer thread and consumer warpgroups; each consumer stores its rows of `out` after the k loop."""
    slot = ring("k", stages)
    names = [f"consumer{c}" for c in range(consumers)]
    producer = Role(
        "producer",
        (
            Loop(
                "k",
                N,
                (
                    Wait("empty", slot),
                    load("lhs", "full", slot),
                    load("rhs", "full", slot),
                    Trigger("full", slot),
                ),
            ),
        ),
        kind="thread",
    )
    roles = [producer]
    meeting: tuple[Statement, ...] = (Barrier("consumers", tuple(names)),) if barrier else ()
    for c, name in enumerate(names):
        body: tuple[Statement, ...] = (
            Wait("full", slot),
            mma("lhs", slot),
            mma("rhs", slot),
            Commit(),
            Drain(pending),
            Trigger("empty", slot),
        )
        advance = released("empty", stages if released_slots is None else released_slots)
        roles.append(
            Role(name, (*advance, Loop("k", N, body), Drain(0), *meeting, *store("out", ((64 * c, 64 * c + 64),))))
        )
    return Program(
        f"gemm_1p{consumers}c",
        (
            Buffer("lhs", stages * 64 * 64 * 2 * consumers, 1024, stages),
            Buffer("rhs", stages * 128 * 64 * 2, 1024, stages),
            Buffer("out", 64 * consumers * 128 * 2, 1024, shape=(64 * consumers,)),
        ),
        (Event("full", stages, 1), Event("empty", stages, consumers if arrivals is None else arrivals)),
        tuple(roles),
        (Parameter("N"),),
    )


def attention(stages: int = 2, consumers: int = 1, barrier: bool = False) -> Program:
    """Q once; K and V in rings of their own; O staged after the loop."""
    slot = ring("k", stages)
    names = [f"consumer{c}" for c in range(consumers)]
    producer = Role(
        "producer",
        (
            load("q", "qf", Const(0)),
            Trigger("qf"),
            Loop(
                "k",
                N,
                (
                    Wait("k_empty", slot),
                    load("kk", "k_full", slot),
                    Trigger("k_full", slot),
                    Wait("v_empty", slot),
                    load("v", "v_full", slot),
                    Trigger("v_full", slot),
                ),
            ),
        ),
    )
    roles = [producer]
    meeting: tuple[Statement, ...] = (Barrier("consumers", tuple(names)),) if barrier else ()
    for c, name in enumerate(names):
        body: tuple[Statement, ...] = (
            Wait("k_full", slot),
            mma("q", Const(0)),
            mma("kk", slot),
            Commit(),
            Drain(0),
            Trigger("k_empty", slot),
            Wait("v_full", slot),
            mma("v", slot),
            Commit(),
            Drain(0),
            Trigger("v_empty", slot),
        )
        roles.append(
            Role(
                name,
                (
                    *released("k_empty", stages),
                    *released("v_empty", stages),
                    Wait("qf"),
                    Loop("k", N, body),
                    *meeting,
                    *store("o", ((64 * c, 64 * c + 64),)),
                ),
            )
        )
    return Program(
        "attention",
        (
            Buffer("q", 16384, 1024),
            Buffer("kk", stages * 16384, 1024, stages),
            Buffer("v", stages * 16384, 1024, stages),
            Buffer("o", 16384, 1024, shape=(64 * consumers,)),
        ),
        (
            Event("qf"),
            Event("k_full", stages),
            Event("k_empty", stages, consumers),
            Event("v_full", stages),
            Event("v_empty", stages, consumers),
        ),
        tuple(roles),
        (Parameter("N"),),
    )


def persistent_gemm(
    stages: int = 4, consumers: int = 2, epilogue_event: bool = False, max_tiles: int | None = None
) -> Program:
    """Cooperative persistent GEMM: slots run on across tiles; `out` is staged at the end of each tile."""
    slot = ring("it", stages)
    names = [f"consumer{c}" for c in range(consumers)]
    guard: tuple[Statement, ...] = ()
    if epilogue_event:
        guard = (If(BinOp(">", Name("t"), Const(0)), (Wait("stored"),)),)
    producer = Role(
        "producer",
        (
            Loop(
                "t",
                Name("T"),
                (
                    *guard,
                    Loop(
                        "k",
                        N,
                        (
                            Wait("empty", slot),
                            load("lhs", "full", slot),
                            load("rhs", "full", slot),
                            Trigger("full", slot),
                            Step("it"),
                        ),
                    ),
                ),
            ),
        ),
    )
    roles = [producer]
    for c, name in enumerate(names):
        body: tuple[Statement, ...] = (
            Wait("full", slot),
            mma("lhs", slot),
            mma("rhs", slot),
            Commit(),
            Drain(0),
            Trigger("empty", slot),
            Step("it"),
        )
        signal: tuple[Statement, ...] = (Trigger("stored"),) if epilogue_event else ()
        tile: tuple[Statement, ...] = (
            Loop("k", N, body),
            Barrier("consumers", tuple(names)),
            *store("out", ((64 * c, 64 * c + 64),)),
            *signal,
        )
        roles.append(Role(name, (*released("empty", stages), Loop("t", Name("T"), tile))))
    events = [Event("full", stages, 1), Event("empty", stages, consumers)]
    if epilogue_event:
        events.append(Event("stored", 1, consumers))
    return Program(
        "persistent_gemm",
        (
            Buffer("lhs", stages * 128 * 64 * 2, 1024, stages),
            Buffer("rhs", stages * 128 * 64 * 2, 1024, stages),
            Buffer("out", 128 * 128 * 2, 1024, shape=(64 * consumers,)),
        ),
        tuple(events),
        tuple(roles),
        (Parameter("T", 0, max_tiles), Parameter("N")),
    )
