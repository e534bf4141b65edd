"""Fragments: register arrays laid out as the accumulator of the warpgroup's matrix instruction.

A matrix of R × C elements is R / 64 *halves*. In each, thread t of the warpgroup holds, of every group of 8 columns,
two neighbouring elements of each of two rows. 32-bit elements: register 4·g + 2·h + e is column 8·g + 2·(t % 4) + e of
row 16·(t / 32) + t % 32 / 4 + 8·h. 16-bit elements are packed: register 2·g + h holds the pair. A per-row vector has
registers h = 0, 1 in each half.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import get_args

from croqtile import ir, rewrite
from croqtile.emit.context import Context
from croqtile.emit.errors import refuse

_PACK = {ir.Elem.F16: "pack_f16", ir.Elem.BF16: "pack_bf16"}
_UNPACK = {ir.Elem.F16: ("f16_low", "f16_high"), ir.Elem.BF16: ("bf16_low", "bf16_high")}
_WIDEN = {ir.Elem.F16: "widen_f16", ir.Elem.BF16: "widen_bf16"}
_REGISTER = "r_"  # loop variable over a fragment's registers
_HALF = "half_"  # loop variable over the 64-row halves


def is_packed(fragment: ir.Fragment) -> bool:
    """Two elements per register?"""
    return fragment.cols is not None and fragment.elem.bytes == 2


def halves(fragment: ir.Fragment) -> int:
    return fragment.rows // 64


def registers(fragment: ir.Fragment) -> int:
    """32-bit registers per thread and half."""
    if fragment.cols is None:
        return 2
    return fragment.cols // 4 if is_packed(fragment) else fragment.cols // 2


def declare(context: Context, fragment: ir.Fragment) -> None:
    """The register array, uninitialised."""
    if fragment.rows % 64:
        refuse(fragment.span, f"a fragment has a multiple of 64 rows, {fragment.name} has {fragment.rows}")
    if fragment.cols is not None and fragment.cols % 8:
        refuse(fragment.span, f"{fragment.name} has {fragment.cols} columns, which the warpgroup cannot share evenly")
    if fragment.elem.bytes == 1 or (fragment.cols is None and fragment.elem.bytes != 4):
        refuse(fragment.span, f"a fragment like {fragment.name} cannot hold elements of type {fragment.elem.spelling}")
    outer = f"[{halves(fragment)}]" if halves(fragment) > 1 else ""
    shape = f"{fragment.rows}" if fragment.cols is None else f"{fragment.rows} × {fragment.cols}"
    context.out.line(
        f"{_ctype(fragment)} {fragment.cname}{outer}[{registers(fragment)}];  // {fragment.elem.spelling}, {shape}"
    )


def _ctype(fragment: ir.Fragment) -> str:
    if is_packed(fragment) or fragment.elem is ir.Elem.U32:
        return "uint32_t"
    return "int" if fragment.elem is ir.Elem.S32 else "float"


def emit_fill(context: Context, fragment: ir.Fragment, value: ir.Expr) -> None:
    """Every element = ``value``."""
    text = context.expression(value)
    if is_packed(fragment):
        text = f"{_PACK[fragment.elem]}({text}, {text})"
    for name in each_half(fragment):
        context.out.line(f"fill_registers({name}, {text});")


def each_half(fragment: ir.Fragment) -> list[str]:
    """The register arrays of the halves."""
    if halves(fragment) == 1:
        return [fragment.cname]
    return [f"{fragment.cname}[{half}]" for half in range(halves(fragment))]


@contextmanager
def as_stored(context: Context, fragment: ir.Fragment, array: str, element: ir.Elem) -> Iterator[str]:
    """The registers of one half of ``fragment`` as ``mma.store`` to ``element`` takes them: pairs of that very type, or
    one f32 per register."""
    if not is_packed(fragment) or fragment.elem is element:
        yield array
        return
    with context.out.block("", note=f"{fragment.elem.spelling} → {element.spelling}"):
        context.out.line(f"float wide_[{2 * registers(fragment)}];")
        context.out.line(f"{_WIDEN[fragment.elem]}(wide_, {array});")
        yield "wide_"


def emit_copy(context: Context, copy: ir.FragCopy) -> None:
    """``frag.copy``; the checker has compared shapes and element types."""
    for target, source in zip(each_half(copy.target), each_half(copy.source), strict=True):
        context.out.line(f"copy_registers({target}, {source});")


def emit_reduce(context: Context, reduce: ir.FragReduce) -> None:
    """Along the columns, into the per-row vector; all four threads of a row get the result."""
    if is_packed(reduce.source) or reduce.source.elem is not ir.Elem.F32 or reduce.target.elem is not ir.Elem.F32:
        refuse(reduce.span, "only f32 fragments can be reduced")
    for target, source in zip(each_half(reduce.target), each_half(reduce.source), strict=True):
        context.out.line(f"reduce_{reduce.op}({target}, {source});")


def emit_apply(context: Context, apply: ir.FragApply) -> None:
    """``frag.apply``: a loop over the registers of the fragment."""
    _check_elements(apply.value, apply)
    if halves(apply.fragment) == 1:
        _apply_loop(context, apply, "")
        return
    context.out.unroll()
    with context.out.block(f"for (int {_HALF} = 0; {_HALF} < {halves(apply.fragment)}; ++{_HALF})"):
        _apply_loop(context, apply, f" + 64 * {_HALF}")


def _apply_loop(context: Context, apply: ir.FragApply, half_rows: str) -> None:
    fragment = apply.fragment
    pairs = is_packed(fragment) or any(is_packed(element.fragment) for element in _elements(apply.value))
    count = registers(fragment) // 2 if pairs and not is_packed(fragment) else registers(fragment)
    numbers, assignments = _row_and_column(apply, half_rows, pairs), _assignments(context, apply, pairs)
    out = context.out
    out.unroll()
    head = f"for (int {_REGISTER} = 0; {_REGISTER} < {count}; ++{_REGISTER})"
    note = f"line {apply.span.line}"
    if not numbers and len(assignments) == 1 and out.fits(f"{head} {assignments[0]}"):
        out.noted(f"{head} {assignments[0]}", note)
        return
    with out.block(head, note=note):
        for line in (*numbers, *assignments):
            out.wrapped(line)


def _row_and_column(apply: ir.FragApply, half_rows: str, pairs: bool) -> list[str]:
    """The element's row and column number (of a pair: of its first element), where the expression needs them."""
    needed = set(_numbers(apply.value))
    row, *column = apply.indices
    lines = []
    if row in needed:
        high = f"8 * {_REGISTER}" if not column else f"8 * ({_row_register(pairs)})"
        lines.append(f"const int {row.cname} = fragment_row(){half_rows} + {high};")
    if column and column[0] in needed:
        group = f"8 * ({_REGISTER} / 2)" if pairs else f"8 * ({_REGISTER} / 4) + {_REGISTER} % 2"
        lines.append(f"const int {column[0].cname} = fragment_column() + {group};")
    return lines


def _row_register(pairs: bool) -> str:
    """Which of a thread's two rows a register belongs to."""
    return f"{_REGISTER} % 2" if pairs else f"{_REGISTER} / 2 % 2"


def _assignments(context: Context, apply: ir.FragApply, pairs: bool) -> list[str]:
    """One register, or the two of a pair; each element's value depends on nothing but elements at its own place."""
    fragment = apply.fragment
    if not pairs:
        return [f"{_element(fragment, fragment, None)} = {_value(context, apply, None)};"]
    values = [_value(context, apply, position) for position in (0, 1)]
    if is_packed(fragment):
        return [f"{_array(fragment)}[{_REGISTER}] = {_PACK[fragment.elem]}({values[0]}, {values[1]});"]
    return [f"{_element(fragment, fragment, position)} = {value};" for position, value in enumerate(values)]


def _value(context: Context, apply: ir.FragApply, position: int | None) -> str:
    """The expression at a register's element; ``position`` 0 or 1: of a pair."""
    value = apply.value
    if is_packed(apply.fragment) and isinstance(value, ir.Intrinsic) and value.target is apply.fragment.elem:
        value = value.args[0]  # packing rounds
    if position == 1:
        column = apply.indices[1]
        value = rewrite.replace(value, {column: replace(column, cname=f"({column.cname} + 1)")})
    return context.printer(lambda e: _element(e.fragment, apply.fragment, position))(value)


def _array(fragment: ir.Fragment) -> str:
    return f"{fragment.cname}[{_HALF}]" if halves(fragment) > 1 else fragment.cname


def _element(fragment: ir.Fragment, looped: ir.Fragment, position: int | None) -> str:
    """The element of ``fragment`` that belongs to register r_ of ``looped``: a register of 32 bits (position None), or
    number 0 or 1 of a pair."""
    array = _array(fragment)
    if fragment.cols is None:
        return f"{array}[{_REGISTER if looped.cols is None else _row_register(position is not None)}]"
    if is_packed(fragment):
        return f"{_UNPACK[fragment.elem][position or 0]}({array}[{_REGISTER}])"
    if position is None:
        return f"{array}[{_REGISTER}]"
    return f"{array}[2 * {_REGISTER}{' + 1' if position else ''}]"


# --------------------------------------------------------------------------------------------------------------
# Expressions of frag.apply


def _elements(expr: ir.Expr) -> list[ir.FragElement]:
    return [node for node in rewrite.nodes(expr) if isinstance(node, ir.FragElement)]


def _numbers(expr: ir.Expr) -> Iterator[ir.Symbol]:
    """The symbols whose value is needed: not those that only say which element of a fragment, found by register."""
    if isinstance(expr, ir.Var):
        yield expr.symbol
    elif not isinstance(expr, ir.FragElement):
        for part in vars(expr).values():
            for item in part if isinstance(part, tuple) else (part,):
                if isinstance(item, get_args(ir.Expr)):
                    yield from _numbers(item)


def _check_elements(expr: ir.Expr, apply: ir.FragApply) -> None:
    """A thread can only read the elements that it holds itself: those of its own row and column."""
    expected = tuple(ir.Var(index) for index in apply.indices)
    for element in _elements(expr):
        fragment = element.fragment
        wanted = expected[:1] if fragment.cols is None else expected
        if element.indices != wanted:
            names = ", ".join(index.name for index in apply.indices[: len(wanted)])
            refuse(apply.span, f"an element of {fragment.name} can only be read at ({names}) here")
        if fragment.rows != apply.fragment.rows or (fragment.cols is not None and fragment.cols != apply.fragment.cols):
            refuse(apply.span, f"{fragment.name} and {apply.fragment.name} have different shapes")
