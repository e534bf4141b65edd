"""The integer values of a kernel's scalars at a point of one role instance, in symbolic form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union

from croqtile import ir, symbolic
from croqtile.symbolic import Affine, Facts, Untranslatable
from croqtile.walk import RoleKey


class Launch:
    """Values that the launch fixes: dimensions, grid indices, cluster rank, captured scalars. One per kernel."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self.captured = {captured.symbol: captured.value for captured in kernel.captured}
        symbols = [*kernel.dims, *kernel.grid, *([kernel.cluster_rank] if kernel.cluster_rank else [])]
        count: dict[str, int] = {}
        for symbol in symbols:
            count[symbol.name] = count.get(symbol.name, 0) + 1
        self.names = {symbol: symbol.name if count[symbol.name] == 1 else symbol.cname for symbol in symbols}
        self.cluster = kernel.cluster
        # 0 ≤ index < bound for every grid index, as facts ≥ 0.
        facts: list[Affine] = []
        scope = Scope(self, None)
        for index in kernel.grid:
            if index.bound is not None:
                try:
                    facts.append(scope.value(index.bound) - symbolic.constant(1) - scope.value(ir.Var(index)))
                except Untranslatable:
                    continue
        self.facts: Facts = tuple(facts)

    def value(self, symbol: ir.Symbol) -> Affine | None:
        """None for a symbol that is not fixed at launch."""
        if symbol in self.captured:
            return Scope(self, None).value(self.captured[symbol])
        if symbol.kind is ir.SymbolKind.CLUSTER:
            return symbolic.launch_value(self.names.get(symbol, symbol.name), 0, self.cluster - 1)
        if symbol.kind is ir.SymbolKind.DIM:
            return symbolic.launch_value(self.names.get(symbol, symbol.name), 1)
        if symbol.kind is ir.SymbolKind.GRID:
            return symbolic.launch_value(self.names.get(symbol, symbol.name), 0)
        return None


# What is known of a scalar: its value, or why it is not known.
Known = Union[Affine, str]


class Scope:
    """Visible scalars and what is known about them, for the role instance ``key`` (None: block level)."""

    def __init__(self, launch: Launch, key: RoleKey | None) -> None:
        self.launch = launch
        self.key = key
        self.known: dict[ir.Symbol, Known] = {}
        self.facts: Facts = getattr(launch, "facts", ())

    def value(self, expr: ir.Expr) -> Affine:
        """The symbolic value. Raises Untranslatable."""
        if isinstance(expr, ir.IntLit):
            return symbolic.constant(expr.value)
        if isinstance(expr, ir.Var):
            return self._variable(expr.symbol)
        if isinstance(expr, ir.Binary):
            return self._binary(expr.op, self.value(expr.left), self.value(expr.right))
        if isinstance(expr, ir.Unary):
            operand = self.value(expr.operand)
            return operand.scaled(-1) if expr.op == "-" else symbolic.negate(operand, self.facts)
        if isinstance(expr, ir.Select):
            condition = self.value(expr.condition)
            if condition.is_constant:
                return self.value(expr.yes if condition.constant else expr.no)
            raise Untranslatable("a conditional expression has no symbolic value")
        if isinstance(expr, ir.Intrinsic) and len(expr.args) == 2 and expr.name in ("cdiv", "__max", "__min"):
            left, right = (self.value(argument) for argument in expr.args)
            if expr.name == "cdiv":
                return symbolic.round_up_divide(left, right, self.facts)
            return symbolic.extreme(expr.name.strip("_"), left, right, self.facts)
        if isinstance(expr, ir.TensorElement):
            raise Untranslatable(f"it depends on data (an element of `{expr.tensor.name}`)")
        raise Untranslatable("it is no integer expression")

    def _variable(self, symbol: ir.Symbol) -> Affine:
        if symbol.kind is ir.SymbolKind.WARPGROUP:
            if self.key is None:
                raise Untranslatable(f"`{symbol.name}` differs between the warpgroups")
            return symbolic.constant(self.key.warpgroup)
        if symbol.kind is ir.SymbolKind.THREAD:
            if self.key is None or self.key.thread is None:
                raise Untranslatable(f"`{symbol.name}` differs between the threads of the warpgroup")
            return symbolic.constant(self.key.thread)
        if symbol.ctype != "int":
            raise Untranslatable(f"`{symbol.name}` is a {symbol.ctype}, with which arithmetic is another")
        fixed = self.launch.value(symbol)
        if fixed is not None:
            return fixed
        known = self.known.get(symbol, f"the value of `{symbol.name}` is not known")
        if isinstance(known, str):
            raise Untranslatable(known)
        return known

    def _binary(self, op: str, left: Affine, right: Affine) -> Affine:
        if op == "+":
            return left + right
        if op == "-":
            return left - right
        if op == "*":
            return symbolic.multiply(left, right, self.facts)
        if op == "/":
            return symbolic.divide(left, right, self.facts)
        if op == "%":
            return symbolic.remainder(left, right, self.facts)
        if op in ("&&", "||"):
            return symbolic.logical(op, left, right)
        return symbolic.compare(op, left, right, self.facts)

    def bind(self, symbol: ir.Symbol, expr: ir.Expr) -> None:
        """``symbol = expr``, known or not."""
        try:
            self.known[symbol] = self.value(expr)
        except Untranslatable as error:
            self.known[symbol] = f"`{symbol.name}` is not known: {error}"

    def forget(self, symbol: ir.Symbol, why: str) -> None:
        self.known[symbol] = f"`{symbol.name}` is not known: {why}"

    def aliases(self) -> Mapping[str, str]:
        """Names of launch-time values, by normalised text."""
        return {
            str(value): symbol.name
            for symbol, value in self.known.items()
            if isinstance(value, Affine) and value.terms and value.launch_only and not value.constant
        }
