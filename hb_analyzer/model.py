"""The concurrency model that every front end translates into.

A :class:`Program` is one CTA: role instances that run concurrently, the shared-memory buffers they access, and the
events (mbarriers) and barriers that order them. Each :class:`Role` is *one* instance: a warpgroup, or one thread; a
front end with three warpgroups that run the same code makes three roles. Roles are sequences of operations and
counted loops. Nothing here decides anything; see ``decide.py``.

Integer expressions (:class:`IntExpr`) stand for slots, trip counts and conditions. They range over loop counters,
running counters (:class:`Step`) and the parameters of the program (trip counts that only the launch knows).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Union

# --------------------------------------------------------------------------------------------------------------
# Integer expressions


@dataclass(frozen=True)
class Const:
    value: int

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Name:
    """A loop counter, a running counter or a parameter, by name."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class BinOp:
    """``op`` is one of ``+ - * / % < <= > >= == != && || cdiv max min``; ``/`` and ``%`` floor (operands ≥ 0)."""

    op: str
    left: IntExpr
    right: IntExpr

    def __str__(self) -> str:
        if self.op in ("cdiv", "max", "min"):
            return f"{self.op}({self.left}, {self.right})"
        return f"({self.left} {self.op} {self.right})"


IntExpr = Union[Const, Name, BinOp]

OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "&&": lambda a, b: int(bool(a) and bool(b)),
    "||": lambda a, b: int(bool(a) or bool(b)),
    "cdiv": lambda a, b: -(-a // b),
    "max": max,
    "min": min,
}


def evaluate(expr: IntExpr, env: Mapping[str, int]) -> int:
    """The value of ``expr`` under ``env``. Raises KeyError for an unbound name, ZeroDivisionError for ``x / 0``."""
    if isinstance(expr, Const):
        return expr.value
    if isinstance(expr, Name):
        return env[expr.name]
    return OPERATORS[expr.op](evaluate(expr.left, env), evaluate(expr.right, env))


def names_in(expr: IntExpr) -> frozenset[str]:
    """Every name that ``expr`` mentions."""
    if isinstance(expr, Name):
        return frozenset((expr.name,))
    if isinstance(expr, BinOp):
        return names_in(expr.left) | names_in(expr.right)
    return frozenset()


ZERO = Const(0)

# --------------------------------------------------------------------------------------------------------------
# Memory and synchronisation objects


@dataclass(frozen=True)
class Buffer:
    """One block of shared memory: ``slots`` equal slots, ``size`` bytes in all (slot s starts at s·size/slots)."""

    name: str
    size: int
    align: int = 16
    slots: int = 1
    shape: tuple[int, ...] = ()  # of one slot; regions are boxes in it. () = one indivisible region
    description: str = ""
    barrier_storage: bool = False  # mbarriers live here: owned from init until an ordered inval, so it overlaps nothing


@dataclass(frozen=True)
class Event:
    """An mbarrier-like flag with ``slots`` slots; a setting needs ``arrivals`` triggers and the bytes bound to it."""

    name: str
    slots: int = 1
    arrivals: int = 1
    initial: int = 0  # settings already made when the roles start (published pattern format only)


# A region is a box inside one slot: (low, high) element bounds per dimension of Buffer.shape, or None where unknown.
# An unknown region covers nothing when written and needs everything when read (it overlaps every region).
Region = Union[tuple[tuple[int, int], ...], None]
WHOLE: Region = ()  # the whole slot, whatever its shape

# --------------------------------------------------------------------------------------------------------------
# Operations. `label` is for people; `where` is "file:line:column" of the source, if any.


@dataclass(frozen=True)
class Access:
    """A read or a write of one slot of a buffer.

    ``ends`` says when it is over:
      "here"   ordinary loads and stores, and copies out that wait for their own read completion;
      "event"  bulk copy in: when the setting of ``event[event_slot]`` that its bytes belong to happens;
      "group"  matrix instruction: at the Drain that covers the next Commit;
      "never"  not awaited.
    ``proxy`` is "generic" (threads) or "async" (copy engine, matrix unit). ``fenced`` is true on a generic write that a
    proxy fence follows before any synchronisation, and on accesses by which no fence is needed.
    """

    buffer: str
    mode: str  # "r" | "w"
    slot: IntExpr = ZERO
    region: Region = WHOLE
    ends: str = "here"
    event: str | None = None
    event_slot: IntExpr = ZERO
    proxy: str = "generic"
    fenced: bool = True
    label: str = ""
    where: str | None = None


@dataclass(frozen=True)
class Trigger:
    event: str
    slot: IntExpr = ZERO
    label: str = ""
    where: str | None = None


@dataclass(frozen=True)
class Wait:
    """The k-th execution for a slot, by this role, returns only after the k-th setting of that slot."""

    event: str
    slot: IntExpr = ZERO
    label: str = ""
    where: str | None = None


@dataclass(frozen=True)
class Commit:
    """Closes the group of matrix instructions issued since the last Commit of this role."""

    label: str = ""
    where: str | None = None


@dataclass(frozen=True)
class Drain:
    """Returns when at most ``pending`` of this role's committed groups are still running."""

    pending: int = 0
    label: str = ""
    where: str | None = None


@dataclass(frozen=True)
class Barrier:
    """One meeting of the roles in ``members`` (role names): the k-th Barrier ``name`` of each is the same meeting."""

    name: str
    members: tuple[str, ...]
    label: str = ""
    where: str | None = None


@dataclass(frozen=True)
class Step:
    """A running counter of this role: ``counter += by``. Counters start at 0 and persist across loops."""

    counter: str
    by: int = 1


@dataclass(frozen=True)
class Opaque:
    """Something that the model cannot express. Every buffer in ``buffers`` interferes with everything, and every event
    in ``events`` orders nothing; ``reason`` is printed."""

    reason: str
    buffers: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    where: str | None = None


@dataclass(frozen=True)
class Loop:
    """``for counter in range(max(0, trip))``. Counter names are unique along a nest. Loops of different roles with the
    same trip expression run the same number of times because their parameters are the same."""

    counter: str
    trip: IntExpr
    body: tuple[Statement, ...]
    where: str | None = None


@dataclass(frozen=True)
class If:
    """A branch on counters and parameters only (data-dependent branches are Opaque)."""

    condition: IntExpr
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()
    where: str | None = None


Operation = Union[Access, Trigger, Wait, Commit, Drain, Barrier, Step, Opaque]
Statement = Union[Operation, Loop, If]


@dataclass(frozen=True)
class Role:
    """One instance: a warpgroup or a thread."""

    name: str
    body: tuple[Statement, ...]
    kind: str = "warpgroup"  # "warpgroup" | "thread" | "cta"


@dataclass(frozen=True)
class Parameter:
    """A trip count (or another launch-time integer) that only the launch knows; at least ``minimum``.

    ``maximum`` is given where the launch bounds it (e.g. one tile per CTA: 1)."""

    name: str
    minimum: int = 0
    maximum: int | None = None


@dataclass(frozen=True)
class Program:
    """One CTA. Names of buffers, events, roles and parameters are unique."""

    name: str
    buffers: tuple[Buffer, ...]
    events: tuple[Event, ...]
    roles: tuple[Role, ...]
    parameters: tuple[Parameter, ...] = ()
    framework: str = ""
    arch: str = ""
    notes: str = ""
    assumptions: tuple[str, ...] = field(default=())
