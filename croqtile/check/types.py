"""Element types by their spelling."""

from __future__ import annotations

from croqtile import ast, ir
from croqtile import diagnostics as diag
from croqtile.check.scope import fail

_BY_NAME = {elem.spelling: elem for elem in ir.Elem}
INTEGERS = frozenset({ir.Elem.S32, ir.Elem.U32, ir.Elem.S8, ir.Elem.U8})


def element(name: ast.Ident) -> ir.Elem:
    """The element type that ``name`` spells."""
    if name.name not in _BY_NAME:
        fail(diag.UnknownElementType(name.span, name.name))
    return _BY_NAME[name.name]


def scalar_type(elem: ir.Elem) -> str:
    """The type that one element has in expressions."""
    return "int" if elem in INTEGERS else "float"
