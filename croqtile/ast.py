"""Syntax tree of one ``__co__`` function, as written: names unresolved, nothing evaluated. Every node has a span."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from croqtile.ir import Span


@dataclass(frozen=True)
class Ident:
    """A name where it is introduced, or one that is not an expression (a type, an event, a function)."""

    span: Span
    name: str


# --------------------------------------------------------------------------------------------------------------
# Expressions (scalars and views)


@dataclass(frozen=True)
class Name:
    span: Span
    name: str


@dataclass(frozen=True)
class Integer:
    span: Span
    value: int


@dataclass(frozen=True)
class Floating:
    span: Span
    text: str


@dataclass(frozen=True)
class Binary:
    span: Span
    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Prefix:
    """``-e``, ``!e`` or ``+e``."""

    span: Span
    op: str
    operand: Expr


@dataclass(frozen=True)
class UpperBound:
    """``#p``"""

    span: Span
    name: Ident


@dataclass(frozen=True)
class Join:
    """``a # b``"""

    span: Span
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Select:
    span: Span
    condition: Expr
    yes: Expr
    no: Expr


@dataclass(frozen=True)
class Index:
    """``buffers[s]``"""

    span: Span
    base: Expr
    index: Expr


@dataclass(frozen=True)
class Method:
    """``base.name(arguments)``: the steps of a view, or ``.at`` of a fragment or tensor."""

    span: Span
    base: Expr
    name: Ident
    arguments: tuple[Expr, ...]


@dataclass(frozen=True)
class FunctionCall:
    span: Span
    function: Ident
    arguments: tuple[Expr, ...]


@dataclass(frozen=True)
class Convert:
    """``__to<T>(e)``"""

    span: Span
    target: Ident
    operand: Expr


Expr = Union[Name, Integer, Floating, Binary, Prefix, UpperBound, Join, Select, Index, Method, FunctionCall, Convert]


# --------------------------------------------------------------------------------------------------------------
# Statements. The span of one with a body covers its keyword only.


@dataclass(frozen=True)
class Bound:
    """``{i, j} by [E1, E2] : level``; the level is spelled as written ("block", "group-4", …)."""

    span: Span
    counters: tuple[Ident, ...]
    extents: tuple[Expr, ...]
    level: Ident


@dataclass(frozen=True)
class Parallel:
    span: Span
    asynchronous: bool
    bounds: tuple[Bound, ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class InThreads:
    span: Span
    asynchronous: bool
    condition: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class ForEach:
    span: Span
    counters: tuple[Ident, ...]
    extents: tuple[Expr, ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class If:
    span: Span
    condition: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]


@dataclass(frozen=True)
class Block:
    """A bare ``{ … }``: a scope."""

    span: Span
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class LaunchBounds:
    span: Span
    blocks: Expr


@dataclass(frozen=True)
class Array:
    """``name`` or ``name[count]`` in a declaration."""

    span: Span
    name: Ident
    count: Expr | None


@dataclass(frozen=True)
class SharedEvents:
    span: Span
    items: tuple[Array, ...]


@dataclass(frozen=True)
class SharedBuffers:
    span: Span
    elem: Ident
    shape: tuple[Expr, ...]
    items: tuple[Array, ...]


@dataclass(frozen=True)
class Initialised:
    """``name`` or ``name {value}`` in a fragment declaration."""

    span: Span
    name: Ident
    value: Expr | None


@dataclass(frozen=True)
class Fragments:
    span: Span
    elem: Ident
    shape: tuple[Expr, ...]
    items: tuple[Initialised, ...]


@dataclass(frozen=True)
class Swizzle:
    """``.swiz<bytes>``"""

    span: Span
    bytes: Expr


@dataclass(frozen=True)
class MmaFill:
    span: Span
    elem: Ident
    value: Expr


@dataclass(frozen=True)
class MmaLoad:
    span: Span
    swizzle: Swizzle | None
    view: Expr


@dataclass(frozen=True)
class Assign:
    """``name = value;``"""

    span: Span
    name: Ident
    value: Expr | MmaFill | MmaLoad


@dataclass(frozen=True)
class Declare:
    """``int name = value;``"""

    span: Span
    type: Ident
    name: Ident
    value: Expr


@dataclass(frozen=True)
class EventRef:
    """``name`` or ``name[index]``"""

    span: Span
    name: Ident
    index: Expr | None


@dataclass(frozen=True)
class Wait:
    span: Span
    events: tuple[EventRef, ...]


@dataclass(frozen=True)
class Trigger:
    span: Span
    events: tuple[EventRef, ...]
    cluster: bool


@dataclass(frozen=True)
class Copy:
    span: Span
    event: EventRef | None
    swizzle: Swizzle | None
    multicast: bool
    source: Expr
    target: Expr


@dataclass(frozen=True)
class Mma:
    """``mma.row.<b_layout> accumulator, a, b;``"""

    span: Span
    b_layout: str
    accumulator: Expr
    a: Expr
    b: Expr


@dataclass(frozen=True)
class MmaCommit:
    span: Span


@dataclass(frozen=True)
class MmaWait:
    span: Span
    pending: Expr


@dataclass(frozen=True)
class MmaStore:
    span: Span
    fragment: Expr
    target: Expr


@dataclass(frozen=True)
class FragApply:
    span: Span
    fragment: Expr
    indices: tuple[Ident, ...]
    value: Expr


@dataclass(frozen=True)
class FragCopy:
    span: Span
    target: Expr
    source: Expr


@dataclass(frozen=True)
class FragReduce:
    span: Span
    op: str
    source: Expr
    target: Expr
    axis: Expr


@dataclass(frozen=True)
class SyncWg:
    span: Span
    members: tuple[Expr, ...]


@dataclass(frozen=True)
class SyncShared:
    span: Span


@dataclass(frozen=True)
class Call:
    span: Span
    function: Ident
    arguments: tuple[Expr, ...]


Stmt = Union[
    Parallel,
    InThreads,
    ForEach,
    If,
    Block,
    LaunchBounds,
    SharedEvents,
    SharedBuffers,
    Fragments,
    Assign,
    Declare,
    Wait,
    Trigger,
    Copy,
    Mma,
    MmaCommit,
    MmaWait,
    MmaStore,
    FragApply,
    FragCopy,
    FragReduce,
    SyncWg,
    SyncShared,
    Call,
]


# --------------------------------------------------------------------------------------------------------------
# Functions


@dataclass(frozen=True)
class Parameter:
    """``global f16 [M, K] lhs``; ``shape`` is None for a scalar parameter (which the language does not have)."""

    span: Span
    elem: Ident
    shape: tuple[Expr, ...] | None
    name: Ident


@dataclass(frozen=True)
class Function:
    span: Span
    result: Ident
    name: Ident
    parameters: tuple[Parameter, ...]
    body: tuple[Stmt, ...]
