"""Scalar expressions of the IR as C++ text, with the fewest parentheses that keep the meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from croqtile import ir

_PRECEDENCE = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6,
}  # fmt: skip
_SELECT, _UNARY, _ATOM = 0, 7, 8

# Functions of the language → device functions.
_FLOAT_FUNCTIONS = {
    "__max": "fmaxf",
    "__min": "fminf",
    "__exp2f": "exp2_approx",
    "__expf": "__expf",
    "__logf": "__logf",
}
_INTEGER_FUNCTIONS = {"cdiv": "divide_up", "__max": "max", "__min": "min"}
_ROUNDING = {
    ir.Elem.F16: "round_f16",
    ir.Elem.BF16: "round_bf16",
    ir.Elem.E4M3: "round_e4m3",
    ir.Elem.E5M2: "round_e5m2",
    ir.Elem.F32: "static_cast<float>",
    ir.Elem.S32: "static_cast<int>",
    ir.Elem.U32: "static_cast<uint32_t>",
    ir.Elem.S8: "static_cast<int8_t>",
    ir.Elem.U8: "static_cast<uint8_t>",
}

_SHORT_FLOATS = (ir.Elem.F16, ir.Elem.BF16, ir.Elem.E4M3, ir.Elem.E5M2)

Elements = Callable[[ir.FragElement], str]


class Printer:
    """``substitutes`` replaces whole subexpressions (ring slots) or symbols by text; ``elements`` says how an element
    of a fragment is written, where one may stand."""

    def __init__(
        self,
        substitutes: Mapping[ir.Expr, str] | None = None,
        elements: Elements | None = None,
    ) -> None:
        self._substitutes = substitutes or {}
        self._elements = elements

    def __call__(self, expr: ir.Expr) -> str:
        return self._text(expr)[0]

    def operand(self, expr: ir.Expr) -> str:
        """The text, in parentheses unless it is a name, a literal or a call."""
        text, precedence = self._text(expr)
        return text if precedence == _ATOM else f"({text})"

    def _text(self, expr: ir.Expr) -> tuple[str, int]:
        if expr in self._substitutes:
            text = self._substitutes[expr]
            return text, _SELECT if " " in text and not text.startswith("(") else _ATOM
        match expr:
            case ir.IntLit(value):
                return str(value), _ATOM if value >= 0 else _UNARY
            case ir.FloatLit(text):
                return _float(text)
            case ir.Var(symbol):
                return symbol.cname, _ATOM
            case ir.Binary():
                return self._binary(expr)
            case ir.Unary(op, operand):
                text, precedence = self._text(operand)
                return op + (text if precedence >= _ATOM else f"({text})"), _UNARY
            case ir.Select(condition, yes, no):
                return f"{self._above(condition, _SELECT)} ? {self._above(yes, _SELECT)} : {self(no)}", _SELECT
            case ir.Intrinsic():
                return self._call(expr), _ATOM
            case ir.FragElement():
                assert self._elements is not None, "the checker allows fragment elements in frag.apply only"
                return self._elements(expr), _ATOM
            case ir.TensorElement(tensor, indices):
                return self._tensor_element(tensor, indices), _ATOM

    def _above(self, expr: ir.Expr, level: int) -> str:
        """In parentheses unless it binds more tightly than ``level``."""
        text, precedence = self._text(expr)
        return text if precedence > level else f"({text})"

    def _binary(self, expr: ir.Binary) -> tuple[str, int]:
        level = _PRECEDENCE[expr.op]
        left = self._above(expr.left, level - 1)
        right = self._above(expr.right, level if expr.op not in ("&&", "||") else level - 1)
        if expr.op == "||":  # gcc-style warning about && inside ||
            left, right = (
                f"({text})" if isinstance(side, ir.Binary) and side.op == "&&" else text
                for text, side in ((left, expr.left), (right, expr.right))
            )
        return f"{left} {expr.op} {right}", level

    def _call(self, expr: ir.Intrinsic) -> str:
        arguments = ", ".join(self(arg) for arg in expr.args)
        if expr.target is not None:
            return f"{_ROUNDING[expr.target]}({arguments})"
        floating = any(is_floating(arg) for arg in expr.args) or expr.name in ("__exp2f", "__expf", "__logf")
        return f"{(_FLOAT_FUNCTIONS if floating else _INTEGER_FUNCTIONS)[expr.name]}({arguments})"

    def _tensor_element(self, tensor: ir.Tensor, indices: tuple[ir.Expr, ...]) -> str:
        position = self.operand(indices[0])
        for extent, index in zip(tensor.dims[1:], indices[1:], strict=True):
            position = f"({position} * static_cast<int64_t>({self(extent)}) + {self(index)})"
        text = f"{tensor.name}[{position}]"
        return f"static_cast<float>({text})" if tensor.elem in _SHORT_FLOATS else text


def is_floating(expr: ir.Expr) -> bool:
    """Has the expression a floating-point value? (Elements of integer tensors and fragments have not.)"""
    match expr:
        case ir.FloatLit():
            return True
        case ir.Var(symbol):
            return symbol.ctype == "float"
        case ir.Binary(op, left, right):
            return op in "+-*/" and (is_floating(left) or is_floating(right))
        case ir.Unary(op, operand):
            return op == "-" and is_floating(operand)
        case ir.Select(_, yes, no):
            return is_floating(yes) or is_floating(no)
        case ir.Intrinsic(name, args, target):
            if target is not None:
                return target not in (ir.Elem.S32, ir.Elem.U32, ir.Elem.S8, ir.Elem.U8)
            return name in ("__exp2f", "__expf", "__logf") or any(is_floating(arg) for arg in args)
        case ir.FragElement(fragment, _):
            return fragment.elem not in (ir.Elem.S32, ir.Elem.U32)
        case ir.TensorElement(tensor, _):
            return tensor.elem not in (ir.Elem.S32, ir.Elem.U32, ir.Elem.S8, ir.Elem.U8)
        case _:
            return False


def _float(text: str) -> tuple[str, int]:
    if text.lstrip("-") == "inf":
        return ("-INFINITY", _UNARY) if text.startswith("-") else ("INFINITY", _ATOM)
    return text, _UNARY if text.startswith("-") else _ATOM
