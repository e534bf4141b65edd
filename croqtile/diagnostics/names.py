"""Messages about names, types and expressions."""

from __future__ import annotations

from croqtile.diagnostics.base import Diagnostic


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
