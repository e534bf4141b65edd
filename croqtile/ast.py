"""Syntax tree of one ``__co__`` function, as written: names unresolved, nothing evaluated. Every node has a span."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Union

from croqtile.ir import Span

if TYPE_CHECKING:
    from dataclasses import dataclass as _node
else:
    from dataclasses import dataclass

    def _node(cls: type) -> Any:
        """A dataclass with as little generated code as possible: generating it is most of what importing this costs."""
        return dataclass(eq=False, repr=False)(cls)


@_node
class Ident:
    """A name where it is introduced, or one that is not an expression (a type, an event, a function)."""

    span: Span
    name: str


# --------------------------------------------------------------------------------------------------------------
# Expressions (scalars and views)


@_node
class Name:
    span: Span
    name: str


@_node
class Integer:
    span: Span
    value: int


@_node
class Floating:
    span: Span
    text: str


@_node
class Binary:
    span: Span
    op: str
    left: Expr
    right: Expr


@_node
class Prefix:
    """``-e``, ``!e`` or ``+e``."""

    span: Span
    op: str
    operand: Expr


@_node
class UpperBound:
    """``#p``"""

    span: Span
    name: Ident


@_node
class Join:
    """``a # b``"""

    span: Span
    left: Expr
    right: Expr


@_node
class Select:
    span: Span
    condition: Expr
    yes: Expr
    no: Expr


@_node
class Index:
    """``buffers[s]``"""

    span: Span
    base: Expr
    index: Expr


@_node
class Method:
    """``base.name(arguments)``: the steps of a view, or ``.at`` of a fragment or tensor."""

    span: Span
    base: Expr
    name: Ident
    arguments: tuple[Expr, ...]


@_node
class FunctionCall:
    span: Span
    function: Ident
    arguments: tuple[Expr, ...]


@_node
class Convert:
    """``__to<T>(e)``"""

    span: Span
    target: Ident
    operand: Expr


Expr = Union[Name, Integer, Floating, Binary, Prefix, UpperBound, Join, Select, Index, Method, FunctionCall, Convert]


# --------------------------------------------------------------------------------------------------------------
# Statements. The span of one with a body covers its keyword only.


@_node
class Bound:
    """``{i, j} by [E1, E2] : level``; the level is spelled as written ("block", "group-4", …)."""

    span: Span
    counters: tuple[Ident, ...]
    extents: tuple[Expr, ...]
    level: Ident


@_node
class Parallel:
    span: Span
    asynchronous: bool
    bounds: tuple[Bound, ...]
    body: tuple[Stmt, ...]


@_node
class InThreads:
    span: Span
    asynchronous: bool
    condition: Expr
    body: tuple[Stmt, ...]


@_node
class ForEach:
    span: Span
    counters: tuple[Ident, ...]
    extents: tuple[Expr, ...]
    body: tuple[Stmt, ...]


@_node
class If:
    span: Span
    condition: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]


@_node
class Block:
    """A bare ``{ … }``: a scope."""

    span: Span
    body: tuple[Stmt, ...]


@_node
class LaunchBounds:
    span: Span
    blocks: Expr


@_node
class Array:
    """``name`` or ``name[count]`` in a declaration."""

    span: Span
    name: Ident
    count: Expr | None


@_node
class SharedEvents:
    span: Span
    items: tuple[Array, ...]


@_node
class SharedBuffers:
    span: Span
    elem: Ident
    shape: tuple[Expr, ...]
    items: tuple[Array, ...]


@_node
class Initialised:
    """``name`` or ``name {value}`` in a fragment declaration."""

    span: Span
    name: Ident
    value: Expr | None


@_node
class Fragments:
    span: Span
    elem: Ident
    shape: tuple[Expr, ...]
    items: tuple[Initialised, ...]


@_node
class Swizzle:
    """``.swiz<bytes>``"""

    span: Span
    bytes: Expr


@_node
class MmaFill:
    span: Span
    elem: Ident
    value: Expr


@_node
class MmaLoad:
    span: Span
    swizzle: Swizzle | None
    view: Expr


@_node
class Assign:
    """``name = value;``"""

    span: Span
    name: Ident
    value: Expr | MmaFill | MmaLoad


@_node
class Declare:
    """``int name = value;``"""

    span: Span
    type: Ident
    name: Ident
    value: Expr


@_node
class EventRef:
    """``name`` or ``name[index]``"""

    span: Span
    name: Ident
    index: Expr | None


@_node
class Wait:
    span: Span
    events: tuple[EventRef, ...]


@_node
class Trigger:
    span: Span
    events: tuple[EventRef, ...]
    cluster: bool


@_node
class Copy:
    span: Span
    event: EventRef | None
    swizzle: Swizzle | None
    multicast: bool
    source: Expr
    target: Expr


@_node
class Mma:
    """``mma.row.<b_layout> accumulator, a, b;``"""

    span: Span
    b_layout: str
    accumulator: Expr
    a: Expr
    b: Expr


@_node
class MmaCommit:
    span: Span


@_node
class MmaWait:
    span: Span
    pending: Expr


@_node
class MmaStore:
    span: Span
    fragment: Expr
    target: Expr


@_node
class FragApply:
    span: Span
    fragment: Expr
    indices: tuple[Ident, ...]
    value: Expr


@_node
class FragCopy:
    span: Span
    target: Expr
    source: Expr


@_node
class FragReduce:
    span: Span
    op: str
    source: Expr
    target: Expr
    axis: Expr


@_node
class SyncWg:
    span: Span
    members: tuple[Expr, ...]


@_node
class SyncShared:
    span: Span


@_node
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


@_node
class Parameter:
    """``global f16 [M, K] lhs``; ``shape`` is None for a scalar parameter (which the language does not have)."""

    span: Span
    elem: Ident
    shape: tuple[Expr, ...] | None
    name: Ident


@_node
class Function:
    span: Span
    result: Ident
    name: Ident
    parameters: tuple[Parameter, ...]
    body: tuple[Stmt, ...]
