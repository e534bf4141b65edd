"""Syntax tree → :class:`croqtile.ir.Kernel`: names resolved, types and shapes checked, constants folded.

scope        bindings, places, how errors are collected
types        element types
expressions  scalars
views        subspan, at, chunkat, …
structure    function, grid, block level
storage      shared buffers, events, fragments
roles        which threads are which role; barriers
statements   what roles do, apart from
copies       bulk copies and swizzles
matrix       matrix instructions
fragments    operations on fragments
events       whole-function checks of events
uniform      what all threads of a warpgroup must agree on
"""

from __future__ import annotations

import dataclasses

from croqtile import ast, fold, ir, rewrite
from croqtile.check import events, matrix, roles, structure, uniform
from croqtile.check.scope import Context
from croqtile.diagnostics import CompileError


def check(function: ast.Function) -> ir.Kernel:
    """The meaning of ``function``. Raises CompileError with everything that is wrong with it."""
    ctx = Context()
    body = structure.function(ctx, function)
    for deferred in ctx.deferred:
        with ctx.recovering():
            deferred()
    replaced = matrix.finish(ctx)
    if not ctx.diagnostics:  # what an erroneous statement would have done is unknown
        roles.barriers(ctx)
        events.events(ctx)
        structure.private_reads(ctx, body)
        uniform.uniform(ctx, body)
    if ctx.diagnostics:
        raise CompileError(sorted(ctx.diagnostics, key=lambda d: (d.span.line, d.span.column) if d.span else (0, 0)))
    assert ctx.warpgroup is not None
    for symbol in ctx.mutable:
        replaced[symbol] = dataclasses.replace(symbol, mutable=True)
    for buffer, (swizzle, _) in ctx.layouts.items():
        replaced[buffer] = dataclasses.replace(buffer, swizzle=swizzle)
    count = fold.integer(ctx.warpgroup.bound or fold.ZERO) or 0
    cluster = fold.integer(ctx.cluster.bound or fold.ONE) if ctx.cluster is not None else 1
    kernel = ir.Kernel(
        name=function.name.name,
        tensors=tuple(ctx.tensors),
        dims=tuple(ctx.dims.values()),
        captured=tuple(ctx.captured),
        grid=tuple(ctx.grid),
        cluster=cluster or 1,
        warpgroup=ctx.warpgroup,
        warpgroups=count,
        thread=ctx.thread,
        launch_bounds=ctx.launch_bounds,
        asynchronous=ctx.asynchronous,
        buffers=tuple(ctx.buffers),
        events=tuple(ctx.events),
        body=body,
        span=function.name.span,
        cluster_rank=ctx.cluster,
    )
    return rewrite.replace(kernel, replaced)
