"""Who goes next. A schedule is a function from (machine, enabled processes) to one of them, drawn at random once.

* *uniform*: everybody alike; *paced*: some threads run fast, some slowly, copies land late or early;
* *priorities*: strict priorities with a few random changes (probabilistic concurrency testing);
* *delay one role*: it moves only when nothing else can; *run ahead*: it moves whenever it can;
* *delay one access*: everything needed for it to begin goes first; then it stays under way as long as anything else
  can move. An unawaited copy, a slow warp, a store that takes its time are all that.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from hb_analyzer.simulator.code import BEGIN_END, ISSUE
from hb_analyzer.simulator.machine import Machine

Schedule = Callable[[Machine, list[int]], int]


def draw(machine: Machine, random: Random) -> Schedule:
    """One schedule of a random sort."""
    sort = random.random()
    if sort < 0.1:
        return lambda machine, enabled: random.choice(enabled)
    if sort < 0.3:
        return paced(machine, random)
    if sort < 0.5:
        return priorities(machine, random)
    if sort < 0.6:
        return favour(random, random.randrange(len(machine.at)), ahead=random.random() < 0.5)
    return delay_access(machine, random)


def paced(machine: Machine, random: Random) -> Schedule:
    pace = [10 ** random.uniform(-1.5, 1.5) for _ in machine.at]
    landing = 10 ** random.uniform(-2, 1)
    threads = len(machine.at)

    def choose(machine: Machine, enabled: list[int]) -> int:
        if len(enabled) == 1:
            return enabled[0]
        return random.choices(enabled, [pace[p] if p < threads else landing for p in enabled])[0]

    return choose


def priorities(machine: Machine, random: Random) -> Schedule:
    ranks: dict[int, float] = {}
    length = sum(machine.lengths) * 2 + 1
    changes = {random.randrange(length) for _ in range(random.randint(0, 4))}
    copies_first = random.choice((0.0, 0.0, 1.0, -1.0))
    threads = len(machine.at)

    def choose(machine: Machine, enabled: list[int]) -> int:
        for process in enabled:
            if process not in ranks:
                ranks[process] = random.random() + (copies_first if process >= threads else 0)
        best = max(enabled, key=ranks.__getitem__)
        if machine.steps in changes:
            ranks[best] = -2 - machine.steps
            best = max(enabled, key=ranks.__getitem__)
        return best

    return choose


def favour(random: Random, thread: int, ahead: bool) -> Schedule:
    """One thread before all others, or after them."""

    def choose(machine: Machine, enabled: list[int]) -> int:
        if ahead and thread in enabled:
            return thread
        others = [process for process in enabled if process != thread]
        return random.choice(others) if others else thread

    return choose


def delay_access(machine: Machine, random: Random) -> Schedule:
    """Brings one access, drawn at random, to its beginning, and then lets everything else run ahead of its end."""
    accesses = [i for i in machine.code.instructions if i.kind in (BEGIN_END, ISSUE)]
    if not accesses:
        return lambda machine, enabled: random.choice(enabled)
    target = random.choice(accesses)
    thread, identity, threads = target.thread, target.identity, len(machine.at)
    lazy = random.random() < 0.7  # on the way there, copies land only if nothing else can move
    after: int | None = random.choice((None, *range(threads)))  # and who runs first after that

    def choose(machine: Machine, enabled: list[int]) -> int:
        if len(enabled) == 1:
            return enabled[0]
        before = machine.at[thread] < target.position or (
            machine.at[thread] == target.position and not machine.half[thread]
        )
        if before:
            if thread in enabled:
                return thread
            movers = [p for p in enabled if p < threads] if lazy else enabled
            return random.choice(movers or enabled)
        own = threads + identity if target.kind == ISSUE else thread
        if after is not None and after in enabled and after != own:
            return after
        others = [p for p in enabled if p != own]
        return random.choice(others)

    return choose
