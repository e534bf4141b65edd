"""The kernel IR: what a ``__co__`` function means, with every name resolved and every shape known.

``check`` makes it from the syntax tree, ``lower`` completes it (matrix-instruction groups, shared layouts, arrival
counts), ``analyse`` reads it to decide the placement, ``emit`` turns it and the placement into CUDA. ``irprint`` prints
it. Extents of shared tiles and fragments are Python ints; what depends on the launch is an :class:`Expr`.

Units: extents and offsets in elements, sizes in bytes.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Union


@dataclass(frozen=True)
class Span:
    """A place in the user's file (1-based), after undoing preprocessing; ``length`` in characters."""

    file: str
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Elem(enum.Enum):
    """Element types: (name in the language, bytes)."""

    F16 = ("f16", 2)
    BF16 = ("bf16", 2)
    F32 = ("f32", 4)
    E4M3 = ("f8_e4m3", 1)
    E5M2 = ("f8_e5m2", 1)
    S32 = ("s32", 4)
    U32 = ("u32", 4)
    S8 = ("s8", 1)
    U8 = ("u8", 1)

    @property
    def spelling(self) -> str:
        return self.value[0]

    @property
    def bytes(self) -> int:
        return self.value[1]


# --------------------------------------------------------------------------------------------------------------
# Expressions


class SymbolKind(enum.Enum):
    DIM = "dim"  # symbolic dimension: a wrapper argument's shape, ≥ 1 (the wrapper refuses 0)
    CAPTURED = "captured"  # scalar declared before the grid, passed by value
    GRID = "grid"  # bounded by `parallel … : block`
    WARPGROUP = "warpgroup"  # p of `parallel p by N : group-4`
    THREAD = "thread"  # t of `t by 128 : thread`
    LOOP = "loop"  # foreach counter
    VALUE = "value"  # `x = expr;` / `int x = expr;`
    LAMBDA = "lambda"  # row or column parameter of frag.apply
    CLUSTER = "cluster"  # rank in `parallel … : cluster`


@dataclass(frozen=True, eq=False)
class Symbol:
    """A scalar name. ``cname`` is unique in the kernel and a legal C identifier. Compared by identity."""

    name: str
    kind: SymbolKind
    cname: str
    ctype: str = "int"  # "int" | "float" | …
    bound: Expr | None = None  # 0 ≤ symbol < bound, for GRID, WARPGROUP, THREAD, LOOP, CLUSTER, LAMBDA
    mutable: bool = False  # assigned again after its definition
    span: Span | None = None


@dataclass(frozen=True)
class IntLit:
    value: int


@dataclass(frozen=True)
class FloatLit:
    text: str  # C spelling ("0.125f"), or "-inf" / "inf"


@dataclass(frozen=True)
class Var:
    symbol: Symbol


@dataclass(frozen=True)
class Binary:
    op: str  # + - * / % < <= > >= == != && ||
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Unary:
    op: str  # - !
    operand: Expr


@dataclass(frozen=True)
class Select:
    condition: Expr
    yes: Expr
    no: Expr


@dataclass(frozen=True)
class Intrinsic:
    """``cdiv`` (integers), ``__max __min __exp2f __expf __logf`` and ``__to<T>`` (``target`` is then set)."""

    name: str
    args: tuple[Expr, ...]
    target: Elem | None = None


@dataclass(frozen=True)
class FragElement:
    """``x.at(i, j)`` / ``v.at(i)`` inside frag.apply."""

    fragment: Fragment
    indices: tuple[Expr, ...]


@dataclass(frozen=True)
class TensorElement:
    """``tensor.at(i, j)`` without subspan: one element read from global memory."""

    tensor: Tensor
    indices: tuple[Expr, ...]


Expr = Union[IntLit, FloatLit, Var, Binary, Unary, Select, Intrinsic, FragElement, TensorElement]

# --------------------------------------------------------------------------------------------------------------
# Storage


@dataclass(frozen=True, eq=False)
class Tensor:
    """A parameter in device memory, row-major."""

    name: str
    elem: Elem
    dims: tuple[Expr, ...]  # IntLit, Var(DIM) or an expression of constants already folded
    span: Span


@dataclass(frozen=True, eq=False)
class SharedBuffer:
    """``shared elem [shape] name[count]``: one block of ``count`` tiles of ``shape``.

    ``swizzle`` is 0 (row-major), 32, 64 or 128: the layout of every tile, set by ``lower`` from the copies and matrix
    instructions that use it. With swizzle B the tile is split along its last dimension into panels of
    ``B / elem.bytes`` columns; a panel is all rows × those columns, row pitch B bytes, 16-byte chunks XOR-swizzled;
    panel j starts at j · rows · B bytes (rows = product of all dimensions but the last).
    """

    name: str
    elem: Elem
    shape: tuple[int, ...]
    count: int
    is_array: bool
    span: Span
    swizzle: int = 0

    @property
    def tile_bytes(self) -> int:
        size = self.elem.bytes
        for extent in self.shape:
            size *= extent
        return size

    @property
    def bytes(self) -> int:
        return self.tile_bytes * self.count

    @property
    def align(self) -> int:
        """1024 for swizzle 128 (its pattern repeats every 1024 bytes), 512 for 64, 256 for 32, else 128 (copies)."""
        return {128: 1024, 64: 512, 32: 256}.get(self.swizzle, 128)


@dataclass(frozen=True, eq=False)
class Event:
    """``shared event name[slots]``. ``arrivals``: role instances that trigger it, set by ``lower``."""

    name: str
    slots: int
    is_array: bool
    span: Span
    arrivals: int = 0


@dataclass(frozen=True, eq=False)
class Fragment:
    """A per-row vector (cols None) or a matrix in the registers of one warpgroup, laid out as the accumulator of
    wgmma m64nNk: thread t of warp w holds rows 16w + t/4 and 16w + t/4 + 8 (of every 64-row half) and, of each group of
    8 columns, columns 2(t%4), 2(t%4)+1. Rows of the vector are replicated over the 4 threads of a quad.

    Accumulators (``mma.fill``) are fragments too; their shape is inferred from the first matrix instruction.
    """

    name: str
    cname: str
    elem: Elem
    rows: int
    cols: int | None
    init: Expr | None  # FloatLit or None (left uninitialised)
    span: Span
    accumulator: bool = False


# --------------------------------------------------------------------------------------------------------------
# Views


@dataclass(frozen=True)
class Level:
    """One ``subspan(extent).at(index)`` step along one dimension: starts at index · step, ``extent`` long."""

    extent: Expr
    index: Expr
    step: Expr


@dataclass(frozen=True)
class ViewDim:
    """One dimension of the root, outermost level first. No levels: the whole dimension. ``kept`` is false once
    ``.sqz()`` has removed it. The offset is the sum of index · step; the extent that of the last level; and a tile is
    out of range where it leaves the level *before* it (the view it was taken from)."""

    levels: tuple[Level, ...] = ()
    kept: bool = True


@dataclass(frozen=True)
class View:
    root: Tensor | SharedBuffer
    dims: tuple[ViewDim, ...]  # one per dimension of the root
    span: Span
    slot: Expr | None = None  # of a shared array

    def extents(self) -> tuple[Expr, ...]:
        """Extents of the kept dimensions."""
        whole = self.root.dims if isinstance(self.root, Tensor) else tuple(IntLit(n) for n in self.root.shape)
        return tuple(
            dim.levels[-1].extent if dim.levels else full
            for dim, full in zip(self.dims, whole, strict=True)
            if dim.kept
        )


# --------------------------------------------------------------------------------------------------------------
# Statements. Every one has a span.


@dataclass(frozen=True)
class Let:
    """``x = expr;`` or ``int x = expr;`` — first definition."""

    symbol: Symbol
    value: Expr
    span: Span


@dataclass(frozen=True)
class Assign:
    """A later ``x = expr;`` to a visible scalar."""

    symbol: Symbol
    value: Expr
    span: Span


@dataclass(frozen=True)
class ForEach:
    counter: Symbol
    extent: Expr
    body: tuple[Stmt, ...]
    span: Span


@dataclass(frozen=True)
class If:
    condition: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]
    span: Span


@dataclass(frozen=True)
class Wait:
    event: Event
    slot: Expr  # IntLit(0) for a scalar event
    span: Span


@dataclass(frozen=True)
class Trigger:
    """``cluster``: counts at that slot in every CTA of the cluster."""

    event: Event
    slot: Expr
    span: Span
    cluster: bool = False


@dataclass(frozen=True)
class CopyIn:
    """``tma.copy.async<event[slot]>.swiz<B> src => dst;`` (global → shared)."""

    source: View
    target: View
    event: Event
    slot: Expr
    swizzle: int  # as written; 0 if absent
    span: Span
    multicast: bool = False


@dataclass(frozen=True)
class CopyOut:
    """``tma.copy src => dst;`` (shared → global), complete when the statement ends, for all threads that reach it."""

    source: View
    target: View
    span: Span


@dataclass(frozen=True)
class AccFill:
    """``mc = mma.fill.f32 0.0f;`` — (re)starts an accumulator."""

    fragment: Fragment
    value: Expr
    span: Span


@dataclass(frozen=True)
class SharedOperand:
    """A tile read by the matrix unit: A is rows × k; B is N × k (mma.row.row) or k × N (mma.row.col)."""

    view: View
    swizzle: int  # as written on mma.load; 0: inherited from the filling copy
    span: Span


@dataclass(frozen=True)
class FragOperand:
    fragment: Fragment
    span: Span


@dataclass(frozen=True)
class Mma:
    """acc += A·Bᵀ (b_layout "row") or A·B (b_layout "col"). M = rows of A (multiple of 64), K split in steps of
    32 bytes. ``explicit``: closed by an mma.commit of the program; otherwise ``lower`` adds MmaCommit/MmaWait."""

    accumulator: Fragment
    a: SharedOperand | FragOperand
    b: SharedOperand
    b_layout: str
    explicit: bool
    span: Span
    m: int = 0
    n: int = 0
    k: int = 0


@dataclass(frozen=True)
class MmaCommit:
    """Closes the group. A following MmaWait is always present in lowered IR where the language implies one."""

    span: Span
    implied: bool = False


@dataclass(frozen=True)
class MmaWait:
    pending: int
    span: Span
    implied: bool = False


@dataclass(frozen=True)
class MmaStore:
    """Accumulator or fragment → shared tile, converted to its element type; collective over the warpgroup."""

    fragment: Fragment
    target: View
    span: Span


@dataclass(frozen=True)
class FragDecl:
    fragment: Fragment
    span: Span


@dataclass(frozen=True)
class FragApply:
    fragment: Fragment
    indices: tuple[Symbol, ...]
    value: Expr
    span: Span


@dataclass(frozen=True)
class FragCopy:
    target: Fragment
    source: Fragment
    span: Span


@dataclass(frozen=True)
class FragReduce:
    op: str  # "max" | "sum"
    source: Fragment
    target: Fragment
    span: Span


@dataclass(frozen=True)
class SyncWarpgroups:
    members: tuple[int, ...]  # values of p
    span: Span


@dataclass(frozen=True)
class SyncCta:
    span: Span


@dataclass(frozen=True)
class Call:
    """``call f(args);`` — a view passes a pointer; the analysis takes it as a read and a write of each shared one."""

    function: str
    args: tuple[Expr | View, ...]
    span: Span


@dataclass(frozen=True)
class OnlyWarpgroups:
    """``inthreads (cond) {…}`` inside a role: of this role's instances only ``instances`` run the body."""

    condition: Expr
    instances: tuple[int, ...]
    body: tuple[Stmt, ...]
    span: Span


@dataclass(frozen=True)
class Role:
    """``inthreads.async (cond) {…}``: run concurrently by each warpgroup in ``instances`` (values of p).

    ``thread`` is None for all 128 threads of the warpgroup, else the single value of t that runs it."""

    condition: Expr
    instances: tuple[int, ...]
    thread: int | None
    body: tuple[Stmt, ...]
    span: Span


@dataclass(frozen=True)
class Roles:
    """``parallel p by N : group-4, t by 128 : thread {…}``: the roles run concurrently and join at its end."""

    roles: tuple[Role, ...]
    span: Span
    prologue: tuple[Stmt, ...] = ()  # Lets common to all threads


Stmt = Union[
    Let,
    Assign,
    ForEach,
    If,
    Wait,
    Trigger,
    CopyIn,
    CopyOut,
    AccFill,
    Mma,
    MmaCommit,
    MmaWait,
    MmaStore,
    FragDecl,
    FragApply,
    FragCopy,
    FragReduce,
    SyncWarpgroups,
    SyncCta,
    Call,
    OnlyWarpgroups,
    Roles,
]

# --------------------------------------------------------------------------------------------------------------
# Kernel


@dataclass(frozen=True)
class Captured:
    """``float scale = 0.125f;`` before the grid: evaluated by the wrapper, passed by value."""

    symbol: Symbol
    value: Expr
    span: Span


@dataclass(frozen=True)
class Kernel:
    """One ``__co__`` function. The device kernel is ``__choreo_device_<name>``."""

    name: str
    tensors: tuple[Tensor, ...]
    dims: tuple[Symbol, ...]  # symbolic dimensions, in order of appearance
    captured: tuple[Captured, ...]
    grid: tuple[Symbol, ...]  # first = outermost as written; bounds in Symbol.bound
    cluster: int  # CTAs per cluster along the first grid dimension; 1 without
    warpgroup: Symbol  # p
    warpgroups: int
    thread: Symbol | None  # t, if named
    launch_bounds: int | None  # min CTAs of launch_bounds(n)
    asynchronous: bool  # parallel.async
    buffers: tuple[SharedBuffer, ...]
    events: tuple[Event, ...]
    body: tuple[Stmt, ...]  # block level: Let, ForEach, If, Roles, CopyOut, SyncCta, …
    span: Span
    cluster_rank: Symbol | None = None
    notes: tuple[str, ...] = field(default=())
