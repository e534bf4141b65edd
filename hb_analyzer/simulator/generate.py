"""Random programs, to put the engine to the test.

Families: handshakes as kernels have them, mostly right (``pipeline``, ``persistent``, and ``counters`` with every kind
of index and trip count), and operations thrown together in an order in which they can run (``straight``, ``looped``,
``nested``), whose synchronisation makes no sense and whose verdicts nobody would guess. ``program(seed)`` is the same
program for the same seed.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

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
    Region,
    Role,
    Statement,
    Step,
    Trigger,
    Wait,
)
from hb_analyzer.simulator.code import compile_program, walk
from hb_analyzer.simulator.layout import Layout, nothing
from hb_analyzer.simulator.witness import run

SHAPE = (4,)
_DRAFTS = 8
_REGIONS: tuple[Region, ...] = ((), (), (), (), ((0, 2),), ((2, 4),), ((1, 3),), None)
N = Name("N")


def program(seed: int) -> tuple[str, Program]:
    """(family, program) number ``seed``."""
    random = Random(seed)
    family = random.choice(_DRAWN)
    drawn = FAMILIES[family](random)
    for _ in range(_DRAFTS):
        if random.random() < 0.1 or _ends(drawn):
            break
        drawn = FAMILIES[family](random)
    return family, drawn


def _ends(drawn: Program) -> bool:
    """Does it run to its end under one schedule? Most of what is thrown together gets stuck, and says little."""
    for count in (2, 5):
        values = {p.name: min(max(count, p.minimum), p.maximum or count) for p in drawn.parameters}
        code = compile_program(drawn, values)
        machine, _ = run(code, Layout(code, nothing), Random(0))
        if any(kind == "deadlock" for kind, _ in machine.findings) or machine.halted:
            return False
    return True


def _slot(counter: str, slots: int, offset: int = 0) -> IntExpr:
    index: IntExpr = Name(counter)
    if offset:
        index = BinOp("+", index, Const(offset))
    return BinOp("%", index, Const(slots)) if slots > 1 else Const(0)


def _kind(random: Random) -> str:
    return "thread" if random.random() < 0.3 else "warpgroup"


# ---------------------------------------------------------------------------------------------------------------
# Operations thrown together


class _Heap:
    """Events, buffers and roles, and operations drawn at random that can run in the order in which they are drawn."""

    def __init__(self, random: Random, slots: tuple[int, ...] = (1, 1, 2, 3)) -> None:
        self.random = random
        self.roles = random.randint(2, 4)
        self.names = [f"r{i}" for i in range(self.roles)]
        self.buffers = [Buffer(f"b{i}", 64, 16, random.choice((1, 1, 2)), SHAPE) for i in range(random.randint(2, 4))]
        self.events: list[Event] = []
        self.givers: list[list[int]] = []
        for i in range(random.randint(1, 4)):
            arrivals = random.choice((1, 1, 1, 2, 2, 3))
            givers = random.sample(range(self.roles), min(arrivals, self.roles))
            self.events.append(Event(f"e{i}", random.choice(slots), len(givers), random.choice((0, 0, 0, 1))))
            self.givers.append(givers)
        self.members = tuple(sorted(random.sample(self.names, random.randint(2, self.roles))))

    def operation(self, role: int, counter: str | None) -> list[Statement]:
        """One operation of a role (two where they belong together); ``counter`` runs through the slots."""
        random = self.random
        draw = random.random()
        if draw < 0.45:
            return self.access(role, counter)
        if draw < 0.7:
            own = [e for e, givers in enumerate(self.givers) if role in givers]
            if own:
                event = self.events[random.choice(own)]
                return [Trigger(event.name, self.slot(event.slots, counter))]
        if draw < 0.92:
            event = random.choice(self.events)
            return [Wait(event.name, self.slot(event.slots, counter))]
        if self.names[role] in self.members and random.random() < 0.5:
            return [Barrier("meet", self.members)]
        return [Drain(random.choice((0, 0, 1)))]

    def access(self, role: int, counter: str | None) -> list[Statement]:
        random = self.random
        buffer = random.choice(self.buffers)
        slot = self.slot(buffer.slots, counter)
        region = random.choice(_REGIONS)
        draw = random.random()
        own = [e for e, givers in enumerate(self.givers) if role in givers]
        if draw < 0.25 and own:
            event = self.events[random.choice(own)]
            where = self.slot(event.slots, counter)
            copy = Access(buffer.name, "w", slot, region, "event", event.name, where, "async")
            return [copy, Trigger(event.name, where)] if random.random() < 0.9 else [copy]
        if draw < 0.4:
            return [Access(buffer.name, "r", slot, region, "group", proxy="async"), Commit()]
        if draw < 0.45:
            return [Access(buffer.name, "r", slot, region, random.choice(("here", "never")), proxy="async")]
        mode = random.choice("rw")
        return [Access(buffer.name, mode, slot, region, fenced=mode == "r" or random.random() < 0.8)]

    def slot(self, slots: int, counter: str | None) -> IntExpr:
        if counter is None or self.random.random() < 0.15:
            return Const(self.random.randrange(slots))
        return _slot(counter, slots, self.random.choice((0, 0, 0, 1)))

    def finish(self, name: str, bodies: list[list[Statement]], parameters: tuple[Parameter, ...] = ()) -> Program:
        """The program; mostly with the arrival counts that its triggers make."""
        roles = tuple(Role(n, tuple(body), _kind(self.random)) for n, body in zip(self.names, bodies, strict=True))
        events = self.events
        if self.random.random() < 0.85:
            made = {event.name: {r.name for r in roles if _triggers(r.body, event.name)} for event in events}
            events = [replace(event, arrivals=max(1, len(made[event.name]))) for event in events]
        return Program(name, tuple(self.buffers), tuple(events), roles, parameters)


def _triggers(body: tuple[Statement, ...], event: str) -> bool:
    return any(isinstance(statement, Trigger) and statement.event == event for statement in walk(body))


class _Settings:
    """Keeps count, so that what is drawn can run in the order of drawing."""

    def __init__(self, heap: _Heap) -> None:
        self.needed = {event.name: event.arrivals for event in heap.events}
        self.initial = {event.name: event.initial for event in heap.events}
        self.arrived: dict[tuple[str, int], int] = {}
        self.waited: dict[tuple[int, str, int], int] = {}

    def runs(self, role: int, op: Statement) -> bool:
        if isinstance(op, Barrier):
            return False  # added for all members together
        if isinstance(op, (Trigger, Wait)):
            assert isinstance(op.slot, Const)
            key = (op.event, op.slot.value)
            if isinstance(op, Trigger):
                self.arrived[key] = self.arrived.get(key, 0) + 1
            else:
                done = self.arrived.get(key, 0) // self.needed[op.event] + self.initial[op.event]
                mine = (role, op.event, op.slot.value)
                number = self.waited.get(mine, 0)
                if number >= done:
                    return False
                self.waited[mine] = number + 1
        return True


def straight(random: Random) -> Program:
    """No loop: any operations in any order."""
    heap = _Heap(random)
    settings = _Settings(heap)
    bodies: list[list[Statement]] = [[] for _ in heap.names]
    for _ in range(random.randint(6, 18)):
        role = random.randrange(heap.roles)
        if random.random() < 0.06:
            for member in heap.members:
                bodies[heap.names.index(member)].append(Barrier("meet", heap.members))
            continue
        for op in heap.operation(role, None):
            if settings.runs(role, op):
                bodies[role].append(op)
    return heap.finish("straight", bodies)


def looped(random: Random) -> Program:
    """One loop of N in most roles, operations before and after it."""
    heap = _Heap(random)
    parts: list[list[list[Statement]]] = [[[], [], []] for _ in heap.names]
    for segment, most in ((0, 5), (1, 9), (2, 4)):
        for _ in range(random.randint(1, most)):
            role = random.randrange(heap.roles)
            ops = heap.operation(role, "i" if segment == 1 else None)
            if segment == 1 and random.random() < 0.1:
                ops = [If(_condition(random, "i"), tuple(ops))]
            parts[role][segment] += ops
    _rendezvous(random, heap, parts)
    bodies: list[list[Statement]] = []
    for before, body, after in parts:
        loop = Loop("i", N, tuple(body))
        bodies.append([*before, loop, *after] if body else [*before, *after])
    return heap.finish("looped", bodies, (Parameter("N", random.randint(0, 1)),))


def _rendezvous(random: Random, heap: _Heap, parts: list[list[list[Statement]]]) -> None:
    """A handshake between two roles in the loop, so that something is ordered."""
    for number in range(random.randint(0, 2)):
        giver, taker = random.sample(range(heap.roles), 2)
        slots = random.choice((1, 1, 2, 3))
        forth, back = f"full{number}", f"empty{number}"
        heap.events += [Event(forth, slots), Event(back, slots, 1, random.choice((0, 0, 1)))]
        heap.givers += [[giver], [taker]]
        slot = _slot("i", slots)
        if heap.events[-1].initial == 0:
            parts[taker][0][:0] = [Trigger(back, Const(s)) for s in range(slots)]
        parts[giver][1].insert(0, Wait(back, slot))
        parts[giver][1].insert(random.randint(1, len(parts[giver][1])), Trigger(forth, slot))
        parts[taker][1].insert(0, Wait(forth, slot))
        parts[taker][1].insert(random.randint(1, len(parts[taker][1])), Trigger(back, slot))


def _condition(random: Random, counter: str) -> IntExpr:
    index = Name(counter)
    return random.choice(
        (
            BinOp("==", index, Const(random.randint(0, 5))),
            BinOp(">=", index, Const(random.randint(1, 5))),
            BinOp("==", BinOp("%", index, Const(random.randint(2, 3))), Const(0)),
            BinOp("==", BinOp("%", BinOp("/", index, Const(2)), Const(2)), Const(1)),
            BinOp("<", BinOp("+", index, Const(random.randint(1, 3))), N),
            BinOp("==", BinOp("+", index, Const(1)), N),
            BinOp("&&", BinOp(">", index, Const(0)), BinOp("<", index, Const(random.randint(2, 4)))),
        )
    )


def nested(random: Random) -> Program:
    """Two loops inside each other with counters that run on; operations at every level."""
    heap = _Heap(random, (1, 1, 2))
    outer: list[list[Statement]] = [[] for _ in heap.names]
    inner: list[list[Statement]] = [[] for _ in heap.names]
    tail: list[list[Statement]] = [[] for _ in heap.names]
    before: list[list[Statement]] = [[] for _ in heap.names]
    parts = [[b, i, t] for b, i, t in zip(before, inner, tail, strict=True)]
    for place, counter, most in ((outer, "t", 4), (inner, "c", 6), (tail, "t", 4)):
        for _ in range(random.randint(1, most)):
            role = random.randrange(heap.roles)
            place[role] += heap.operation(role, counter)
    _rendezvous(random, heap, parts)
    bodies: list[list[Statement]] = []
    for role in range(heap.roles):
        body = [_renamed(s, "i", "c") for s in inner[role]]
        tile = [*outer[role], Loop("i", N, (*body, Step("c"))), *tail[role]] if body else [*outer[role], *tail[role]]
        bodies.append([*before[role], Loop("t", Name("T"), tuple(tile))])
    top = random.choice((None, None, 1, 2))
    return heap.finish("nested", bodies, (Parameter("T", 0, top), Parameter("N", random.randint(0, 1))))


def _renamed(statement: Statement, old: str, new: str) -> Statement:
    if isinstance(statement, (Trigger, Wait)):
        return replace(statement, slot=_rename(statement.slot, old, new))
    return statement


def _rename(expr: IntExpr, old: str, new: str) -> IntExpr:
    if isinstance(expr, Name):
        return Name(new if expr.name == old else expr.name)
    if isinstance(expr, BinOp):
        return BinOp(expr.op, _rename(expr.left, old, new), _rename(expr.right, old, new))
    return expr


# ---------------------------------------------------------------------------------------------------------------
# Handshakes as kernels have them


def pipeline(random: Random) -> Program:
    """Roles in a chain, each handing tiles to the next one through a ring; scratch, prologue, epilogue, damage."""
    length = random.randint(2, 4)
    names = [f"r{i}" for i in range(length)]
    before: list[list[Statement]] = [[] for _ in names]
    body: list[list[Statement]] = [[] for _ in names]
    after: list[list[Statement]] = [[] for _ in names]
    buffers: list[Buffer] = []
    events: list[Event] = []
    for link in range(length - 1):
        takers = (
            [link + 1] if random.random() < 0.7 else [t for t in range(length) if t != link][: random.randint(1, 2)]
        )
        slots = random.choice((1, 1, 2, 2, 3, 4, 5))
        slot = _slot("i", slots, random.choice((0, 0, 1)))
        full, empty, tile = f"full{link}", f"empty{link}", f"tile{link}"
        buffers.append(Buffer(tile, 64 * slots, 16, slots, SHAPE))
        advance = random.random() < 0.8
        events += [Event(full, slots), Event(empty, slots, len(takers), 0 if advance else 1)]
        asynchronous = random.random() < 0.6
        fill = (
            Access(tile, "w", slot, ends="event", event=full, event_slot=slot, proxy="async")
            if asynchronous
            else Access(tile, "w", slot)
        )
        body[link] += [Wait(empty, slot), fill, Trigger(full, slot)]
        pending = random.choice((0, 0, 0, 1)) if slots > 1 else 0
        for taker in takers:
            if advance:
                before[taker] += [Trigger(empty, Const(s)) for s in range(slots)]
            use: list[Statement] = [Wait(full, slot)]
            if random.random() < 0.5:
                use += [Access(tile, "r", slot, ends="group", proxy="async"), Commit(), Drain(0)]
            else:
                use.append(Access(tile, "r", slot))
            late = [Trigger(empty, slot)]
            if pending and random.random() < 0.5:
                use[-1:] = [Drain(1)] if isinstance(use[-1], Drain) else use[-1:]
            # work on the previous link's tile may come in between
            place = random.choice((0, len(body[taker])))
            body[taker][place:place] = [*use, *late]
            after[taker].append(Drain(0))
    for number in range(random.randint(1, 3)):
        name = f"s{number}"
        role = random.randrange(length)
        buffers.append(Buffer(name, 32, 16, 1, SHAPE))
        where = random.choice((before, body, after, after))
        place = random.choice((0, len(where[role]), random.randint(0, len(where[role]))))
        region = random.choice(_REGIONS[:-1])
        where[role][place:place] = [Access(name, "w", region=region), Access(name, "r", region=region)]
    if random.random() < 0.3:
        members = tuple(random.sample(names, random.randint(2, length)))
        where = random.choice((before, body, after))
        for member in members:
            role = names.index(member)
            where[role].insert(random.choice((0, len(where[role]))), Barrier("meet", members))
    for _ in range(random.choice((0, 0, 0, 1, 2))):
        _damage(random, random.choice((before, body, body, after))[random.randrange(length)])
    trips: IntExpr = random.choice(
        (N, N, N, BinOp("max", BinOp("-", N, Const(2)), Const(0)), BinOp("cdiv", N, Const(4)))
    )
    roles = tuple(
        Role(name, (*b, Loop("i", trips, tuple(m)), *a), _kind(random))
        for name, b, m, a in zip(names, before, body, after, strict=True)
    )
    return Program("pipeline", tuple(buffers), tuple(events), roles, (Parameter("N", random.randint(0, 1)),))


def _damage(random: Random, body: list[Statement]) -> None:
    """Removes, moves or doubles one statement."""
    if body:
        index = random.randrange(len(body))
        statement = body.pop(index)
        draw = random.random()
        if draw < 0.5:
            body.insert(random.randint(0, len(body)), statement)
        elif draw < 0.6:
            body[index:index] = [statement, statement]


def persistent(random: Random) -> Program:
    """A producer and consumers over tiles of N steps each; the epilogue staged, guarded in different ways."""
    consumers = random.randint(1, 2)
    stages = random.choice((1, 2, 2, 3))
    staging = random.choice((1, 1, 2))
    names = ["p", *(f"c{i}" for i in range(consumers))]
    slot, out_slot = _slot("it", stages), _slot("t", staging)
    buffers = [Buffer("tile", 64 * stages, 16, stages, SHAPE), Buffer("out", 64 * staging, 16, staging, SHAPE)]
    events = [Event("full", stages), Event("empty", stages, consumers)]
    guard = random.choice(("none", "lag", "credit", "credit", "modulo"))
    lag = random.choice((1, 1, 1, 2, 3))
    producer: list[Statement] = []
    if guard != "none":
        events.append(Event("stored", 1, consumers))
        wait: Statement = Wait("stored")
        if guard == "lag":
            wait = If(BinOp(">=", Name("t"), Const(lag)), (wait,))
        elif guard == "modulo":
            wait = If(BinOp("==", BinOp("%", Name("t"), Const(2)), Const(1)), (wait,))
        producer.append(wait)
    load = Access("tile", "w", slot, ends="event", event="full", event_slot=slot, proxy="async")
    producer.append(Loop("k", N, (Wait("empty", slot), load, Trigger("full", slot), Step("it"))))
    bodies: list[list[Statement]] = [[Loop("t", Name("T"), tuple(producer))]]
    for c in range(consumers):
        before: list[Statement] = [Trigger("empty", Const(s)) for s in range(stages)]
        if guard == "credit":
            before += [Trigger("stored")] * (1 if random.random() < 0.9 else lag)
        use: list[Statement] = [Wait("full", slot), Access("tile", "r", slot, ends="group", proxy="async"), Commit()]
        use += [Drain(0), Trigger("empty", slot), Step("it")]
        rows: Region = ((2 * c, 2 * c + 2),) if consumers > 1 else ()
        tile: list[Statement] = [Loop("k", N, tuple(use))]
        if consumers > 1 and random.random() < 0.7:
            tile.append(Barrier("meet", tuple(names[1:])))
        tile += [Access("out", "w", out_slot, rows), Access("out", "r", out_slot, rows, proxy="async")]
        if guard == "modulo":
            tile.append(If(BinOp("==", BinOp("%", Name("t"), Const(2)), Const(0)), (Trigger("stored"),)))
        elif guard != "none":
            tile.append(Trigger("stored"))
        if random.random() < 0.15:
            _damage(random, tile)
        bodies.append([*before, Loop("t", Name("T"), tuple(tile))])
    tiles = random.choice((None, None, None, 1, 2))
    roles = tuple(Role(n, tuple(b), "thread" if n == "p" else "warpgroup") for n, b in zip(names, bodies, strict=True))
    return Program(
        "persistent",
        tuple(buffers),
        tuple(events),
        roles,
        (Parameter("T", 0, tiles), Parameter("N", random.randint(0, 1))),
    )


def counters(random: Random) -> Program:
    """A ring between two or three roles, indexed by counters that run in steps; releases that lag behind; loops of
    several counts, one after another; scratch that is used in some iterations only."""
    shape = random.random()
    simple = shape < 0.2 or 0.4 <= shape < 0.5  # two trip counts: many combinations
    slots = random.choice((1, 2) if simple else (1, 2, 2, 3, 3, 4, 5))
    by = 1 if simple else random.choice((1, 1, 1, 2, 3))
    index = (
        BinOp("%", Name("c"), Const(slots)) if by == 1 else BinOp("%", BinOp("/", Name("c"), Const(by)), Const(slots))
    )
    parameters = [Parameter("N", random.randint(0, 1))]
    trips: list[IntExpr] = [N]
    if shape < 0.2:
        parameters.append(Parameter("M"))
        trips = [N, Name("M")]
    elif shape < 0.3:
        trips = [Const(random.randint(1, 2)), BinOp("-", N, Const(random.randint(1, 2)))]
    elif shape < 0.4:
        trips = [BinOp("max", BinOp("-", N, Const(random.randint(1, 3))), Const(0))]
    elif shape < 0.5:
        parameters.append(Parameter("M"))
        trips = [BinOp("-", N, Name("M"))]
    lag = random.choice((0, 0, 1, min(2, slots - 1), slots - 1))
    guarded = random.random() < 0.5
    limit = slots if random.random() < 0.8 else random.randint(0, slots + 1)
    take: Statement = Wait("empty", index)
    if guarded:
        take = If(BinOp(">=", Name("c"), Const(limit * by)), (take,))
    asynchronous = random.random() < 0.7
    fill = (
        Access("tile", "w", index, ends="event", event="full", event_slot=index, proxy="async")
        if asynchronous
        else Access("tile", "w", index)
    )
    produce: list[Statement] = [take, fill, Trigger("full", index), Step("c", by)]
    takers = random.choice((1, 1, 2))
    uses: list[list[Statement]] = []
    behind = BinOp("%", BinOp("+", BinOp("/", Name("c"), Const(by)), Const((-lag) % slots)), Const(slots))
    for _ in range(takers):
        use: list[Statement] = [Wait("full", index), Access("tile", "r", index, ends="group", proxy="async")]
        release: Statement = Trigger("empty", behind)
        if lag:
            release = If(BinOp(">=", Name("c"), Const(lag * by)), (release,))
        use += [Commit(), Drain(lag if random.random() < 0.8 else random.randint(0, 2)), release, Step("c", by)]
        uses.append(use)
    for number in range(random.randint(1, 3)):
        name = f"s{number}"
        pair = (Access(name, "w"), Access(name, "r"))
        body = random.choice((produce, *uses))
        chosen: tuple[Statement, ...] = pair if random.random() < 0.6 else (random.choice(pair),)
        body.insert(random.randint(0, len(body) - 1), If(_odd(random, by, 6 if len(parameters) == 1 else 2), chosen))
    names = ["p", *(f"c{i}" for i in range(takers))]
    bodies: list[list[Statement]] = []
    for position, body in enumerate((produce, *uses)):
        whole: list[Statement] = []
        if position and not guarded:
            whole += [Trigger("empty", Const(s)) for s in range(slots)]
        whole += [Loop("i", trip, tuple(body)) for trip in trips]
        whole += [Drain(0)] if position else []
        if random.random() < 0.5:
            name = random.choice(("out", "s0"))
            whole += [Access(name, "w"), Access(name, "r")]
        bodies.append(whole)
    buffers = [
        Buffer("tile", 64 * slots, 16, slots, SHAPE),
        Buffer("out", 64),
        *(Buffer(f"s{i}", 32) for i in range(3)),
    ]
    if random.random() < 0.15:
        _damage(random, random.choice(bodies))
    roles = tuple(Role(n, tuple(b), _kind(random)) for n, b in zip(names, bodies, strict=True))
    events = (Event("full", slots), Event("empty", slots, takers))
    return Program("counters", tuple(buffers), events, roles, tuple(parameters))


def _odd(random: Random, by: int, most: int) -> IntExpr:
    index, far = random.choice((Name("c"), Name("i"))), random.randint(0, most)
    return random.choice(
        (
            BinOp("==", index, Const(far * by)),
            BinOp(">=", index, Const(far)),
            BinOp("<", index, Const(far)),
            BinOp("==", BinOp("%", index, Const(random.choice((2, 2, 3)))), Const(random.randint(0, 2))),
            BinOp("==", BinOp("%", BinOp("/", index, Const(random.choice((2, 3)))), Const(2)), Const(1)),
            BinOp("==", BinOp("+", Name("i"), Const(random.randint(1, 4))), N),
            BinOp(">", BinOp("*", Name("i"), Const(2)), N),
            Const(1),
        )
    )


FAMILIES = {
    "straight": straight,
    "looped": looped,
    "nested": nested,
    "pipeline": pipeline,
    "persistent": persistent,
    "counters": counters,
}
# The last family takes the engine ten times as long as the others.
_DRAWN = [family for family in FAMILIES for _ in range(1 if family == "counters" else 3)]
