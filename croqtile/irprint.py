"""The kernel IR as text, for people and for tests: close to the language, with everything that it leaves implicit.

Statements that ``lower`` has added carry ``// implied``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from croqtile import fold, ir

_PRECEDENCE = {
    "||": 1,
    "&&": 2,
    "==": 3,
    "!=": 3,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "%": 6,
}


def print_kernel(kernel: ir.Kernel) -> str:
    """``kernel`` as text."""
    return "\n".join(_kernel(kernel)) + "\n"


def _kernel(kernel: ir.Kernel) -> Iterator[str]:
    yield f"kernel {kernel.name} {{"
    for tensor in kernel.tensors:
        yield f"  tensor {tensor.name}: {tensor.elem.spelling} [{_list(tensor.dims)}]"
    for captured in kernel.captured:
        yield f"  captured {captured.symbol.ctype} {captured.symbol.cname} = {expression(captured.value)}"
    for symbol in kernel.grid:
        yield f"  grid {_bounded(symbol)}"
    if kernel.cluster_rank is not None:
        yield f"  cluster {_bounded(kernel.cluster_rank)}"
    thread = f", thread {_bounded(kernel.thread)}" if kernel.thread is not None else ""
    yield f"  warpgroup {_bounded(kernel.warpgroup)}{thread}"
    if kernel.launch_bounds is not None:
        yield f"  launch_bounds {kernel.launch_bounds}"
    if kernel.asynchronous:
        yield "  asynchronous"
    for buffer in kernel.buffers:
        array = f"[{buffer.count}]" if buffer.is_array else ""
        shape = _list(ir.IntLit(extent) for extent in buffer.shape)
        layout = f"swizzle {buffer.swizzle}" if buffer.swizzle else "row-major"
        yield f"  shared {buffer.elem.spelling} [{shape}] {buffer.name}{array}: {buffer.bytes} bytes, {layout}"
    for event in kernel.events:
        array = f"[{event.slots}]" if event.is_array else ""
        yield f"  event {event.name}{array}: {event.arrivals} arrival{'s' * (event.arrivals != 1)}"
    yield from _body(kernel.body, 1)
    yield "}"


def _body(body: Iterable[ir.Stmt], depth: int) -> Iterator[str]:
    margin = "  " * depth
    for s in body:
        if isinstance(s, ir.ForEach):
            yield f"{margin}foreach {_bounded(s.counter)} {{"
            yield from _body(s.body, depth + 1)
        elif isinstance(s, ir.If):
            yield f"{margin}if {expression(s.condition)} {{"
            yield from _body(s.then, depth + 1)
            if s.orelse:
                yield f"{margin}}} else {{"
                yield from _body(s.orelse, depth + 1)
        elif isinstance(s, ir.OnlyWarpgroups):
            yield f"{margin}only warpgroups {_numbers(s.instances)} {{"
            yield from _body(s.body, depth + 1)
        elif isinstance(s, ir.Roles):
            yield f"{margin}roles {{"
            yield from _body(s.prologue, depth + 1)
            for role in s.roles:
                threads = "all threads" if role.thread is None else f"thread {role.thread}"
                condition = expression(role.condition)
                yield f"{margin}  role warpgroups {_numbers(role.instances)}, {threads} {{  // {condition}"
                yield from _body(role.body, depth + 2)
                yield f"{margin}  }}"
        else:
            yield margin + statement(s)
            continue
        yield f"{margin}}}"


def statement(s: ir.Stmt) -> str:
    """One statement without a body."""
    if isinstance(s, ir.Let):
        return f"{'var' if s.symbol.mutable else 'let'} {s.symbol.ctype} {s.symbol.cname} = {expression(s.value)}"
    if isinstance(s, ir.Assign):
        return f"{s.symbol.cname} = {expression(s.value)}"
    if isinstance(s, ir.Wait):
        return f"wait {_event(s.event, s.slot)}"
    if isinstance(s, ir.Trigger):
        return f"trigger{'.cluster' if s.cluster else ''} {_event(s.event, s.slot)}"
    if isinstance(s, ir.CopyIn):
        suffix = (f".swiz<{s.swizzle}>" if s.swizzle else "") + (".multicast" if s.multicast else "")
        return f"copy.async<{_event(s.event, s.slot)}>{suffix} {view(s.source)} => {view(s.target)}"
    if isinstance(s, ir.CopyOut):
        return f"copy {view(s.source)} => {view(s.target)}"
    if isinstance(s, ir.AccFill):
        return f"fill {fragment(s.fragment)} = {expression(s.value)}"
    if isinstance(s, ir.Mma):
        a = view(s.a.view) if isinstance(s.a, ir.SharedOperand) else s.a.fragment.cname
        shape = f" m{s.m}n{s.n}k{s.k}" if s.m else ""
        kind = "explicit" if s.explicit else "direct"
        return f"mma.row.{s.b_layout}{shape} {s.accumulator.cname}, {a}, {view(s.b.view)}  // {kind}"
    if isinstance(s, ir.MmaCommit):
        return f"mma.commit{_implied(s.implied)}"
    if isinstance(s, ir.MmaWait):
        return f"mma.wait<{s.pending}>{_implied(s.implied)}"
    if isinstance(s, ir.MmaStore):
        return f"mma.store {s.fragment.cname}, {view(s.target)}"
    if isinstance(s, ir.FragDecl):
        initial = f" = {expression(s.fragment.init)}" if s.fragment.init is not None else ""
        return f"fragment {fragment(s.fragment)}{initial}"
    if isinstance(s, ir.FragApply):
        indices = ", ".join(symbol.cname for symbol in s.indices)
        return f"apply {s.fragment.cname}({indices}) = {expression(s.value)}"
    if isinstance(s, ir.FragCopy):
        return f"copy {s.source.cname} => {s.target.cname}"
    if isinstance(s, ir.FragReduce):
        return f"reduce_{s.op} {s.source.cname} => {s.target.cname}"
    if isinstance(s, ir.SyncWarpgroups):
        return f"sync warpgroups {_numbers(s.members)}"
    if isinstance(s, ir.SyncCta):
        return "sync cta"
    if isinstance(s, ir.Call):
        arguments = (view(a) if isinstance(a, ir.View) else expression(a) for a in s.args)
        return f"call {s.function}({', '.join(arguments)})"
    raise AssertionError(f"{type(s).__name__} has a body")


def expression(expr: ir.Expr) -> str:
    """An expression with the fewest parentheses."""
    return _expression(expr, 0)


def _expression(expr: ir.Expr, outer: int) -> str:
    if isinstance(expr, ir.IntLit):
        return str(expr.value) if expr.value >= 0 or outer < 5 else f"({expr.value})"
    if isinstance(expr, ir.FloatLit):
        return expr.text
    if isinstance(expr, ir.Var):
        return expr.symbol.cname
    if isinstance(expr, ir.Binary):
        own = _PRECEDENCE[expr.op]
        text = f"{_expression(expr.left, own)} {expr.op} {_expression(expr.right, own + 1)}"
        return f"({text})" if own < outer else text
    if isinstance(expr, ir.Unary):
        return f"{expr.op}{_expression(expr.operand, 7)}"
    if isinstance(expr, ir.Select):
        text = f"{_expression(expr.condition, 1)} ? {_expression(expr.yes, 1)} : {_expression(expr.no, 0)}"
        return f"({text})" if outer else text
    if isinstance(expr, ir.Intrinsic):
        target = f"<{expr.target.spelling}>" if expr.target is not None else ""
        return f"{expr.name}{target}({_list(expr.args)})"
    name = expr.fragment.cname if isinstance(expr, ir.FragElement) else expr.tensor.name
    return f"{name}({_list(expr.indices)})"


def view(v: ir.View) -> str:
    """Per dimension of the root ``start:extent``, all of it as ``:``; a dimension that sqz has removed in ``~``."""
    slot = f"[{expression(v.slot)}]" if v.slot is not None else ""
    return f"{v.root.name}{slot}({', '.join(_dimension(dim) for dim in v.dims)})"


def _dimension(dim: ir.ViewDim) -> str:
    if not dim.levels:
        return ":" if dim.kept else "~"
    start = " + ".join(_product(level) for level in dim.levels if level.index != ir.IntLit(0)) or "0"
    return f"{start}:{expression(dim.levels[-1].extent)}" + ("" if dim.kept else "~")


def _product(level: ir.Level) -> str:
    return expression(fold.binary("*", level.index, level.step))


def fragment(f: ir.Fragment) -> str:
    """A fragment with its type and shape."""
    shape = f"{f.rows}" if f.cols is None else f"{f.rows}, {f.cols}"
    return f"{f.elem.spelling} [{shape}] {f.cname}"


def _event(event: ir.Event, slot: ir.Expr) -> str:
    return f"{event.name}[{expression(slot)}]" if event.is_array else event.name


def _bounded(symbol: ir.Symbol) -> str:
    return f"{symbol.cname} < {expression(symbol.bound)}" if symbol.bound is not None else symbol.cname


def _implied(implied: bool) -> str:
    return "  // implied" if implied else ""


def _list(items: Iterable[ir.Expr]) -> str:
    return ", ".join(expression(item) for item in items)


def _numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
