"""Everything that the compiler says to its user: one class per kind of message, and the only place that renders one.

A class holds the data of a message; its ``template`` is filled from its fields. ``notes`` point at further places that
matter (an earlier definition, the other side of a conflict). Passes collect diagnostics and raise :class:`CompileError`
with all of them.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from croqtile.ir import Span

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[type], type]:
        """For type checkers only (Python 3.10 does not have it)."""
        return lambda cls: cls


def _field(*, default: Any, kw_only: bool) -> Any:
    """A field that is given by keyword only."""
    return default


@dataclass(frozen=True)
class Note:
    """A second place of a message."""

    span: Span
    message: str


@dataclass_transform(frozen_default=True, field_specifiers=(_field,))
class _Record:
    """A dataclass without generated code: with more than a hundred kinds, generating it would take longer than checking
    a kernel."""

    _names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        own = (name for name, kind in cls.__annotations__.items() if not kind.startswith("ClassVar"))
        keywords = ("notes",)
        cls._names = (*cls._names, *(name for name in own if name not in keywords))

    def __init__(self, *values: object, **named: object) -> None:
        fields = dict(zip(self._names, values, strict=False), **named)
        missing = [name for name in self._names if name not in fields and not hasattr(type(self), name)]
        if missing or len(values) > len(self._names):
            raise TypeError(f"{type(self).__name__} takes {', '.join(self._names)}")
        vars(self).update(fields)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class Diagnostic(_Record):
    """Base class. ``span`` is None only for what has no place in a file (a bad command-line macro)."""

    span: Span | None
    notes: tuple[Note, ...] = _field(default=(), kw_only=True)

    template: ClassVar[str] = ""
    severity: ClassVar[str] = "error"

    @property
    def message(self) -> str:
        return _PLURAL.vformat(self.template, (), vars(self))

    @property
    def details(self) -> tuple[str, ...]:
        """Lines to print after the message, its place and its notes."""
        return ()


class _Plural(string.Formatter):
    """``{count:bound}`` gives "1 bound" or "2 bounds"."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, int) and format_spec.isalpha():
            return f"{value} {format_spec}{'s' * (value != 1)}"
        return str(format(value, format_spec))


_PLURAL = _Plural()


class CompileError(Exception):
    """One or more diagnostics of severity "error"; the compiler prints them all and exits with status 1."""

    def __init__(self, diagnostics: Iterable[Diagnostic], sources: Mapping[str, str] | None = None) -> None:
        self.diagnostics = tuple(diagnostics)
        self.sources = dict(sources or {})
        super().__init__("\n".join(f"{d.span or 'choreo'}: {d.message}" for d in self.diagnostics))

    @property
    def rendered(self) -> str:
        """The text to print on stderr."""
        return render(self.diagnostics, self.sources)


def render(diagnostics: Iterable[Diagnostic], sources: Mapping[str, str]) -> str:
    """The text to print: per message ``file:line:column: severity: message``, the source line and a caret.

    ``sources`` maps file names (as in the spans) to their text; a line that is not there is left out.
    """
    lines: list[str] = []
    for diagnostic in diagnostics:
        if diagnostic.span is None:
            lines.append(f"choreo: {diagnostic.severity}: {diagnostic.message}")
        else:
            lines += _place(diagnostic.span, diagnostic.severity, diagnostic.message, sources)
        for note in diagnostic.notes:
            lines += _place(note.span, "note", note.message, sources)
        lines += diagnostic.details
    return "".join(line + "\n" for line in lines)


def _place(span: Span, severity: str, message: str, sources: Mapping[str, str]) -> list[str]:
    lines = [f"{span}: {severity}: {message}"]
    text = sources[span.file].split("\n") if span.file in sources else []
    if 1 <= span.line <= len(text):
        line = text[span.line - 1].rstrip()
        number = f"{span.line:5}"
        # Tabs are kept in the margin under the line, so that the caret stands right whatever their width.
        margin = "".join("\t" if c == "\t" else " " for c in line[: span.column - 1])
        margin = margin.ljust(span.column - 1)
        length = max(1, min(span.length, len(line) - span.column + 1))
        lines += [f"{number} | {line}", f"{' ' * len(number)} | {margin}^{'~' * (length - 1)}"]
    return lines


# --------------------------------------------------------------------------------------------------------------
# Files and preprocessing


class UnreadableFile(Diagnostic):
    template = "cannot read {path}: {reason}"
    path: str
    reason: str


class BadDefine(Diagnostic):
    template = "-D{text}: expected NAME or NAME=VALUE"
    text: str


class BadDirective(Diagnostic):
    template = "#{directive}: {reason}"
    directive: str
    reason: str


class UserError(Diagnostic):
    template = "#error {text}"
    text: str


class UnterminatedConditional(Diagnostic):
    template = "#{directive} without #endif"
    directive: str


class MacroMisuse(Diagnostic):
    template = "{reason}"
    reason: str


class UnterminatedFunction(Diagnostic):
    template = "this __co__ function has no end: {missing} is missing"
    missing: str


# --------------------------------------------------------------------------------------------------------------
# Syntax


class SyntaxMistake(Diagnostic):
    template = "expected {expected}, found {found}"
    expected: str
    found: str


class TooDeep(Diagnostic):
    template = "this function nests expressions or statements too deeply"


class StrayCharacter(Diagnostic):
    template = "{found} does not belong to the tile language"
    found: str


# --------------------------------------------------------------------------------------------------------------
# Names and expressions


class UnknownName(Diagnostic):
    template = "unknown name '{name}'"
    name: str


class Redefinition(Diagnostic):
    template = "'{name}' is already defined in this scope"
    name: str


class UnknownElementType(Diagnostic):
    template = "unknown element type '{name}'; known are f16, bf16, f32, f8_e4m3, f8_e5m2, s32, u32, s8, u8"
    name: str


class UnknownScalarType(Diagnostic):
    template = "unknown type '{name}'; a scalar is an int or a float"
    name: str


class WrongKind(Diagnostic):
    template = "expected {expected}, but {found}"
    expected: str
    found: str


class NotAssignable(Diagnostic):
    template = "cannot assign to '{name}': it is {what}"
    name: str
    what: str


class WrongScalarType(Diagnostic):
    template = "expected {expected}, found {found}"
    expected: str
    found: str


class UnknownFunction(Diagnostic):
    template = "unknown function '{name}'; known are cdiv, __max, __min, __exp2f, __expf, __logf, __to<T>"
    name: str


class WrongArgumentCount(Diagnostic):
    template = "{name} takes {expected}, but {found} given"
    name: str
    expected: str
    found: str


class DivisionByZero(Diagnostic):
    template = "division by zero"


class NotConstant(Diagnostic):
    template = "{what} must be a constant"
    what: str


class SymbolicDimension(Diagnostic):
    template = "{what} must be a constant, but '{name}' is a symbolic dimension, known at launch only"
    what: str
    name: str


class NotPositive(Diagnostic):
    template = "{what} must be at least {minimum}, but it is {value}"
    what: str
    value: int
    minimum: int


class Unbounded(Diagnostic):
    template = "{what} must be a bounded variable (of parallel or foreach)"
    what: str


class WrongRank(Diagnostic):
    template = "{what} has {rank:dimension}, but {who} {found}"
    what: str
    rank: int
    found: int
    who: str


class ElementOutsideApply(Diagnostic):
    template = "an element of fragment '{name}' can be read inside frag.apply only"
    name: str


class ForeignElement(Diagnostic):
    template = (
        "only '{name}.at({own})' can be read here: a thread holds just its own elements, and those of other rows or "
        "columns are in other threads"
    )
    name: str
    own: str


class MatrixElementInVector(Diagnostic):
    template = "an element of the matrix '{name}' cannot be read for a row of '{target}': reduce it first"
    name: str
    target: str


# --------------------------------------------------------------------------------------------------------------
# Shapes and views


class ShapeMismatch(Diagnostic):
    template = "shapes differ: {left} is {left_shape}, {right} is {right_shape}"
    left: str
    left_shape: str
    right: str
    right_shape: str


class ElementTypeMismatch(Diagnostic):
    template = "element types differ: {left} is {left_type}, {right} is {right_type}"
    left: str
    left_type: str
    right: str
    right_type: str


class UnknownViewStep(Diagnostic):
    template = "unknown view operation '{name}'; known are subspan, step, at, chunkat, sqz"
    name: str


class MisplacedViewStep(Diagnostic):
    template = "{step} must {must}"
    step: str
    must: str


class NeedsSlot(Diagnostic):
    template = "'{name}' is an array of {count} {things}: name one as {name}[…]"
    name: str
    count: int
    things: str


class NotAnArray(Diagnostic):
    template = "'{name}' is a single {thing}, not an array: it takes no index"
    name: str
    thing: str


class SlotOutOfRange(Diagnostic):
    template = "slot {slot} of '{name}' does not exist: it has {count} (0 to {last})"
    name: str
    slot: int
    count: int
    last: int


class TileOutOfRange(Diagnostic):
    template = "this tile is {start} to {end} in dimension {dim} of '{name}', which has {extent} elements there"
    name: str
    dim: int
    start: int
    end: int
    extent: int


class ChunkNotDividing(Diagnostic):
    template = "chunkat cannot cut dimension {dim} ({extent}) into {parts} equal parts"
    dim: int
    extent: str
    parts: str


class ChunkOnBothSides(Diagnostic):
    template = "chunkat on both sides of a copy leaves its extents undefined: use subspan on one side"


# --------------------------------------------------------------------------------------------------------------
# Synchronisation and placement (most of them found by the analysis engine)


class Deadlock(Diagnostic):
    template = "deadlock: {why}"
    why: str


class EventOverrun(Diagnostic):
    template = "event overrun: {why}"
    why: str


class SharedMemoryRace(Diagnostic):
    template = "race in shared memory: {why}"
    why: str


class CopyUnawaited(Diagnostic):
    template = "copy left behind: {why}; wait for it in some role, or do not issue it"
    why: str


class ArrivalMismatch(Diagnostic):
    template = "{why}; the event orders nothing"
    severity = "warning"
    why: str


class PossibleDefect(Diagnostic):
    """A defect that may only come from what the analysis could not follow."""

    template = "possible {kind}: {why}; not certain, because {reason}"
    severity = "warning"
    kind: str
    why: str
    reason: str


class ClusterUnchecked(Diagnostic):
    template = (
        "the synchronisation between the CTAs of a cluster is not analysed: buffers that other CTAs write keep their "
        "own place, and what they wait for is not checked"
    )
    severity = "warning"


class OperandReleased(Diagnostic):
    template = "operand '{buffer}' released while still read: this trigger of '{event}' lets it be overwritten"
    buffer: str
    event: str


class SharedMemoryOutOfBound(Diagnostic):
    template = (
        "shared memory OUT OF BOUND: kernel '{kernel}' needs {bytes} bytes of shared memory and {slack} for alignment; "
        "a block has at most {limit}"
    )
    kernel: str
    bytes: int
    slack: int
    limit: int
    table: tuple[str, ...]

    @property
    def details(self) -> tuple[str, ...]:
        return tuple(f"  {row}" for row in self.table)


# --------------------------------------------------------------------------------------------------------------
# Structure


class NotHere(Diagnostic):
    template = "{what} {where}"
    what: str
    where: str


class BadParameter(Diagnostic):
    template = "a parameter is a tensor in device memory, as in 'global f16 [M, K] {name}'"
    name: str


class BadResult(Diagnostic):
    template = "a __co__ function returns void, not {name}"
    name: str


class MissingLevel(Diagnostic):
    template = "{what} has no '{missing}'"
    what: str
    missing: str


class SecondGrid(Diagnostic):
    template = "a second grid: a __co__ function is one kernel launch"


class UnknownLevel(Diagnostic):
    template = "unknown level '{name}'; known are block, cluster, group-4, thread"
    name: str


class WrongLevel(Diagnostic):
    template = "'{level}' must stand {where}"
    level: str
    where: str


class WrongBoundCount(Diagnostic):
    template = "{names:name}, but {extents:bound}"
    names: int
    extents: int


class TooManyDimensions(Diagnostic):
    template = "{what} has at most {limit:dimension}, not {found}"
    what: str
    limit: int
    found: int


class WrongThreadCount(Diagnostic):
    template = "a warpgroup (group-4) has 128 threads, not {found}"
    found: int


class TooManyThreads(Diagnostic):
    template = "{warpgroups} warpgroups of 128 threads are more than the 1024 threads that a block can have"
    warpgroups: int


class WarpgroupCountDiffers(Diagnostic):
    template = "{found} warpgroups here, but {earlier} before: a kernel has one number of threads"
    found: int
    earlier: int


# --------------------------------------------------------------------------------------------------------------
# Roles and synchronisation


class ConditionNotConstant(Diagnostic):
    template = "a role's condition may use {allowed} and constants only, not '{name}'"
    allowed: str
    name: str


class EmptyRole(Diagnostic):
    template = "no thread satisfies this condition: the role names nothing"


class OddRole(Diagnostic):
    template = (
        "this condition selects {count} of the 128 threads of warpgroup {warpgroup}: a role is whole warpgroups, or "
        "one thread (the same t) of each"
    )
    count: int
    warpgroup: int


class OverlappingRoles(Diagnostic):
    template = "thread {thread} of warpgroup {warpgroup} is in two roles, which run concurrently"
    thread: int
    warpgroup: int


class NoSuchWarpgroup(Diagnostic):
    template = "warpgroup {number} does not exist: there are {count} (0 to {last})"
    number: int
    count: int
    last: int


class NotAMember(Diagnostic):
    template = "warpgroup {number} reaches this barrier without being one of its members ({members})"
    number: int
    members: str


class MemberMissing(Diagnostic):
    template = "warpgroup {number} is a member of this barrier but never reaches it: the others would wait forever"
    number: int


class NeedsWarpgroup(Diagnostic):
    template = "{what} needs all 128 threads of a warpgroup, but this role is one thread"
    what: str


class DivergentStatement(Diagnostic):
    template = "{what} must be reached by all threads of a warpgroup, but the condition around it depends on the thread"
    what: str


class DivergentPlace(Diagnostic):
    template = "the threads of a warpgroup act together here, but an index of this statement depends on the thread"


class PrivateValue(Diagnostic):
    template = "'{name}' is assigned in a role, where every thread has its own copy: its value is undefined here"
    name: str


class NeverTriggered(Diagnostic):
    template = "event '{name}' is waited for but never triggered: the wait never returns"
    name: str


class CopyNeverTriggered(Diagnostic):
    template = "event '{name}' is never triggered: the copies bound to it never complete a setting"
    name: str


class CopyNeverWaited(Diagnostic):
    template = "nothing waits for event '{name}': nothing can tell when this copy has landed"
    name: str


class TriggerOfAnotherRole(Diagnostic):
    template = "event '{name}' is triggered here, but its copies are issued by another role that never triggers it"
    name: str


# --------------------------------------------------------------------------------------------------------------
# Copies, matrix instructions, fragments


class WrongDirection(Diagnostic):
    template = "{what}, but this goes from {source} to {target} memory"
    what: str
    source: str
    target: str


class BadSwizzle(Diagnostic):
    template = "a swizzle is 32, 64 or 128 bytes, not {found}"
    found: int


class SwizzleTooWide(Diagnostic):
    template = (
        "swizzle {swizzle} is too wide for {what}: {columns} {elem} are {bytes} bytes, not a multiple of {swizzle}"
    )
    swizzle: int
    what: str
    columns: int
    elem: str
    bytes: int


class SwizzleDisagrees(Diagnostic):
    template = "'{name}' has swizzle {found} here and {earlier} elsewhere: all must read the layout that was written"
    name: str
    found: int
    earlier: int


class SwizzledCall(Diagnostic):
    template = "'{name}' is an operand of matrix instructions, which needs a swizzle, but a call takes it as row-major"
    name: str


class RowNotCopyable(Diagnostic):
    template = "a copy moves rows in multiples of 16 bytes, but {columns} {elem} are {bytes} bytes"
    columns: int
    elem: str
    bytes: int


class BoxTooLarge(Diagnostic):
    template = (
        "a copy moves at most 256 elements per dimension, and the {extent} of dimension {dim} do not split evenly"
    )
    dim: int
    extent: int


class BadAccumulatorType(Diagnostic):
    template = "an accumulator is f16 or f32, not {found}"
    found: str


class BadOperandTypes(Diagnostic):
    template = "there is no matrix instruction for {a} and {b} operands with an {acc} accumulator{hint}"
    a: str
    b: str
    acc: str
    hint: str


class BadTransposed(Diagnostic):
    template = "mma.row.col reads B by columns, which {elem} operands cannot: store B as N × K and use mma.row.row"
    elem: str


class NotDivisible(Diagnostic):
    template = "{what} is {value}, but a matrix instruction needs {needs}"
    what: str
    value: int
    needs: str


class NoSwizzleFits(Diagnostic):
    template = "no swizzle (32, 64, 128) fits '{name}', whose rows are {bytes} bytes, but matrix operands need one"
    name: str
    bytes: int


class FragmentShape(Diagnostic):
    template = "a fragment has {what}, not {found}"
    what: str
    found: int


class AccumulatorUnused(Diagnostic):
    template = "no matrix instruction accumulates into '{name}': its shape is unknown"
    name: str


class NotCommitted(Diagnostic):
    template = "no 'mma.commit;' follows this instruction: its operands are results of mma.load, so it is not complete"


class WrongAxis(Diagnostic):
    template = "frag.reduce runs along columns: its axis is 1, not {found}"
    found: str


class OperandMisaligned(Diagnostic):
    template = "this operand does not start at a multiple of {unit} {what} of '{name}', as matrix instructions need"
    name: str
    what: str
    unit: int


class MixedTriggers(Diagnostic):
    template = "event '{name}' is triggered here in all CTAs of the cluster, elsewhere by the same warpgroup in one"
    name: str


class UnevenArrivals(Diagnostic):
    template = "the slots of event '{name}' are triggered by different numbers of warpgroups: {counts}"
    name: str
    counts: str
