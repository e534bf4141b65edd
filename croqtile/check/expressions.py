"""Scalar expressions: names resolved, types checked, integer constants folded, bounds of bounded variables."""

from __future__ import annotations

from dataclasses import dataclass

from croqtile import ast, fold, ir, rewrite
from croqtile import diagnostics as diag
from croqtile.check.scope import WORDS, Context, FragmentName, ScalarName, ViewName, fail
from croqtile.check.types import element, scalar_type

_CALLS = {"cdiv": 2, "__max": 2, "__min": 2, "__exp2f": 1, "__expf": 1, "__logf": 1}
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=", "&&", "||")
_BOUNDED = (
    ir.SymbolKind.GRID,
    ir.SymbolKind.WARPGROUP,
    ir.SymbolKind.THREAD,
    ir.SymbolKind.LOOP,
    ir.SymbolKind.LAMBDA,
    ir.SymbolKind.CLUSTER,
)


@dataclass(frozen=True)
class Value:
    expr: ir.Expr
    type: str  # "int" | "float"


def scalar(ctx: Context, expr: ast.Expr) -> Value:
    """The meaning of a scalar expression."""
    if isinstance(expr, ast.Integer):
        return Value(ir.IntLit(expr.value), "int")
    if isinstance(expr, ast.Floating):
        return Value(ir.FloatLit(expr.text if expr.text[-1] in "fF" else expr.text + "f"), "float")
    if isinstance(expr, ast.Name):
        return _name(ctx, expr)
    if isinstance(expr, ast.Binary):
        return _binary(ctx, expr)
    if isinstance(expr, ast.Prefix):
        operand = scalar(ctx, expr.operand)
        if expr.op == "+":
            return operand
        if expr.op == "!":
            _want_int(operand, expr.operand.span)
        return Value(fold.unary(expr.op, operand.expr), operand.type)
    if isinstance(expr, ast.UpperBound):
        return Value(_upper_bound(ctx, expr), "int")
    if isinstance(expr, ast.Join):
        left, right = integer(ctx, expr.left), integer(ctx, expr.right)
        if bound(ctx, left) is None:
            fail(diag.Unbounded(expr.left.span, "the left side of '#'"))
        inner = bound(ctx, right)
        if inner is None:
            fail(diag.Unbounded(expr.right.span, "the right side of '#'"))
        return Value(fold.binary("+", fold.binary("*", left, inner), right), "int")
    if isinstance(expr, ast.Select):
        condition = integer(ctx, expr.condition)
        yes, no = scalar(ctx, expr.yes), scalar(ctx, expr.no)
        type_ = "float" if "float" in (yes.type, no.type) else "int"
        return Value(fold.select(condition, yes.expr, no.expr), type_)
    if isinstance(expr, ast.FunctionCall):
        return _call(ctx, expr)
    if isinstance(expr, ast.Convert):
        target, operand = element(expr.target), scalar(ctx, expr.operand)
        return Value(ir.Intrinsic("__to", (operand.expr,), target), scalar_type(target))
    if isinstance(expr, ast.Method):
        return _element(ctx, expr)
    fail(diag.WrongKind(expr.span, "a scalar", "this is an element of an array of buffers"))


def integer(ctx: Context, expr: ast.Expr) -> ir.Expr:
    """An integer expression (conditions too)."""
    value = scalar(ctx, expr)
    _want_int(value, expr.span)
    return value.expr


def extent(ctx: Context, expr: ast.Expr) -> ir.Expr:
    """A trip count or grid extent. If it is wrong, that is reported and the check goes on with some other one."""
    with ctx.recovering():
        return integer(ctx, expr)
    return fold.ONE


def constant(ctx: Context, expr: ast.Expr, what: str, minimum: int | None = 1) -> int:
    """An integer known at compile time. ``what`` names it in messages."""
    value = integer(ctx, expr)
    number = fold.integer(value)
    if number is None:
        for node in rewrite.symbols(value):
            if node.kind is ir.SymbolKind.DIM:
                fail(diag.SymbolicDimension(expr.span, what, node.name))
        fail(diag.NotConstant(expr.span, what))
    if minimum is not None and number < minimum:
        fail(diag.NotPositive(expr.span, what, number, minimum))
    return number


def divergent(ctx: Context, expr: ir.Expr) -> bool:
    """Whether the value may differ between the threads of a warpgroup."""
    return any(s.kind is ir.SymbolKind.THREAD or s in ctx.divergent for s in rewrite.symbols(expr))


def bound(ctx: Context, expr: ir.Expr) -> ir.Expr | None:
    """b such that 0 ≤ expr < b, for a bounded variable, or what is bounded by construction; else None.

    By construction: ``e % n``, ``a * bound(b) + b`` (what ``a # b`` means), ``p - c`` in a role whose p are all ≥ c,
    and names of such values.
    """
    if isinstance(expr, ir.Var):
        if expr.symbol.kind in _BOUNDED:
            return expr.symbol.bound
        definition = ctx.definitions.get(expr.symbol)
        return bound(ctx, definition) if definition is not None else None
    if not isinstance(expr, ir.Binary):
        return None
    if expr.op == "%" and _nonnegative(ctx, expr.left):
        return expr.right
    if expr.op == "+" and isinstance(expr.left, ir.Binary) and expr.left.op == "*":
        outer, inner = bound(ctx, expr.left.left), bound(ctx, expr.right)
        if outer is not None and inner is not None and inner == expr.left.right:
            return fold.binary("*", outer, inner)
    if expr.op == "-" and isinstance(expr.left, ir.Var) and expr.left.symbol is ctx.warpgroup:
        offset, whole = fold.integer(expr.right), expr.left.symbol.bound
        if offset is not None and whole is not None and ctx.place.active and 0 <= offset <= min(ctx.place.active):
            return fold.binary("-", whole, expr.right)
    return None


def _nonnegative(ctx: Context, expr: ir.Expr) -> bool:
    """Whether ``expr`` is certainly not negative."""
    if isinstance(expr, ir.IntLit):
        return expr.value >= 0
    if isinstance(expr, ir.Var):
        symbol, definition = expr.symbol, ctx.definitions.get(expr.symbol)
        if symbol.kind is ir.SymbolKind.DIM or symbol.kind in _BOUNDED:
            return True
        return definition is not None and _nonnegative(ctx, definition)
    if isinstance(expr, ir.Intrinsic):
        return expr.name == "cdiv" and all(_nonnegative(ctx, arg) for arg in expr.args)
    if bound(ctx, expr) is not None:
        return True
    return (
        isinstance(expr, ir.Binary) and expr.op in "+*/%" and all(_nonnegative(ctx, e) for e in (expr.left, expr.right))
    )


def extremes(ctx: Context, expr: ir.Expr) -> tuple[int, int] | None:
    """The least and the greatest value that ``expr`` certainly takes here, if that can be told.

    It can for constants, counters with constant bounds, and expressions of the warpgroup number.
    """
    number = fold.integer(expr)
    if number is not None:
        return number, number
    mentioned = set(rewrite.symbols(expr))
    if mentioned == {ctx.warpgroup} and ctx.warpgroup is not None and ctx.place.active:
        values = [fold.evaluate(expr, {ctx.warpgroup: p}) for p in ctx.place.active]
        known = [value for value in values if value is not None]
        return (min(known), max(known)) if len(known) == len(values) else None
    if isinstance(expr, ir.Var) and (limit := bound(ctx, expr)) is not None and (n := fold.integer(limit)):
        return 0, n - 1
    return None


def _want_int(value: Value, span: ir.Span) -> None:
    if value.type != "int":
        fail(diag.WrongScalarType(span, "an integer", "a floating-point value"))


def _name(ctx: Context, expr: ast.Name) -> Value:
    if expr.name == "inf" and ctx.scope.lookup("inf") is None:
        return Value(ir.FloatLit("inf"), "float")
    if expr.name == "_":
        fail(
            diag.WrongKind(expr.span, "an expression", "'_' is a whole dimension, only allowed in subspan and chunkat")
        )
    binding = ctx.lookup(expr.name, expr.span)
    if not isinstance(binding, ScalarName):
        fail(diag.WrongKind(expr.span, "a scalar", f"'{expr.name}' is {WORDS[type(binding)]}"))
    if binding.value is not None and isinstance(binding.value, ir.IntLit):
        return Value(binding.value, "int")
    return Value(ir.Var(binding.symbol), binding.symbol.ctype)


def _binary(ctx: Context, expr: ast.Binary) -> Value:
    left, right = scalar(ctx, expr.left), scalar(ctx, expr.right)
    if expr.op in ("%", "&&", "||"):
        _want_int(left, expr.left.span)
        _want_int(right, expr.right.span)
    integers = left.type == right.type == "int"
    if expr.op in "/%" and integers and fold.integer(right.expr) == 0:
        fail(diag.DivisionByZero(expr.right.span))
    result = fold.binary(expr.op, left.expr, right.expr) if integers else ir.Binary(expr.op, left.expr, right.expr)
    return Value(result, "int" if integers or expr.op in _COMPARISONS else "float")


def _upper_bound(ctx: Context, expr: ast.UpperBound) -> ir.Expr:
    value = _name(ctx, ast.Name(expr.name.span, expr.name.name))
    limit = bound(ctx, value.expr)
    if limit is None:
        fail(diag.Unbounded(expr.name.span, f"'{expr.name.name}' after '#'"))
    return limit


def _call(ctx: Context, expr: ast.FunctionCall) -> Value:
    name, arguments = expr.function.name, expr.arguments
    if name not in _CALLS:
        fail(diag.UnknownFunction(expr.function.span, name))
    if len(arguments) != _CALLS[name]:
        count = _CALLS[name]
        expected = f"{count} argument" + "s" * (count > 1)
        found = f"{len(arguments)} {'is' if len(arguments) == 1 else 'are'}"
        fail(diag.WrongArgumentCount(expr.span, name, expected, found))
    if name == "cdiv":
        a, b = (integer(ctx, argument) for argument in arguments)
        if fold.integer(b) == 0:
            fail(diag.DivisionByZero(arguments[1].span))
        return Value(fold.cdiv(a, b), "int")
    values = [scalar(ctx, argument) for argument in arguments]
    integers = name in ("__max", "__min") and all(value.type == "int" for value in values)
    numbers = [fold.integer(value.expr) for value in values]
    if integers and None not in numbers:
        known = [number for number in numbers if number is not None]
        return Value(ir.IntLit(max(known) if name == "__max" else min(known)), "int")
    return Value(ir.Intrinsic(name, tuple(value.expr for value in values)), "int" if integers else "float")


# --------------------------------------------------------------------------------------------------------------
# Single elements


def _element(ctx: Context, expr: ast.Method) -> Value:
    """``x.at(i, j)``: inside frag.apply an element of a fragment, anywhere one of a tensor."""
    if expr.name.name != "at" or not isinstance(expr.base, ast.Name):
        fail(diag.WrongKind(expr.span, "a scalar", "this is a view"))
    name, binding = expr.base.name, ctx.lookup(expr.base.name, expr.base.span)
    indices = tuple(integer(ctx, index) for index in expr.arguments)
    if isinstance(binding, FragmentName):
        _check_own_element(ctx, expr, binding.fragment, indices)
        return Value(ir.FragElement(binding.fragment, indices), scalar_type(binding.fragment.elem))
    if not (isinstance(binding, ViewName) and isinstance(binding.view, ir.View)):
        fail(diag.WrongKind(expr.base.span, "a fragment or a tensor", f"'{name}' is {WORDS[type(binding)]}"))
    tensor = binding.view.root
    if not isinstance(tensor, ir.Tensor) or any(dim.levels or not dim.kept for dim in binding.view.dims):
        fail(diag.WrongKind(expr.base.span, "a fragment or a tensor", f"'{name}' is neither; a tile needs subspan"))
    if len(indices) != len(tensor.dims):
        fail(diag.WrongRank(expr.span, f"'{name}'", len(tensor.dims), len(indices), "at gives"))
    return Value(ir.TensorElement(tensor, indices), scalar_type(tensor.elem))


def _check_own_element(ctx: Context, expr: ast.Method, fragment: ir.Fragment, indices: tuple[ir.Expr, ...]) -> None:
    """A thread holds the elements of its own rows and columns only, so the indices must be those of frag.apply."""
    if ctx.applying is None:
        fail(diag.ElementOutsideApply(expr.span, fragment.name))
    target, parameters = ctx.applying
    rank = 1 if fragment.cols is None else 2
    if len(indices) != rank:
        fail(diag.WrongRank(expr.span, f"'{fragment.name}'", rank, len(indices), "at gives"))
    if indices != tuple(ir.Var(symbol) for symbol in parameters[:rank]):
        if rank > len(parameters):
            fail(diag.MatrixElementInVector(expr.span, fragment.name, target.name))
        own = ", ".join(symbol.name for symbol in parameters[:rank])
        fail(diag.ForeignElement(expr.span, fragment.name, own))

    def check_shape() -> None:
        (rows, cols), (target_rows, target_cols) = ctx.shape_of(fragment), ctx.shape_of(target)
        if rows != target_rows or (cols is not None and cols != target_cols):
            found, wanted = ctx.spelled_shape(fragment), ctx.spelled_shape(target)
            ctx.report(diag.ShapeMismatch(expr.span, f"'{fragment.name}'", found, f"'{target.name}'", wanted))

    ctx.deferred.append(check_shape)
