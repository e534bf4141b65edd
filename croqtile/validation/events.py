"""What one thread, or a warpgroup's threads together, do about shared memory: the alphabet of the comparison."""

from __future__ import annotations

from dataclasses import dataclass

from croqtile.validation.values import Shared

# Executed by one thread for its warpgroup; all others are executed by every thread.
LEADER_KINDS = frozenset(("init", "init fence", "arrive", "expect", "copy in", "copy out", "copy commit", "copy wait"))


class Refusal(Exception):
    """Something that is wrong, or that cannot be followed; ``line`` of the PTX module (0: none)."""

    def __init__(self, why: str, line: int = 0) -> None:
        super().__init__(why)
        self.line = line


@dataclass(frozen=True)
class Event:
    """One instruction's effect. ``kind``:

    init             the mbarrier at ``place`` gets ``number`` arrivals per phase
    init fence       inits become visible to the copy engine
    wait             returns once the phase of the mbarrier at ``place`` with parity ``number`` is complete
    arrive, expect   at the mbarrier at ``place``: ``arrivals`` arrivals, ``number`` more bytes expected
    copy in          to ``place``, through tensor map ``map``, counted by the mbarrier at ``barrier``
    copy out         from ``place``, through tensor map ``map``
    copy commit, copy wait    close the group of copies out; wait until at most ``number`` groups still read
    store, load      the bytes ``masks`` (by warp), from ``base``
    mma              a matrix instruction that reads the bytes ``masks[0]``, from ``base``
    mma fence, mma commit, mma wait    ``number``: groups that may still run
    sync             barrier ``number`` among ``arrivals`` threads (0: all of the CTA)
    proxy fence      earlier accesses of this thread before later ones of copy engine and matrix units
    """

    kind: str
    line: int
    place: Shared | None = None
    number: int = 0
    arrivals: int = 0
    barrier: Shared | None = None
    map: int = -1
    base: str = ""
    masks: tuple[int, ...] = ()
