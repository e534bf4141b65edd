"""Messages about copies, matrix instructions and fragments."""

from __future__ import annotations

from croqtile.diagnostics.base import Diagnostic


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
