"""Which integer expressions of a kernel could leave 32 bits, and what the host wrapper must check before it launches.

The wrapper evaluates launch-time expressions in 64 bits, the kernel in 32: past 2³¹ − 1 they would differ. So the
wrapper refuses to launch where an expression of the kernel, or a coordinate of a tile, leaves that range. Most never
can: tile counts of dimensions that fit are small. A bounded index stands for its last value; expressions of scalars
that the kernel changes as it goes are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from croqtile import fold, ir, rewrite
from croqtile.emit.expressions import is_floating

LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1
Interval = tuple[int, int]
_WITHIN: Interval = (LOWEST, HIGHEST)
_BINARY_FUNCTIONS = ("cdiv", "__max", "__min")


@dataclass(frozen=True)
class Limit:
    """``value``, of launch-time symbols, must fit 32 bits: the largest that ``expr`` of the kernel becomes."""

    expr: ir.Expr
    value: ir.Expr


def limits(kernel: ir.Kernel) -> tuple[Limit, ...]:
    """What to check, parts before what contains them: so no check itself leaves 64 bits."""
    found = dict.fromkeys(_Kernel(kernel).limits())
    return tuple(sorted(found, key=lambda limit: sum(1 for _ in rewrite.nodes(limit.value))))


class _Kernel:
    def __init__(self, kernel: ir.Kernel) -> None:
        self.kernel = kernel
        lets = (s for s in rewrite.statements(kernel.body) if isinstance(s, ir.Let) and not s.symbol.mutable)
        self.definitions = {let.symbol: let.value for let in lets}

    def limits(self) -> Iterator[Limit]:
        for captured in self.kernel.captured:  # computed in 64 bits, passed in 32
            if captured.symbol.ctype == "int" and not _inside(self.raw(captured.value)):
                yield Limit(captured.value, captured.value)
        roots = [node for node in rewrite.nodes(self.kernel.body) if isinstance(node, ir.Binary)]
        for view in rewrite.nodes(self.kernel.body):
            if isinstance(view, ir.View) and isinstance(view.root, ir.Tensor):
                roots += [
                    node for dim in view.dims for node in rewrite.nodes(_start(dim)) if isinstance(node, ir.Binary)
                ]
        for expr in roots:
            if expr.op not in "+-*" or is_floating(expr) or _inside(self.raw(expr)):
                continue
            value = self.highest(expr)
            if value is not None and not isinstance(value, ir.IntLit):
                yield Limit(expr, value)

    # ----------------------------------------------------------------------------------------------------------
    # Bounds that hold for every launch

    def interval(self, expr: ir.Expr) -> Interval:
        """Of a value that fits 32 bits, as everything does whose parts were checked."""
        low, high = self.raw(expr)
        return max(low, LOWEST), min(high, HIGHEST)

    def raw(self, expr: ir.Expr) -> Interval:
        """Of the exact result, its parts fitting 32 bits."""
        if isinstance(expr, ir.IntLit):
            return expr.value, expr.value
        if isinstance(expr, ir.Var):
            return self._symbol(expr.symbol)
        if isinstance(expr, ir.Binary):
            return _combined(expr.op, self.interval(expr.left), self.interval(expr.right))
        if isinstance(expr, ir.Unary):
            low, high = self.interval(expr.operand)
            return (-high, -low) if expr.op == "-" else (0, 1)
        if isinstance(expr, ir.Select):
            (a, b), (c, d) = self.interval(expr.yes), self.interval(expr.no)
            return min(a, c), max(b, d)
        if isinstance(expr, ir.Intrinsic) and expr.name in _BINARY_FUNCTIONS and not is_floating(expr):
            return _combined(expr.name, *(self.interval(argument) for argument in expr.args))
        return _WITHIN

    def _symbol(self, symbol: ir.Symbol) -> Interval:
        if symbol.kind is ir.SymbolKind.DIM:
            return 1, HIGHEST
        if symbol.bound is not None:
            return 0, max(0, self.interval(symbol.bound)[1] - 1)
        if symbol in self.definitions:
            return self.interval(self.definitions[symbol])
        return _WITHIN

    # ----------------------------------------------------------------------------------------------------------
    # Extreme values as launch-time expressions; None where there is none that is simple

    def _launch_only(self, expr: ir.Expr) -> bool:
        kinds = (ir.SymbolKind.DIM, ir.SymbolKind.CAPTURED)
        plain = (ir.IntLit, ir.Var, ir.Binary, ir.Unary, ir.Select, ir.Intrinsic, ir.Symbol)
        return all(
            isinstance(node, plain) and (not isinstance(node, ir.Symbol) or node.kind in kinds)
            for node in rewrite.nodes(expr)
        )

    def highest(self, expr: ir.Expr) -> ir.Expr | None:
        if self._launch_only(expr):
            return expr
        if isinstance(expr, ir.Var):
            return self._highest_symbol(expr.symbol)
        if isinstance(expr, ir.Intrinsic) and expr.name in _BINARY_FUNCTIONS:
            return self._highest_call(expr)
        if not isinstance(expr, ir.Binary):
            return None
        left, right = self.highest(expr.left), self.highest(expr.right)
        if expr.op == "-":
            right = self.lowest(expr.right)
        if left is None or right is None:
            return None
        if expr.op in "+-" or (expr.op == "*" and self._positive(expr.left) and self._positive(expr.right)):
            return fold.binary(expr.op, left, right)
        if expr.op == "/" and isinstance(right, ir.IntLit) and right.value > 0 and self._positive(expr.left):
            return fold.binary("/", left, right)
        if expr.op == "%" and isinstance(right, ir.IntLit) and right.value > 0:
            return ir.IntLit(right.value - 1)
        return None

    def _highest_symbol(self, symbol: ir.Symbol) -> ir.Expr | None:
        if symbol.bound is not None:
            bound = self.highest(symbol.bound)
            return None if bound is None else fold.binary("-", bound, fold.ONE)
        return self.highest(self.definitions[symbol]) if symbol in self.definitions else None

    def _highest_call(self, call: ir.Intrinsic) -> ir.Expr | None:
        left, right = (self.highest(argument) for argument in call.args)
        if left is None or right is None or (call.name == "cdiv" and not isinstance(right, ir.IntLit)):
            return None
        return ir.Intrinsic(call.name, (left, right))

    def lowest(self, expr: ir.Expr) -> ir.Expr | None:
        if self._launch_only(expr):
            return expr
        return fold.ZERO if isinstance(expr, ir.Var) and expr.symbol.bound is not None else None

    def _positive(self, expr: ir.Expr) -> bool:
        return self.interval(expr)[0] >= 0


def _inside(interval: Interval) -> bool:
    return interval[0] >= LOWEST and interval[1] <= HIGHEST


def _start(dim: ir.ViewDim) -> ir.Expr:
    """Where a view starts along one dimension of its tensor: the device computes that for every tile."""
    start: ir.Expr = fold.ZERO
    for level in dim.levels:
        start = fold.binary("+", start, fold.binary("*", level.index, level.step))
    return start


def _combined(op: str, left: Interval, right: Interval) -> Interval:
    (a, b), (c, d) = left, right
    if op == "+":
        return a + c, b + d
    if op == "-":
        return a - d, b - c
    if op == "*":
        products = [x * y for x in left for y in right]
        return min(products), max(products)
    if op in ("/", "cdiv") and a >= 0 and c > 0:
        return (a // d, b // c) if op == "/" else (-(-a // d), -(-b // c))
    if op == "%" and a >= 0 and c > 0:
        return 0, min(b, d - 1)
    if op == "__max":
        return max(a, c), max(b, d)
    if op == "__min":
        return min(a, c), min(b, d)
    return (0, 1) if op in ("<", "<=", ">", ">=", "==", "!=", "&&", "||") else _WITHIN
