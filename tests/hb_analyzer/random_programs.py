"""Random programs: rings between roles, prologues, epilogues, barriers, matrix groups, and damage to all of these."""

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
    Role,
    Statement,
    Step,
    Trigger,
    Wait,
)
from tests.hb_analyzer.programs import ring

SHAPE = (4,)
REGIONS = ((), (), (), ((0, 2),), ((2, 4),), ((1, 3),), None)


class _Parts:
    """A role under construction."""

    def __init__(self) -> None:
        self.before: list[Statement] = []
        self.body: list[Statement] = []
        self.after: list[Statement] = []


def single_loop_program(random: Random, damage: bool = True, minimum: int = 1) -> Program:
    """Up to four roles around one loop of N iterations."""
    count = random.randint(1, 4)
    roles = [_Parts() for _ in range(count)]
    names = [f"r{i}" for i in range(count)]
    buffers: list[Buffer] = []
    events: list[Event] = []
    for number in range(random.randint(1, 3)):
        _channel(random, number, roles, buffers, events)
    for number in range(random.randint(0, 2)):
        _scratch(random, number, roles, buffers)
    if random.random() < 0.4:
        _once(random, roles, events)
    if count > 1 and random.random() < 0.5:
        _barrier(random, names, roles)
    if damage:
        for _ in range(random.choice((0, 0, 1, 1, 2))):
            _damage(random, roles)
    built = tuple(
        Role(name, (*parts.before, Loop("i", Name("N"), tuple(parts.body)), *parts.after))
        for name, parts in zip(names, roles, strict=True)
    )
    return Program("random", tuple(buffers), tuple(events), built, (Parameter("N", minimum),))


def _channel(random: Random, number: int, roles: list[_Parts], buffers: list[Buffer], events: list[Event]) -> None:
    """A ring buffer that one role fills and others read, with its full and empty events."""
    slots = random.choice((1, 1, 2, 2, 3, 4))
    producer = random.randrange(len(roles))
    consumers = [r for r in range(len(roles)) if r != producer and random.random() < 0.7] or [producer]
    if producer in consumers:
        consumers = [producer]
    full, empty = f"full{number}", f"empty{number}"
    slot = ring("i", slots, random.choice((0, 0, 0, 1)))
    events.append(Event(full, slots, 1))
    events.append(Event(empty, slots, len(consumers)))
    mine = []
    for part in range(random.randint(1, 2)):
        name = f"b{number}{part}"
        buffers.append(Buffer(name, 64 * slots, 16, slots, SHAPE))
        mine.append(name)
    fill: list[Statement] = [Wait(empty, slot)]
    for name in mine:
        region = random.choice(REGIONS)
        if random.random() < 0.6:
            fill.append(Access(name, "w", slot, region, "event", full, slot, "async"))
        else:
            fill.append(Access(name, "w", slot, region, fenced=random.random() < 0.8))
    fill.append(Trigger(full, slot))
    roles[producer].body += fill
    for c in consumers:
        use: list[Statement] = [Wait(full, slot)]
        grouped = random.random() < 0.5
        for name in mine:
            mode = "w" if random.random() < 0.1 else "r"
            region = random.choice(REGIONS)
            if grouped:
                use.append(Access(name, mode, slot, region, "group", proxy="async"))
            else:
                use.append(Access(name, mode, slot, region))
        if grouped:
            use += [Commit(), Drain(random.choice((0, 0, 0, 1)))]
        release = slot if random.random() < 0.9 else ring("i", slots, random.randrange(slots))
        use.append(Trigger(empty, release))
        roles[c].body += use
        advance = slots if random.random() < 0.9 else random.randint(0, slots)
        roles[c].before += [Trigger(empty, Const(s)) for s in range(advance)]
        if grouped and random.random() < 0.7:
            roles[c].after.append(Drain(0))


def _scratch(random: Random, number: int, roles: list[_Parts], buffers: list[Buffer]) -> None:
    """A buffer of one role (or more), used anywhere."""
    name = f"s{number}"
    buffers.append(Buffer(name, 32, 16, 1, SHAPE))
    for _ in range(random.randint(1, 4)):
        parts = random.choice(roles) if random.random() < 0.3 else roles[number % len(roles)]
        place = random.choice((parts.before, parts.body, parts.after, parts.after))
        access = Access(name, random.choice("rw"), region=random.choice(REGIONS))
        place.insert(random.randint(0, len(place)), access)


def _once(random: Random, roles: list[_Parts], events: list[Event]) -> None:
    """An event set and waited for once, before or after the loop."""
    giver, taker = random.randrange(len(roles)), random.randrange(len(roles))
    events.append(Event("once"))
    parts = "before" if random.random() < 0.5 else "after"
    late = parts if random.random() < 0.6 else "after"
    give, take = getattr(roles[giver], parts), getattr(roles[taker], late)
    give.insert(random.randint(0, len(give)), Trigger("once"))
    take.insert(random.randint(0, len(take)), Wait("once"))


def _barrier(random: Random, names: list[str], roles: list[_Parts]) -> None:
    members = tuple(random.sample(range(len(names)), random.randint(2, len(names))))
    part = random.choice(("before", "body", "after", "after"))
    for member in members:
        place = getattr(roles[member], part)
        place.insert(random.choice((0, len(place), random.randint(0, len(place)))), _meeting(names, members))


def _meeting(names: list[str], members: tuple[int, ...]) -> Barrier:
    return Barrier("meet", tuple(names[m] for m in members))


def _damage(random: Random, roles: list[_Parts]) -> None:
    """Removes, moves, doubles or shifts one statement."""
    parts = random.choice(roles)
    place = random.choice([p for p in (parts.before, parts.body, parts.body, parts.after) if p] or [[]])
    if not place:
        return
    index = random.randrange(len(place))
    kind = random.random()
    if kind < 0.4:
        del place[index]
    elif kind < 0.7:
        statement = place.pop(index)
        place.insert(random.randint(0, len(place)), statement)
    elif kind < 0.85:
        statement = place[index]
        if isinstance(statement, Drain):
            place[index] = replace(statement, pending=statement.pending + 1)
        elif isinstance(statement, Access):
            place[index] = replace(statement, mode="w" if statement.mode == "r" else "r", ends="here")
    else:
        statement = place[index]
        if isinstance(statement, Access) and statement.ends == "event":
            place[index] = replace(statement, ends="never")
        elif isinstance(statement, Access):
            place.insert(random.randint(0, len(place)), statement)


def synchronisations(program: Program) -> list[tuple[int, int, int]]:
    """(role, segment, index) of every wait, drain and barrier of a single-loop program: what may be removed."""
    found = []
    for r, role in enumerate(program.roles):
        for segment, part in enumerate(_split(role.body)):
            found += [(r, segment, i) for i, op in enumerate(part) if isinstance(op, (Wait, Drain))]
    return found


def without(program: Program, where: tuple[int, int, int]) -> Program:
    """``program`` without the statement at (role, segment, index)."""
    role, segment, index = where
    parts = [list(part) for part in _split(program.roles[role].body)]
    del parts[segment][index]
    body = (*parts[0], Loop("i", Name("N"), tuple(parts[1])), *parts[2])
    roles = list(program.roles)
    roles[role] = replace(roles[role], body=body)
    return replace(program, roles=tuple(roles))


def _split(body: tuple[Statement, ...]) -> tuple[tuple[Statement, ...], ...]:
    position = next(i for i, statement in enumerate(body) if isinstance(statement, Loop))
    loop = body[position]
    assert isinstance(loop, Loop)
    return body[:position], loop.body, body[position + 1 :]


def nested_program(random: Random, damage: bool = True) -> Program:
    """A persistent kernel: a tile loop of T around a k loop of N, rings running on across tiles, staged epilogues."""
    consumers = random.randint(1, 2)
    stages = random.choice((1, 2, 2, 3))
    slot = ring("it", stages)
    names = ["p", *(f"c{i}" for i in range(consumers))]
    buffers = [Buffer("tile", 64 * stages, 16, stages, SHAPE), Buffer("out", 64, 16, 1, SHAPE)]
    events = [Event("full", stages), Event("empty", stages, consumers)]
    guard = random.choice(("none", "first", "credit", "credit"))
    own_query = random.random() < 0.4
    producer: list[Statement] = []
    inner: list[Statement] = [
        Wait("empty", slot),
        Access("tile", "w", slot, ends="event", event="full", event_slot=slot, proxy="async"),
        Trigger("full", slot),
        Step("it"),
    ]
    if guard != "none":
        events.append(Event("stored", 1, consumers))
        wait: Statement = Wait("stored")
        producer.append(wait if guard == "credit" else If(BinOp(">", Name("t"), Const(0)), (wait,)))
    if own_query:
        buffers.append(Buffer("q", 32))
        events += [Event("q_full"), Event("q_empty", 1, consumers)]
        producer += [
            Wait("q_empty"),
            Access("q", "w", ends="event", event="q_full", proxy="async"),
            Trigger("q_full"),
        ]
    producer.append(Loop("k", Name("N"), tuple(inner)))
    roles: list[tuple[list[Statement], list[Statement], list[Statement]]] = [([], producer, inner)]
    for c in range(consumers):
        before: list[Statement] = [Trigger("empty", Const(s)) for s in range(stages)]
        if guard == "credit":
            before.append(Trigger("stored"))
        use: list[Statement] = [Wait("full", slot), Access("tile", "r", slot, ends="group", proxy="async")]
        tile: list[Statement] = []
        if own_query:
            before.append(Trigger("q_empty"))
            tile.append(Wait("q_full"))
            use.append(Access("q", "r", ends="group", proxy="async"))
        use += [Commit(), Drain(random.choice((0, 0, 0, 1))), Trigger("empty", slot), Step("it")]
        if random.random() < 0.15:
            # look-ahead: release the last stage only after the loop
            use[-2] = If(BinOp("<", BinOp("+", Name("k"), Const(1)), Name("N")), (Trigger("empty", slot),))
        tile += [Loop("k", Name("N"), tuple(use)), Drain(0)]
        if own_query:
            tile.append(Trigger("q_empty"))
        if consumers > 1 and random.random() < 0.8:
            tile.append(_meeting(names, tuple(range(1, consumers + 1))))
        rows = ((2 * c, 2 * c + 2),) if consumers > 1 else ()
        tile += [Access("out", "w", region=rows), Access("out", "r", region=rows, proxy="async")]
        if guard != "none":
            tile.insert(len(tile) - (random.random() < 0.1), Trigger("stored"))
        roles.append((before, tile, use))
    if damage and random.random() < 0.4:
        before, tile, _ = random.choice(roles)
        place = random.choice((before, tile, tile)) or tile
        index = random.randrange(len(place))
        if random.random() < 0.5:
            del place[index]
        else:
            place.insert(random.randint(0, len(place) - 1), place.pop(index))
    built = tuple(
        Role(name, (*before, Loop("t", Name("T"), tuple(tile))))
        for name, (before, tile, _) in zip(names, roles, strict=True)
    )
    tiles = random.choice((None, None, 1, 2))
    return Program(
        "nested", tuple(buffers), tuple(events), built, (Parameter("T", 0, tiles), Parameter("N", random.randint(0, 1)))
    )


def irregular_program(random: Random) -> Program:
    """One producer and one consumer with what puts a loop outside the distance form: rings guarded by conditions
    instead of advance releases, peeled iterations, look-ahead, two loops in a row."""
    slots = random.choice((1, 2, 2, 3, 4))
    running = ring("c", slots)
    count = Name("N")
    guarded = random.random() < 0.5
    take: Statement = Wait("empty", running)
    if guarded:
        lag = slots if random.random() < 0.8 else random.randint(0, slots + 1)
        take = If(BinOp(">=", Name("c"), Const(lag)), (take,))
    asynchronous = random.random() < 0.7
    fill = (
        Access("tile", "w", running, ends="event", event="full", event_slot=running, proxy="async")
        if asynchronous
        else Access("tile", "w", running)
    )
    produce: list[Statement] = [take, fill, Trigger("full", running), Step("c")]
    use: list[Statement] = [Wait("full", running)]
    lookahead = random.random() < 0.4
    pending = random.choice((0, 0, 1, 2)) if lookahead else 0
    use += [Access("tile", "r", running, ends="group", proxy="async"), Commit(), Drain(pending)]
    late = ring("c", slots, (-pending) % slots)
    release: Statement = Trigger("empty", late)
    if pending:
        release = If(BinOp(">=", Name("c"), Const(pending)), (release,))
    use += [release, Step("c")]
    scratch = Access("s", random.choice("rw"), region=random.choice(REGIONS))
    if random.random() < 0.5:
        condition = random.choice(
            (
                BinOp("==", Name("i"), Const(random.randint(0, 3))),
                BinOp("<", BinOp("+", Name("i"), Const(random.randint(1, 3))), count),
                BinOp("==", BinOp("%", Name("i"), Const(random.randint(2, 3))), Const(0)),
                BinOp("==", BinOp("+", Name("i"), Const(1)), count),
            )
        )
        random.choice((produce, use)).insert(random.randint(0, 4), If(condition, (scratch,)))
    peeled = random.random() < 0.3
    twice = random.random() < 0.2

    def around(body: list[Statement], split: bool) -> list[Statement]:
        loop = Loop("i", count, tuple(body))
        if split:
            return [Loop("i", Const(1), tuple(body)), Loop("i", BinOp("-", count, Const(1)), tuple(body))]
        return [loop, loop] if twice else [loop]

    producer = around(produce, peeled and random.random() < 0.5)
    consumer = around(use, peeled)
    if not guarded:
        consumer[:0] = [Trigger("empty", Const(s)) for s in range(slots)]
    consumer.append(Drain(0))
    consumer += [Access("out", "w"), Access("out", "r", proxy="async"), Access("s", "r")]
    if random.random() < 0.4:
        producer.insert(random.randint(0, len(producer)), Access("s", "w", region=random.choice(REGIONS)))
    if random.random() < 0.3:
        place = random.choice((producer, consumer))
        del place[random.randrange(len(place))]
    buffers = (Buffer("tile", 64 * slots, 16, slots, SHAPE), Buffer("out", 64), Buffer("s", 32, 16, 1, SHAPE))
    events = (Event("full", slots), Event("empty", slots))
    roles = (Role("p", tuple(producer)), Role("c", tuple(consumer)))
    return Program("irregular", buffers, events, roles, (Parameter("N", 1),))


def pipelined_program(random: Random) -> Program:
    """A producer of N iterations and consumers of N − 1, which use some rings one iteration ahead (first use before
    the loop) and the others in step (last use after the loop), as software-pipelined attention does."""
    rings = random.randint(1, 3)
    consumers = random.randint(1, 2)
    buffers: list[Buffer] = [Buffer("out", 64, 16, 1, SHAPE), Buffer("s", 32, 16, 1, SHAPE)]
    events: list[Event] = []
    names = ["p", *(f"c{i}" for i in range(consumers))]
    roles = [_Parts() for _ in names]
    last = BinOp("-", Name("N"), Const(1))
    for number in range(rings):
        slots = random.choice((1, 2, 2, 3))
        name, full, empty = f"b{number}", f"full{number}", f"empty{number}"
        buffers.append(Buffer(name, 64 * slots, 16, slots, SHAPE))
        events += [Event(full, slots), Event(empty, slots, consumers)]
        slot = ring("i", slots)
        if random.random() < 0.7:
            fill = Access(name, "w", slot, ends="event", event=full, event_slot=slot, proxy="async")
        else:
            fill = Access(name, "w", slot, random.choice(REGIONS))
        roles[0].body += [Wait(empty, slot), fill, Trigger(full, slot)]
        ahead = random.random() < 0.5
        for parts in roles[1:]:
            parts.before[:0] = [Trigger(empty, Const(s)) for s in range(slots)]
            region = random.choice(REGIONS)

            def use(
                slot: IntExpr,
                name: str = name,
                full: str = full,
                empty: str = empty,
                region: tuple[tuple[int, int], ...] | None = region,
            ) -> list[Statement]:
                pending = random.choice((0, 0, 0, 1))
                read = Access(name, "r", slot, region, "group", proxy="async")
                return [Wait(full, slot), read, Commit(), Drain(pending), Trigger(empty, slot)]

            if ahead:
                parts.before += use(Const(0))
                parts.body += use(ring("i", slots, 1))
            else:
                parts.body += use(slot)
                parts.after += use(BinOp("%", last, Const(slots)))
    for parts in roles[1:]:
        parts.after.append(Drain(0))
    if consumers > 1 and random.random() < 0.6:
        for parts in roles[1:]:
            parts.after.append(_meeting(names, tuple(range(1, consumers + 1))))
    for parts in roles[1:]:
        parts.after += [Access("out", "w"), Access("out", "r", proxy="async")]
    for _ in range(random.randint(0, 4)):
        parts = random.choice(roles)
        target = random.choice(buffers)
        segment = random.randrange(3)
        shift = random.randrange(target.slots)
        index: IntExpr = Const(shift)
        if segment and target.slots > 1:
            index = ring("i" if segment == 1 else "N", target.slots, shift)
        place = (parts.before, parts.body, parts.after)[segment]
        extra = Access(target.name, random.choice("rw"), index, random.choice(REGIONS))
        place.insert(random.randint(0, len(place)), extra)
    if random.random() < 0.5:
        _damage(random, roles)
    trips: list[IntExpr] = [Name("N"), *(last for _ in range(consumers))]
    built = tuple(
        Role(name, (*parts.before, Loop("i", trip, tuple(parts.body)), *parts.after))
        for name, trip, parts in zip(names, trips, roles, strict=True)
    )
    return Program("pipelined", tuple(buffers), tuple(events), built, (Parameter("N", 2),))


def ordered_program(random: Random) -> Program:
    """One role, or two that meet often: nearly everything is ordered, so that clobbers decide. Buffers are used by
    constant and by running slots, before, in and after the loop."""
    count = random.choice((1, 1, 1, 2))
    names = tuple(f"r{i}" for i in range(count))
    buffers = tuple(Buffer(f"b{i}", 96, 16, random.choice((1, 1, 2, 3)), SHAPE) for i in range(random.randint(2, 3)))
    running = {buffer.name: buffer.slots > 1 and random.random() < 0.8 for buffer in buffers}
    events: tuple[Event, ...] = ()
    roles = [_Parts() for _ in names]
    for segment in range(3):
        for _ in range(random.randint(0 if segment != 1 else 2, 6)):
            parts = random.choice(roles)
            buffer = random.choice(buffers)
            shift = random.randrange(buffer.slots)
            slot: IntExpr = Const(shift)
            if segment and running[buffer.name]:
                slot = ring("i" if segment == 1 else "N", buffer.slots, shift)
            place = (parts.before, parts.body, parts.after)[segment]
            place.append(Access(buffer.name, random.choice("rrw"), slot, random.choice(REGIONS)))
    if count == 2:
        for segment in range(3):
            for _ in range(random.randint(1, 3)):
                for parts in roles:
                    place = (parts.before, parts.body, parts.after)[segment]
                    place.insert(random.randint(0, len(place)), Barrier("meet", names))
        if random.random() < 0.5:
            slots = random.choice((2, 3))
            events = (Event("e", slots),)
            giver, taker = roles if random.random() < 0.5 else roles[::-1]
            giver.before += [Trigger("e", Const(s)) for s in range(slots)]
            giver.body.append(Trigger("e", ring("i", slots)))
            taker.body.insert(0, Wait("e", ring("i", slots)))
            for u in range(random.choice((0, 0, slots))):
                taker.after.append(Wait("e", ring("N", slots, u)))
    trips: list[IntExpr] = [Name("N") for _ in names]
    least = 1
    if count == 2 and not events and random.random() < 0.3:
        # The other role's barriers would not match: peel an iteration without any.
        roles[1].body = [s for s in roles[1].body if not isinstance(s, Barrier)]
        roles[0].body = [s for s in roles[0].body if not isinstance(s, Barrier)]
        trips[1] = BinOp("-", Name("N"), Const(1))
        least = 2
    built = tuple(
        Role(name, (*parts.before, Loop("i", trip, tuple(parts.body)), *parts.after))
        for name, trip, parts in zip(names, trips, roles, strict=True)
    )
    return Program("ordered", buffers, events, built, (Parameter("N", least),))


def periodic_program(random: Random) -> Program:
    """One role, or two in lockstep, whose accesses and running counters wait for remainders of counters: what happens
    first happens late."""
    count, period = random.choice((1, 1, 2)), random.randint(2, 5)
    buffers = tuple(Buffer(f"b{i}", 96, 16, random.choice((1, 1, 2, 3)), SHAPE) for i in range(2))
    counters = random.choice((("i",), ("i", "c")))

    def index(modulus: int, counters: tuple[str, ...] = counters) -> IntExpr:
        return ring(random.choice(counters), modulus, random.randint(0, 6))

    bodies: list[list[Statement]] = [[] for _ in range(count)]
    for _ in range(random.randint(3, 6)):
        buffer = random.choice(buffers)
        access = Access(buffer.name, random.choice("rw"), index(buffer.slots), random.choice(REGIONS))
        random.choice(bodies).append(If(BinOp("==", index(period), Const(0)), (access,)))
    for body in bodies:
        step: Statement = Step("c", random.choice((1, 1, 2)))
        if random.random() < 0.5:
            step = If(BinOp("==", index(period, ("i",)), Const(0)), (step,))
        body.insert(random.randint(0, len(body)), step)
    if count == 2:
        for body, own, other in ((bodies[0], "e", "f"), (bodies[1], "f", "e")):
            at = random.randint(0, len(body))
            body[at:at] = [Trigger(own)]
            at = random.randint(at + 1, len(body))
            body[at:at] = [Wait(other)]
    start = (Step("c", random.choice((0, 0, 5, 12))),)
    roles = tuple(Role(f"r{i}", (*start, Loop("i", Name("N"), tuple(body))), "thread") for i, body in enumerate(bodies))
    return Program("periodic", buffers, (Event("e"), Event("f")), roles, (Parameter("N"),))
