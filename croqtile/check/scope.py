"""What names mean while a function is checked, and how errors are collected.

Passing over the tree once, the checker binds names as it meets them. An error is raised as :class:`Rejected`, caught
around the statement, and the check goes on; a name whose definition failed is bound to :class:`Poison`, so that its
uses raise no further messages.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NoReturn, Union

from croqtile import diagnostics as diag
from croqtile import ir
from croqtile.check.reserved import reserved


class Rejected(Exception):
    """The statement being checked is wrong. ``diagnostic`` is None when that has been said already."""

    def __init__(self, diagnostic: diag.Diagnostic | None) -> None:
        super().__init__()
        self.diagnostic = diagnostic


def fail(diagnostic: diag.Diagnostic) -> NoReturn:
    raise Rejected(diagnostic)


# --------------------------------------------------------------------------------------------------------------
# Bindings


@dataclass(frozen=True)
class Chunk:
    """``base.chunkat(…)``, whose extents its use decides. An index of None stands for ``_``."""

    base: ir.View
    indices: tuple[ir.Expr | None, ...]
    span: ir.Span


@dataclass(frozen=True)
class ScalarName:
    symbol: ir.Symbol
    value: ir.Expr | None  # what it was defined as, while nothing else can have been assigned to it
    span: ir.Span


@dataclass(frozen=True)
class ViewName:
    """A named view, or a tensor or shared buffer as a whole (``slot`` missing where it is an array)."""

    view: ir.View | Chunk
    span: ir.Span


@dataclass(frozen=True)
class OperandName:
    """``a = mma.load view;``"""

    view: ir.View
    swizzle: int
    span: ir.Span


@dataclass(frozen=True)
class FragmentName:
    fragment: ir.Fragment
    span: ir.Span


@dataclass(frozen=True)
class EventName:
    event: ir.Event
    span: ir.Span


@dataclass(frozen=True)
class Poison:
    span: ir.Span


Binding = Union[ScalarName, ViewName, OperandName, FragmentName, EventName, Poison]

WORDS: dict[type, str] = {
    ScalarName: "a scalar",
    ViewName: "a view",
    OperandName: "a matrix operand",
    FragmentName: "a fragment",
    EventName: "an event",
}


@dataclass
class Scope:
    parent: Scope | None = None
    names: dict[str, Binding] = field(default_factory=dict)

    def lookup(self, name: str) -> Binding | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None


# --------------------------------------------------------------------------------------------------------------
# Where we are


@dataclass
class Place:
    """The part of the function that is being checked.

    ``level``: "function" before the grid, "block", "group" (inside ``: group-4``, before or between roles), "role".
    ``active``: the warpgroups that can reach the statement. ``divergent``: the condition that only some threads of a
    warpgroup satisfy, if the statement is under one.
    """

    level: str = "function"
    role: int | None = None
    instances: tuple[int, ...] = ()
    active: tuple[int, ...] = ()
    thread: int | None = None
    divergent: ir.Span | None = None
    may_declare_shared: bool = False


@dataclass(frozen=True)
class EventUse:
    """A wait, trigger or copy on an event."""

    kind: str  # "wait" | "trigger" | "copy"
    event: ir.Event
    role: int
    span: ir.Span


@dataclass(frozen=True)
class BarrierUse:
    """A sync.wg or sync.shared that the warpgroups ``reached_by`` come to."""

    members: tuple[int, ...]
    reached_by: tuple[int, ...]
    span: ir.Span


class Context:
    """All that is known about the function so far."""

    def __init__(self) -> None:
        self.diagnostics: list[diag.Diagnostic] = []
        self.scope = Scope()
        self.place = Place()
        # How often each name is defined or assigned: in all that can reach this place, and outside roles.
        self.assigned: Counter[str] = Counter()
        self.assigned_outside: Counter[str] = Counter()
        self.cnames: set[str] = set()
        self.mutable: set[ir.Symbol] = set()
        self.definitions: dict[ir.Symbol, ir.Expr] = {}
        self.divergent: set[ir.Symbol] = set()  # values that differ between the threads of a warpgroup
        self.shapes: dict[ir.Fragment, tuple[int, int | None]] = {}  # of accumulators, once known
        self.accumulators: list[ir.Fragment] = []  # drafts without a shape
        self.replaces: dict[ir.Fragment, ir.Fragment] = {}  # accumulators filled anew in the same scope
        self.deferred: list[Callable[[], None]] = []  # checks that need those shapes
        self.lambda_bounds: dict[ir.Symbol, tuple[ir.Fragment, int]] = {}
        self.applying: tuple[ir.Fragment, tuple[ir.Symbol, ...]] | None = None  # inside frag.apply: target, indices
        self.hidden: dict[str, tuple[int, ir.Span]] = {}  # names bound inside roles: (role, place), for messages
        self.uses: list[EventUse] = []
        self.barriers: list[BarrierUse] = []
        self.roles = 0  # how many there are so far
        self.layouts: dict[ir.SharedBuffer, tuple[int, ir.Span]] = {}  # swizzle as first written
        # The kernel as it grows
        self.tensors: list[ir.Tensor] = []
        self.dims: dict[str, ir.Symbol] = {}
        self.captured: list[ir.Captured] = []
        self.grid: list[ir.Symbol] = []
        self.grid_span: ir.Span | None = None
        self.asynchronous = False
        self.cluster: ir.Symbol | None = None
        self.warpgroup: ir.Symbol | None = None
        self.thread: ir.Symbol | None = None
        self.launch_bounds: int | None = None
        self.buffers: list[ir.SharedBuffer] = []
        self.events: list[ir.Event] = []

    # -- errors

    def report(self, diagnostic: diag.Diagnostic) -> None:
        if diagnostic not in self.diagnostics:
            self.diagnostics.append(diagnostic)

    @contextlib.contextmanager
    def recovering(self) -> Iterator[None]:
        """Collects the error of one statement, so that the next one is still checked."""
        try:
            yield
        except Rejected as rejected:
            if rejected.diagnostic is not None:
                self.report(rejected.diagnostic)

    # -- names

    @contextlib.contextmanager
    def nested(self, **place: object) -> Iterator[None]:
        """A new scope; keyword arguments change :attr:`place` inside it."""
        scope, old = self.scope, self.place
        self.scope = Scope(scope)
        self.place = Place(**{**vars(old), **place})
        try:
            yield
        finally:
            self.scope, self.place = scope, old

    def lookup(self, name: str, span: ir.Span) -> Binding:
        binding = self.scope.lookup(name)
        if binding is None:
            notes: tuple[diag.Note, ...] = ()
            if name in self.hidden:
                role, place = self.hidden[name]
                what = "an inner block" if role == self.place.role else "another role"
                notes = (diag.Note(place, f"'{name}' of {what} is not visible there"),)
            fail(diag.UnknownName(span, name, notes=notes))
        if isinstance(binding, Poison):
            raise Rejected(None)
        return binding

    def bind(self, name: str, binding: Binding) -> None:
        """Binds ``name`` here, hiding what it meant outside or before."""
        self.scope.names[name] = binding
        if self.place.role is not None:
            self.hidden[name] = (self.place.role, binding.span)

    def declare(self, name: str, binding: Binding) -> None:
        """Binds a name that must be new in this scope."""
        earlier = self.scope.names.get(name)
        if earlier is not None and not isinstance(earlier, Poison):
            note = diag.Note(earlier.span, "it was defined here")
            fail(diag.Redefinition(binding.span, name, notes=(note,)))
        self.bind(name, binding)

    def cname(self, name: str) -> str:
        """A C identifier for ``name`` that nothing else in this kernel has."""
        base = re.sub(r"\W", "_", name).strip("_") or "value"
        candidate, number = base, 1
        while candidate in self.cnames or candidate in reserved():
            candidate, number = f"{base}_{number}", number + 1
        self.cnames.add(candidate)
        return candidate

    def assigned_once(self, name: str) -> bool:
        return self.assigned[name] <= 1

    # -- fragments

    def known_shape(self, fragment: ir.Fragment) -> tuple[int, int | None] | None:
        """Rows and columns, as far as matrix instructions have told them by now."""
        if not fragment.accumulator:
            return fragment.rows, fragment.cols
        if fragment not in self.shapes and fragment in self.replaces:
            return self.known_shape(self.replaces[fragment])
        return self.shapes.get(fragment)

    def shape_of(self, fragment: ir.Fragment) -> tuple[int, int | None]:
        """Rows and columns. Stops the current check if they are not known."""
        shape = self.known_shape(fragment)
        if shape is None:
            raise Rejected(None)
        return shape

    def spelled_shape(self, fragment: ir.Fragment) -> str:
        return spelled(self.shape_of(fragment))


def spelled(extents: Iterable[object]) -> str:
    """``64 × 128``"""
    return " × ".join(str(extent) for extent in extents if extent is not None)
