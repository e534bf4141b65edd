"""Lark's parse tree → :mod:`croqtile.ast`, with places in the user's file."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from typing import Any

from lark import Token, Transformer, v_args
from lark.tree import Meta

from croqtile import ast
from croqtile.ir import Span
from croqtile.source import CoFunction


class FunctionText:
    """The tokens as one string for the parser, and the way back from its offsets to the user's file."""

    def __init__(self, function: CoFunction) -> None:
        self.tokens = function.tokens
        self.text = "".join(token.text for token in function.tokens)
        self.starts: list[int] = []
        offset = 0
        for token in function.tokens:
            self.starts.append(offset)
            offset += len(token.text)

    def at(self, offset: int) -> int:
        """Index of the token that ``offset`` lies in."""
        return max(0, bisect.bisect_right(self.starts, offset) - 1)

    def span(self, start: int, end: int) -> Span:
        """From the first token to the last one on the same line."""
        first = self.tokens[self.at(start)].span
        last = first
        for token in self.tokens[self.at(start) : self.at(end - 1) + 1]:
            if token.text == " ":
                continue
            if (token.span.file, token.span.line) != (first.file, first.line):
                break
            if token.span.column >= last.column:
                last = token.span
        return Span(first.file, first.line, first.column, last.column + last.length - first.column)

    def before(self, offset: int) -> Span | None:
        """The place right after the last token that ends before ``offset``."""
        for token in reversed(self.tokens[: self.at(offset)]):
            if token.text != " ":
                return Span(token.span.file, token.span.line, token.span.column + token.span.length)
        return None


@v_args(inline=True, meta=True)
class Builder(Transformer[Token, Any]):
    """One method per rule of the grammar. Bodies are tuples; a missing optional part is None."""

    def __init__(self, text: FunctionText) -> None:
        super().__init__()
        self.text = text

    def span(self, meta: Meta) -> Span:
        return self.text.span(meta.start_pos or 0, meta.end_pos or 0)

    def head(self, meta: Meta) -> Span:
        """The first token: where a statement with a body is reported."""
        return self.text.tokens[self.text.at(meta.start_pos)].span

    def ident(self, token: Token) -> ast.Ident:
        start = token.start_pos or 0
        return ast.Ident(self.text.span(start, start + len(token)), str(token))

    # -- function and structure

    def function(self, meta: Meta, result: Token, name: Token, *rest: Any) -> ast.Function:
        parameters = _present(rest[:-1])
        return ast.Function(self.head(meta), self.ident(result), self.ident(name), parameters, rest[-1].body)

    def parameter(self, meta: Meta, elem: Token, shape: tuple[ast.Expr, ...] | None, name: Token) -> ast.Parameter:
        return ast.Parameter(self.span(meta), self.ident(elem), shape, self.ident(name))

    def shape(self, meta: Meta, *extents: ast.Expr | None) -> tuple[ast.Expr, ...]:
        return _present(extents)

    def block(self, meta: Meta, *statements: ast.Stmt | None) -> ast.Block:
        return ast.Block(self.head(meta), _present(statements))

    def empty(self, meta: Meta) -> None:
        return None

    def parallel(self, meta: Meta, asynchronous: bool | None, *rest: Any) -> ast.Parallel:
        return ast.Parallel(self.head(meta), bool(asynchronous), rest[:-1], rest[-1].body)

    def parallel_async(self, meta: Meta) -> bool:
        return True

    inthreads_async = trigger_cluster = parallel_async

    def bound(
        self, meta: Meta, counters: tuple[ast.Ident, ...], extents: tuple[ast.Expr, ...], level: ast.Ident
    ) -> ast.Bound:
        return ast.Bound(self.span(meta), counters, extents, level)

    def counters(self, meta: Meta, *names: Token) -> tuple[ast.Ident, ...]:
        return tuple(self.ident(name) for name in names)

    def extents(self, meta: Meta, *extents: ast.Expr) -> tuple[ast.Expr, ...]:
        return extents

    def level(self, meta: Meta, name: Token, width: Token | None) -> ast.Ident:
        return ast.Ident(self.span(meta), str(name) if width is None else f"{name}-{width}")

    def inthreads(
        self, meta: Meta, asynchronous: bool | None, condition: ast.Expr, body: ast.Stmt | None
    ) -> ast.InThreads:
        return ast.InThreads(self.head(meta), bool(asynchronous), condition, _body(body))

    def foreach(self, meta: Meta, counters: Any, extents: Any, body: ast.Stmt | None) -> ast.ForEach:
        return ast.ForEach(self.head(meta), counters, extents, _body(body))

    def if_(self, meta: Meta, condition: ast.Expr, then: ast.Stmt | None, orelse: ast.Stmt | None) -> ast.If:
        return ast.If(self.head(meta), condition, _body(then), _body(orelse))

    def launch_bounds(self, meta: Meta, blocks: ast.Expr) -> ast.LaunchBounds:
        return ast.LaunchBounds(self.span(meta), blocks)

    # -- storage and names

    def shared_event(self, meta: Meta, *items: ast.Array) -> ast.SharedEvents:
        return ast.SharedEvents(self.span(meta), items)

    def shared_buffer(self, meta: Meta, elem: Token, shape: Any, *items: ast.Array) -> ast.SharedBuffers:
        return ast.SharedBuffers(self.span(meta), self.ident(elem), shape, items)

    def array(self, meta: Meta, name: Token, count: ast.Expr | None) -> ast.Array:
        return ast.Array(self.span(meta), self.ident(name), count)

    def fragment(self, meta: Meta, elem: Token, shape: Any, *items: ast.Initialised) -> ast.Fragments:
        return ast.Fragments(self.span(meta), self.ident(elem), shape, items)

    def initialised(self, meta: Meta, name: Token, value: ast.Expr | None) -> ast.Initialised:
        return ast.Initialised(self.span(meta), self.ident(name), value)

    def assign(self, meta: Meta, name: Token, value: ast.Expr | ast.MmaFill | ast.MmaLoad) -> ast.Assign:
        return ast.Assign(self.span(meta), self.ident(name), value)

    def declare(self, meta: Meta, type_: Token, name: Token, value: ast.Expr) -> ast.Declare:
        return ast.Declare(self.span(meta), self.ident(type_), self.ident(name), value)

    # -- events and copies

    def wait(self, meta: Meta, *events: ast.EventRef) -> ast.Wait:
        return ast.Wait(self.span(meta), events)

    def trigger(self, meta: Meta, cluster: bool | None, *events: ast.EventRef) -> ast.Trigger:
        return ast.Trigger(self.span(meta), events, bool(cluster))

    def event(self, meta: Meta, name: Token, index: ast.Expr | None) -> ast.EventRef:
        return ast.EventRef(self.span(meta), self.ident(name), index)

    def copy(self, meta: Meta, *parts: Any) -> ast.Copy:
        event: ast.EventRef | None = None
        swizzle: ast.Swizzle | None = None
        multicast = False
        for part in parts[:-2]:
            if isinstance(part, ast.EventRef):
                event = part
            elif isinstance(part, ast.Swizzle):
                swizzle = part
            else:
                multicast = True
        return ast.Copy(self.span(meta), event, swizzle, multicast, parts[-2], parts[-1])

    def suffix_async(self, meta: Meta, event: ast.EventRef) -> ast.EventRef:
        return event

    def suffix_multicast(self, meta: Meta) -> bool:
        return True

    def swizzle(self, meta: Meta, width: ast.Expr) -> ast.Swizzle:
        return ast.Swizzle(self.span(meta), width)

    # -- matrix instructions

    def mma_fill(self, meta: Meta, elem: Token, value: ast.Expr) -> ast.MmaFill:
        return ast.MmaFill(self.span(meta), self.ident(elem), value)

    def mma_load(self, meta: Meta, swizzle: ast.Swizzle | None, view: ast.Expr) -> ast.MmaLoad:
        return ast.MmaLoad(self.span(meta), swizzle, view)

    def mma_row(self, meta: Meta, layout: Token, accumulator: ast.Expr, a: ast.Expr, b: ast.Expr) -> ast.Mma:
        return ast.Mma(self.span(meta), str(layout), accumulator, a, b)

    def mma_commit(self, meta: Meta) -> ast.MmaCommit:
        return ast.MmaCommit(self.span(meta))

    def mma_wait(self, meta: Meta, pending: ast.Expr) -> ast.MmaWait:
        return ast.MmaWait(self.span(meta), pending)

    def mma_store(self, meta: Meta, fragment: ast.Expr, target: ast.Expr) -> ast.MmaStore:
        return ast.MmaStore(self.span(meta), fragment, target)

    # -- fragments and the rest

    def frag_apply(self, meta: Meta, fragment: ast.Expr, *rest: Any) -> ast.FragApply:
        return ast.FragApply(self.span(meta), fragment, tuple(self.ident(t) for t in rest[:-1]), rest[-1])

    def frag_copy(self, meta: Meta, target: ast.Expr, source: ast.Expr) -> ast.FragCopy:
        return ast.FragCopy(self.span(meta), target, source)

    def frag_reduce(self, meta: Meta, op: Token, source: ast.Expr, target: ast.Expr, axis: ast.Expr) -> ast.FragReduce:
        return ast.FragReduce(self.span(meta), op.removeprefix("reduce_"), source, target, axis)

    def sync_wg(self, meta: Meta, *members: ast.Expr) -> ast.SyncWg:
        return ast.SyncWg(self.span(meta), members)

    def sync_shared(self, meta: Meta) -> ast.SyncShared:
        return ast.SyncShared(self.span(meta))

    def call(self, meta: Meta, function: Token, *arguments: ast.Expr | None) -> ast.Call:
        return ast.Call(self.span(meta), self.ident(function), _present(arguments))

    # -- expressions

    def select(self, meta: Meta, condition: ast.Expr, yes: ast.Expr, no: ast.Expr) -> ast.Select:
        return ast.Select(self.span(meta), condition, yes, no)

    def binary(self, meta: Meta, left: ast.Expr, op: Token, right: ast.Expr) -> ast.Binary:
        return ast.Binary(self.span(meta), str(op), left, right)

    def join(self, meta: Meta, left: ast.Expr, right: ast.Expr) -> ast.Join:
        return ast.Join(self.span(meta), left, right)

    def prefix(self, meta: Meta, op: Token, operand: ast.Expr) -> ast.Prefix:
        return ast.Prefix(self.span(meta), str(op), operand)

    def upper_bound(self, meta: Meta, name: Token) -> ast.UpperBound:
        return ast.UpperBound(self.span(meta), self.ident(name))

    def index(self, meta: Meta, base: ast.Expr, index: ast.Expr) -> ast.Index:
        return ast.Index(self.span(meta), base, index)

    def method(self, meta: Meta, base: ast.Expr, name: Token, *arguments: ast.Expr | None) -> ast.Method:
        return ast.Method(self.span(meta), base, self.ident(name), _present(arguments))

    def name(self, meta: Meta, name: Token) -> ast.Name:
        return ast.Name(self.span(meta), str(name))

    def integer(self, meta: Meta, text: Token) -> ast.Integer:
        digits = text.rstrip("uUlL")
        octal = digits.startswith("0") and digits.isdigit()
        return ast.Integer(self.span(meta), int(digits, 8 if octal else 0))

    def floating(self, meta: Meta, text: Token) -> ast.Floating:
        return ast.Floating(self.span(meta), str(text))

    def convert(self, meta: Meta, target: Token, operand: ast.Expr) -> ast.Convert:
        return ast.Convert(self.span(meta), self.ident(target), operand)

    def function_call(self, meta: Meta, function: Token, *arguments: ast.Expr | None) -> ast.FunctionCall:
        return ast.FunctionCall(self.span(meta), self.ident(function), _present(arguments))


def _present(items: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(item for item in items if item is not None)


def _body(statement: ast.Stmt | None) -> tuple[ast.Stmt, ...]:
    """The statements of a body, which may be a single one without braces, or a semicolon."""
    if statement is None:
        return ()
    return statement.body if isinstance(statement, ast.Block) else (statement,)
