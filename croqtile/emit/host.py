"""The host wrapper of a tile function: checks its arguments, builds the tensor maps, launches the kernel once.

What is the same for all wrappers is in the runtime (``runtime/choreo/launch.h``); the text made here only says which
dimension binds which symbol, how the maps look and what the kernel takes.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator

from croqtile import ir
from croqtile.emit.expressions import Printer, is_floating
from croqtile.emit.overflow import limits
from croqtile.emit.plan import EmitPlan, MapPlan, Param

_MAP_TYPES = {
    ir.Elem.F16: "CU_TENSOR_MAP_DATA_TYPE_FLOAT16",
    ir.Elem.BF16: "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16",
    ir.Elem.F32: "CU_TENSOR_MAP_DATA_TYPE_FLOAT32",
    ir.Elem.S32: "CU_TENSOR_MAP_DATA_TYPE_INT32",
    ir.Elem.U32: "CU_TENSOR_MAP_DATA_TYPE_UINT32",
}  # elements of one byte are UINT8: the engine moves bytes, and zero is the same byte in all of them

_SWIZZLES = {
    0: "CU_TENSOR_MAP_SWIZZLE_NONE",
    32: "CU_TENSOR_MAP_SWIZZLE_32B",
    64: "CU_TENSOR_MAP_SWIZZLE_64B",
    128: "CU_TENSOR_MAP_SWIZZLE_128B",
}


_SHORT_FLOATS = (ir.Elem.F16, ir.Elem.BF16, ir.Elem.E4M3, ir.Elem.E5M2)
_MATH = {"__exp2f": "std::exp2", "__expf": "std::exp", "__logf": "std::log"}


def emit_wrapper(plan: EmitPlan) -> str:
    """The definition of the host function ``plan.kernel.name``: one view per tensor, in the order of the parameters."""
    kernel = plan.kernel
    body = [
        f"constexpr choreo::launch::Site site_{{{_quoted(kernel.name)}, {_quoted(kernel.span.file)}, "
        f"{kernel.span.line}}};",
        *_dimensions(kernel),
        *_captured(kernel),
        *_limits(kernel),
        *_conditions(plan),
        *_grid(plan),
        *_pointers(plan),
        *(line for tensor_map in plan.maps for line in _tensor_map(tensor_map)),
        *_launch(plan),
    ]
    return "\n".join([f"{_signature(plan)} {{", *(f"  {line}" for line in body), "}"]) + "\n"


def _signature(plan: EmitPlan) -> str:
    start = f"void {plan.kernel.name}("
    parameters = (_view_parameter(plan, tensor) for tensor in plan.kernel.tensors)
    return start + (",\n" + " " * len(start)).join(parameters) + ")"


def _view_parameter(plan: EmitPlan, tensor: ir.Tensor) -> str:
    """A tensor that the kernel only reads is taken as a view of constant elements, which other views convert to."""
    element = f"choreo::{tensor.elem.spelling}"
    constant = "" if _is_written(plan, tensor) else "const "
    return f"const choreo::spanned_view<{constant}{element}, {len(tensor.dims)}>& {tensor.name}"


def _is_written(plan: EmitPlan, tensor: ir.Tensor) -> bool:
    by_copy = any(tensor_map.writes and tensor_map.tensor is tensor for tensor_map in plan.maps)
    by_pointer = any(param.source is tensor and not param.ctype.startswith("const ") for param in plan.params)
    return by_copy or by_pointer


def _dimensions(kernel: ir.Kernel) -> Iterator[str]:
    """Every symbolic dimension from the first place where it stands; the other places must agree."""
    bound: dict[ir.Symbol, tuple[ir.Tensor, int]] = {}
    for tensor in kernel.tensors:
        for index, dim in enumerate(tensor.dims):
            place = f"{_quoted(tensor.name)}, {index}"
            extent = f"{tensor.name}.shape()[{index}]"
            if isinstance(dim, ir.IntLit):
                yield f"choreo::launch::constant_dimension(site_, {place}, {dim.value}, {extent});"
            elif isinstance(dim, ir.Var) and dim.symbol in bound:
                first, first_index = bound[dim.symbol]
                yield (
                    f"choreo::launch::same_dimension(site_, {_quoted(dim.symbol.name)}, {_quoted(first.name)}, "
                    f"{first_index}, {dim.symbol.cname}, {place}, {extent});"
                )
            elif isinstance(dim, ir.Var):
                bound[dim.symbol] = (tensor, index)
                yield (
                    f"[[maybe_unused]] const long long {dim.symbol.cname} = "
                    f"choreo::launch::dimension(site_, {_quoted(dim.symbol.name)}, {place}, {extent});"
                )
            else:
                raise AssertionError(f"dimension {index} of {tensor.name} is neither a constant nor a name")


def _limits(kernel: ir.Kernel) -> Iterator[str]:
    """What the kernel computes in 32 bits must fit them (see ``overflow``)."""
    texts = {(_source(limit.expr), expression(limit.value)): None for limit in limits(kernel)}
    for what, value in texts:
        yield f"choreo::launch::fits(site_, {_quoted(what)}, {value});"


def _captured(kernel: ir.Kernel) -> Iterator[str]:
    for captured in kernel.captured:
        symbol = captured.symbol
        yield f"[[maybe_unused]] const {symbol.ctype} {symbol.cname} = {expression(captured.value)};"


def _conditions(plan: EmitPlan) -> Iterator[str]:
    """Tensors that are cut into pieces must hold whole ones (see ``tensormap``)."""
    seen: set[tuple[str, ir.Expr, ir.Expr]] = set()
    for tensor_map in plan.maps:
        for extent, dimension in tensor_map.whole:
            key = (tensor_map.tensor.name, extent, dimension)
            if key not in seen:
                seen.add(key)
                what = _quoted(_source(dimension))
                yield (
                    f"choreo::launch::whole_pieces(site_, {_quoted(tensor_map.tensor.name)}, {what}, "
                    f"{expression(dimension)}, {expression(extent)});"
                )


def _grid(plan: EmitPlan) -> Iterator[str]:
    extents = {"x": "1", "y": "1", "z": "1"}
    for axis in plan.grid:
        bound = axis.symbol.bound
        assert bound is not None, "a grid index has a bound"
        extents[axis.axis] = (
            f"choreo::launch::grid_extent(site_, {_quoted(axis.symbol.name)}, '{axis.axis}', {expression(bound)})"
        )
    yield f"const dim3 grid_({extents['x']},"
    yield f"                 {extents['y']},"
    yield f"                 {extents['z']});"
    if plan.kernel.cluster > 1:
        first = plan.grid[0]
        yield (
            f"choreo::launch::whole_clusters(site_, {_quoted(first.symbol.name)}, grid_.{first.axis}, "
            f"{plan.kernel.cluster});"
        )


def _pointers(plan: EmitPlan) -> Iterator[str]:
    """Parameters that the kernel addresses itself; those behind tensor maps are checked when the map is built."""
    for param in plan.params:
        if isinstance(param.source, ir.Tensor):
            tensor = param.source
            yield (
                f"choreo::launch::check_pointer(site_, {_quoted(tensor.name)}, {tensor.name}.data(), "
                f"{tensor.elem.bytes});"
            )


def _tensor_map(tensor_map: MapPlan) -> Iterator[str]:
    tensor = tensor_map.tensor
    extents = ", ".join(expression(dim.extent) for dim in tensor_map.dims)
    strides = ", ".join(expression(dim.stride) for dim in tensor_map.dims)
    box = ", ".join(str(extent) for extent in tensor_map.box)
    yield (
        f"const CUtensorMap {tensor_map.name} = "
        f"choreo::launch::encode(site_, choreo::launch::TileMap<{len(tensor_map.dims)}>{{"
    )
    yield (
        f"    {_quoted(tensor.name)}, {tensor.name}.data(), "
        f"{_MAP_TYPES.get(tensor.elem, 'CU_TENSOR_MAP_DATA_TYPE_UINT8')}, {tensor.elem.bytes},"
    )
    yield f"    {{{extents}}}, {{{strides}}}, {{{box}}}, {_SWIZZLES[tensor_map.swizzle]}}});"


def _launch(plan: EmitPlan) -> Iterator[str]:
    call = f"choreo::launch::enqueue(site_, {plan.function}, grid_, {plan.threads}, {plan.dynamic_bytes},"
    arguments = ", ".join(_argument(param) for param in plan.params) + ");"
    yield "static std::atomic<std::uint64_t> devices_{0};  // on which the limit of shared memory is raised"
    yield f"choreo::launch::allow_dynamic_memory(site_, {plan.function}, {plan.dynamic_bytes}, devices_);"
    if plan.stress is not None:
        yield f"choreo::stress::prepare({_quoted(plan.stress.warning)}, {plan.kernel.warpgroups});"
    yield call
    indent = " " * 24
    yield from textwrap.wrap(
        arguments, 116, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    if not plan.kernel.asynchronous:
        yield "choreo::launch::finish(site_);"


def _argument(param: Param) -> str:
    if isinstance(param.source, MapPlan):
        return param.source.name
    if isinstance(param.source, ir.Tensor):
        return f"{param.source.name}.data()"
    if isinstance(param.source, ir.Symbol):
        return f"static_cast<{param.ctype}>({param.source.cname})"
    return f"static_cast<{param.ctype}>({param.source.symbol.cname})"


class _LaunchPrinter(Printer):
    """Launch-time expressions. Dimensions are ``long long`` in the wrapper: products of them do not overflow. The
    functions of the device code do not exist on the host."""

    def _call(self, expr: ir.Intrinsic) -> str:
        arguments = ", ".join(self(arg) for arg in expr.args)
        if expr.name == "cdiv":
            return f"choreo::launch::ceil_div({arguments})"
        if expr.target in _SHORT_FLOATS:
            return f"choreo::to_f32(static_cast<choreo::{expr.target.spelling}>(static_cast<float>({arguments})))"
        if expr.name in ("__max", "__min"):
            type_ = "float" if any(is_floating(arg) for arg in expr.args) else "long long"
            return f"std::{expr.name[2:]}<{type_}>({arguments})"
        if expr.name in _MATH:
            return f"{_MATH[expr.name]}(static_cast<float>({arguments}))"
        return super()._call(expr)


expression = _LaunchPrinter()


class _SourcePrinter(Printer):
    """Expressions as in the user's file, for messages."""

    def _text(self, expr: ir.Expr) -> tuple[str, int]:
        text, precedence = super()._text(expr)
        return (expr.symbol.name if isinstance(expr, ir.Var) else text), precedence

    def _call(self, expr: ir.Intrinsic) -> str:
        return f"{expr.name}({', '.join(self(argument) for argument in expr.args)})"


_source = _SourcePrinter()


def _quoted(text: str) -> str:
    """A C++ string literal."""
    return json.dumps(text, ensure_ascii=False)
