"""Kernel IR by hand: short constructors for tests that must not depend on the front end."""

from __future__ import annotations

from itertools import count
from typing import Any

from croqtile import ir
from croqtile.dump import body_lines
from croqtile.translate import translate

_lines = count(1)


def restart_lines() -> None:
    """Number lines from 1 again, for tests that compare text with golden files."""
    global _lines
    _lines = count(1)


def span() -> ir.Span:
    """A fresh line, so that every statement can be told apart."""
    return ir.Span("test.co", next(_lines), 1)


def at(line: int) -> ir.Span:
    return ir.Span("test.co", line, 1)


def lit(value: int) -> ir.IntLit:
    return ir.IntLit(value)


def expr(value: int | ir.Symbol | ir.Expr) -> ir.Expr:
    if isinstance(value, int):
        return ir.IntLit(value)
    return ir.Var(value) if isinstance(value, ir.Symbol) else value


def op(left: int | ir.Symbol | ir.Expr, operator: str, right: int | ir.Symbol | ir.Expr) -> ir.Expr:
    return ir.Binary(operator, expr(left), expr(right))


def cdiv(left: int | ir.Symbol | ir.Expr, right: int) -> ir.Expr:
    return ir.Intrinsic("cdiv", (expr(left), expr(right)))


def dim(name: str) -> ir.Symbol:
    return ir.Symbol(name, ir.SymbolKind.DIM, name)


def grid(name: str, bound: ir.Expr | int) -> ir.Symbol:
    return ir.Symbol(name, ir.SymbolKind.GRID, name, bound=expr(bound))


def counter(name: str, extent: ir.Expr | ir.Symbol | int) -> ir.Symbol:
    return ir.Symbol(name, ir.SymbolKind.LOOP, f"{name}_", bound=expr(extent))


def value(name: str, mutable: bool = False) -> ir.Symbol:
    return ir.Symbol(name, ir.SymbolKind.VALUE, f"{name}_", mutable=mutable)


def buffer(name: str, shape: tuple[int, ...], count: int = 1, elem: ir.Elem = ir.Elem.F16) -> ir.SharedBuffer:
    return ir.SharedBuffer(name, elem, shape, count, count > 1, span(), 128)


def event(name: str, slots: int = 1, arrivals: int = 1) -> ir.Event:
    return ir.Event(name, slots, slots > 1, span(), arrivals)


def view(
    root: ir.SharedBuffer | ir.Tensor,
    slot: int | ir.Symbol | ir.Expr | None = None,
    *tiles: tuple[int, int | ir.Symbol | ir.Expr],
) -> ir.View:
    """The whole tile, or per dimension (extent, tile index)."""
    dims = root.shape if isinstance(root, ir.SharedBuffer) else root.dims
    levels = [ir.ViewDim() for _ in dims]
    for number, (extent, index) in enumerate(tiles):
        levels[number] = ir.ViewDim((ir.Level(lit(extent), expr(index), lit(extent)),))
    return ir.View(root, tuple(levels), span(), None if slot is None else expr(slot))


def tensor(name: str, *dims: ir.Symbol | int) -> ir.Tensor:
    return ir.Tensor(name, ir.Elem.F16, tuple(expr(d) for d in dims), span())


def let(symbol: ir.Symbol, of: int | ir.Symbol | ir.Expr) -> ir.Let:
    return ir.Let(symbol, expr(of), span())


def assign(symbol: ir.Symbol, of: int | ir.Symbol | ir.Expr) -> ir.Assign:
    return ir.Assign(symbol, expr(of), span())


def foreach(index: ir.Symbol, *body: ir.Stmt) -> ir.ForEach:
    assert index.bound is not None
    return ir.ForEach(index, index.bound, body, span())


def when(condition: ir.Expr, *then: ir.Stmt, orelse: tuple[ir.Stmt, ...] = ()) -> ir.If:
    return ir.If(condition, then, orelse, span())


def wait(e: ir.Event, slot: int | ir.Symbol | ir.Expr = 0) -> ir.Wait:
    return ir.Wait(e, expr(slot), span())


def trigger(e: ir.Event, slot: int | ir.Symbol | ir.Expr = 0) -> ir.Trigger:
    return ir.Trigger(e, expr(slot), span())


def copy_in(
    source: ir.View, target: ir.View, e: ir.Event, slot: int | ir.Symbol | ir.Expr = 0, multicast: bool = False
) -> ir.CopyIn:
    return ir.CopyIn(source, target, e, expr(slot), 128, span(), multicast)


def copy_out(source: ir.View, target: ir.View) -> ir.CopyOut:
    return ir.CopyOut(source, target, span())


ACC = ir.Fragment("acc", "acc", ir.Elem.F32, 64, 128, None, ir.Span("test.co", 1, 1), accumulator=True)


def mma(a: ir.View, b: ir.View) -> ir.Mma:
    return ir.Mma(ACC, ir.SharedOperand(a, 128, span()), ir.SharedOperand(b, 128, span()), "row", True, span())


def commit() -> ir.MmaCommit:
    return ir.MmaCommit(span())


def drain(pending: int = 0) -> ir.MmaWait:
    return ir.MmaWait(pending, span())


def store(target: ir.View) -> ir.MmaStore:
    return ir.MmaStore(ACC, target, span())


P = ir.Symbol("p", ir.SymbolKind.WARPGROUP, "p")
T = ir.Symbol("t", ir.SymbolKind.THREAD, "t")


def role(instances: tuple[int, ...], *body: ir.Stmt, thread: int | None = None) -> ir.Role:
    return ir.Role(lit(1), instances, thread, body, span())


def roles(*parts: ir.Role) -> ir.Roles:
    return ir.Roles(parts, span())


def kernel(
    *body: ir.Stmt,
    buffers: tuple[ir.SharedBuffer, ...] = (),
    events: tuple[ir.Event, ...] = (),
    dims: tuple[ir.Symbol, ...] = (),
    grid_indices: tuple[ir.Symbol, ...] = (),
    tensors: tuple[ir.Tensor, ...] = (),
    warpgroups: int = 2,
    captured: tuple[ir.Captured, ...] = (),
) -> ir.Kernel:
    return ir.Kernel(
        name="kernel",
        tensors=tensors,
        dims=dims,
        captured=captured,
        grid=grid_indices,
        cluster=1,
        warpgroup=P,
        warpgroups=warpgroups,
        thread=T,
        launch_bounds=None,
        asynchronous=False,
        buffers=buffers,
        events=events,
        body=body,
        span=span(),
    )


def gemm(stages: int = 4, consumers: int = 1, barrier: bool = True, tile_m: int = 64) -> ir.Kernel:
    """The GEMM of one producer thread and ``consumers`` warpgroups, as the kernels directory writes it."""
    m, n, k = dim("M"), dim("N"), dim("K")
    lhs, rhs, out = tensor("lhs", m, k), tensor("rhs", n, k), tensor("output", m, n)
    rows = tile_m * consumers
    bm, bn = grid("bm", cdiv(m, rows)), grid("bn", cdiv(n, 128))
    lhs_s, rhs_s = buffer("lhs_s", (rows, 64), stages), buffer("rhs_s", (128, 64), stages)
    out_s = buffer("out_s", (rows, 128))
    full, empty = event("full", stages), event("empty", stages, consumers)
    kp, kc, s = counter("k", cdiv(k, 64)), counter("k", cdiv(k, 64)), counter("s", stages)
    stage_p, stage_c = value("stage"), value("stage")
    mine = op(P, "-", 1)
    producer = foreach(
        kp,
        let(stage_p, op(kp, "%", stages)),
        wait(empty, stage_p),
        copy_in(view(lhs), view(lhs_s, stage_p), full, stage_p),
        copy_in(view(rhs), view(rhs_s, stage_p), full, stage_p),
        trigger(full, stage_p),
    )
    consumer = (
        foreach(s, trigger(empty, s)),
        foreach(
            kc,
            let(stage_c, op(kc, "%", stages)),
            wait(full, stage_c),
            mma(view(lhs_s, stage_c, (tile_m, mine), (64, 0)), view(rhs_s, stage_c)),
            commit(),
            drain(),
            trigger(empty, stage_c),
        ),
        *([ir.SyncWarpgroups(tuple(range(1, consumers + 1)), span())] if barrier and consumers > 1 else []),
        store(view(out_s, None, (tile_m, mine), (128, 0))),
        copy_out(view(out_s, None, (tile_m, mine), (128, 0)), view(out)),
    )
    return kernel(
        roles(role((0,), producer, thread=0), role(tuple(range(1, consumers + 1)), *consumer)),
        buffers=(lhs_s, rhs_s, out_s),
        events=(full, empty),
        dims=(m, n, k),
        grid_indices=(bm, bn),
        tensors=(lhs, rhs, out),
        warpgroups=consumers + 1,
    )


# --------------------------------------------------------------------------------------------------------------
# One role and what the analysis is told of it

M, K = dim("M"), dim("K")
SOURCE = tensor("source", M, K)
FULL, EMPTY = event("full", 4), event("empty", 4)
TILE = buffer("tile", (64, 64), 4)
DATA = ir.TensorElement(SOURCE, (ir.IntLit(0), ir.IntLit(0)))  # a value that only the data decides


def one_role(*body: ir.Stmt, thread: int | None = None, **parts: Any) -> ir.Kernel:
    """A kernel whose warpgroup 1 runs ``body``."""
    defaults = {"buffers": (TILE,), "events": (FULL, EMPTY), "dims": (M, K), "tensors": (SOURCE,)}
    return kernel(roles(role((1,), *body, thread=thread)), **{**defaults, **parts})


def text(of: ir.Kernel, role: int = 0) -> list[str]:
    """The code of one role as the analysis gets it, a line each."""
    return [line.strip() for line in body_lines(translate(of).roles[role].body)]
