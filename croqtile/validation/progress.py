"""The state of a thread that is followed through the analysed program."""

from __future__ import annotations

from typing import NamedTuple

from croqtile.validation.reference import Environment
from croqtile.validation.values import Shared

NO_BYTES = (0, 0, 0, 0)  # by warp


class Match(NamedTuple):
    """Where a thread is in the program, and what it has done since.

    ``inits``: initialised mbarriers; ``hidden``: fences that they still need. ``odd``: slots of events waited for
    an odd number of times. ``part``: bytes of the current step done so far (``warps``: stores, by warp);
    ``expected``, ``issued``: bytes of the current setting; ``early``: its arrival is made. ``met``: only arrivals
    and copies since the warps met; ``clean``: no matrix instruction or copy out since then; ``unfenced``,
    ``unmet``: stores that no fence, no meeting follows; ``dirty``: the bytes of tiles stored since the
    warps met. ``fenced``: before matrix instructions. ``out``: 1 copies
    out issued, 2 committed. ``last``, ``meetings``: the last operation of all threads, and how often they have met
    since.
    """

    position: int = 0
    env: Environment = ()
    started: bool = False
    hidden: frozenset[str] = frozenset()
    inits: frozenset[Shared] = frozenset()
    odd: frozenset[tuple[str, int]] = frozenset()
    part: int = 0
    expected: int = 0
    issued: int = 0
    early: bool = False
    met: bool = False
    clean: bool = False
    unfenced: bool = False
    unmet: bool = False
    dirty: int = 0
    fenced: bool = False
    out: int = 0
    last: tuple[int, Environment] = (-1, ())
    meetings: int = 0
    warps: tuple[int, ...] = NO_BYTES
