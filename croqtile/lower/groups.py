"""Groups of asynchronous matrix instructions: the commits and waits that the language implies.

- An ``mma.commit;`` that no ``mma.wait`` follows waits for everything.
- An instruction that no commit of the program closes is a group of its own, awaited before its result is needed, before
  anything that may release its operands (trigger, barrier, copy, store or call), before a loop repeats, and at the end.
- A result is never used before its group is complete, however the program places its waits: the registers are the
  compiler's. Operands of explicitly committed groups are the program's own care (see ``releases``).

Groups complete in the order in which they are committed, so a wait that leaves n of them running covers all older ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from croqtile import ir, rewrite

_RELEASING = (ir.Trigger, ir.SyncWarpgroups, ir.SyncCta, ir.Call, ir.MmaStore, ir.CopyIn, ir.CopyOut)


@dataclass(frozen=True)
class _Group:
    """``written``: accumulators, ``read``: A fragments. ``several``: stands for any number of groups, none included.
    ``shapes``: each accumulator with the bytes of an operand's element, which decide the instruction's shape."""

    written: frozenset[ir.Fragment] = frozenset()
    read: frozenset[ir.Fragment] = frozenset()
    shapes: frozenset[tuple[ir.Fragment, int]] = frozenset()
    direct: bool = False
    several: bool = False

    def uses(self, fragments: frozenset[ir.Fragment]) -> bool:
        return bool(fragments & (self.written | self.read))

    def __or__(self, other: _Group) -> _Group:
        return _Group(
            self.written | other.written,
            self.read | other.read,
            self.shapes | other.shapes,
            self.direct or other.direct,
            self.several or other.several,
        )


_State = tuple[tuple[_Group, ...], "_Group | None"]


def close(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with all commits and waits in place."""

    def complete(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        walk = _Walk()
        result = walk.run(body)
        result += walk.finish(body[-1].span) if body else []
        return tuple(result)

    return rewrite.each_role(kernel, complete)


class _Walk:
    """Follows one role in program order. ``closed``: groups that may still run, oldest first; ``open``: instructions
    that wait for the program's commit."""

    def __init__(self) -> None:
        self.closed: list[_Group] = []
        self.open: _Group | None = None

    def run(self, body: tuple[ir.Stmt, ...]) -> list[ir.Stmt]:
        result: list[ir.Stmt] = []
        for number, statement in enumerate(body):
            following = body[number + 1] if number + 1 < len(body) else None
            result += self.statement(statement, following)
        return result

    def finish(self, span: ir.Span) -> list[ir.Stmt]:
        """The end of the role: nothing may run on."""
        result = self.commit_open(span)
        if self.closed:
            result.append(ir.MmaWait(0, span, implied=True))
        self.closed = []
        return result

    # -- one statement

    def statement(self, statement: ir.Stmt, following: ir.Stmt | None) -> list[ir.Stmt]:
        if isinstance(statement, ir.Mma):
            return self.multiply(statement)
        if isinstance(statement, ir.MmaCommit):
            self.closed.append(self.open or _Group())
            self.open = None
            if isinstance(following, ir.MmaWait):
                return [statement]
            self.closed = []
            return [statement, ir.MmaWait(0, statement.span, implied=True)]
        if isinstance(statement, ir.MmaWait):
            self.keep(statement.pending)
            return [statement]
        if isinstance(statement, ir.ForEach):
            return self.loop(statement)
        if isinstance(statement, ir.If):
            return self.branch(statement)
        if isinstance(statement, ir.OnlyWarpgroups):
            before = self.state()
            body = tuple(self.run(statement.body) + self.drain(statement.span))
            self.merge(self.state(), before)
            return [dataclasses.replace(statement, body=body)]
        result = self.need(_fragments(statement), statement.span)
        if isinstance(statement, _RELEASING):
            result += self.drain(statement.span)
        return [*result, statement]

    def multiply(self, mma: ir.Mma) -> list[ir.Stmt]:
        result = self.need_if(_conflict(mma), mma.span)
        result.append(mma)
        shapes = frozenset(((mma.accumulator, mma.b.view.root.elem.bytes),))
        group = _Group(frozenset((mma.accumulator,)), _operand(mma), shapes, direct=not mma.explicit)
        self.open = group if self.open is None else self.open | group
        if not mma.explicit:
            result += self.commit_open(mma.span)
        return result

    # -- waits

    def need(self, fragments: frozenset[ir.Fragment], span: ir.Span) -> list[ir.Stmt]:
        """What must stand before a statement that uses ``fragments``."""
        return self.need_if(lambda group: group.uses(fragments), span) if fragments else []

    def need_if(self, concerns: Callable[[_Group], bool], span: ir.Span) -> list[ir.Stmt]:
        result: list[ir.Stmt] = []
        if self.open is not None and concerns(self.open):
            result += self.commit_open(span)
        for number in reversed(range(len(self.closed))):
            if concerns(self.closed[number]):
                newer = self.closed[number + 1 :]
                pending = sum(not group.several for group in newer)
                result.append(ir.MmaWait(pending, span, implied=True))
                self.closed = newer
                break
        return result

    def drain(self, span: ir.Span) -> list[ir.Stmt]:
        """Awaits every direct group."""
        return self.need_if(lambda group: group.direct, span)

    def commit_open(self, span: ir.Span) -> list[ir.Stmt]:
        if self.open is None:
            return []
        self.closed.append(self.open)
        self.open = None
        return [ir.MmaCommit(span, implied=True)]

    def keep(self, pending: int) -> None:
        """After a wait that leaves ``pending`` groups."""
        kept: list[_Group] = []
        left = pending
        for group in reversed(self.closed):
            if not group.several:
                if not left:
                    break
                left -= 1
            kept.insert(0, group)
        self.closed = kept if pending else []

    # -- control flow

    def state(self) -> _State:
        return tuple(self.closed), self.open

    def restore(self, state: _State) -> None:
        self.closed, self.open = list(state[0]), state[1]

    def merge(self, one: _State, other: _State) -> None:
        """Either may be what has happened."""
        if one == other:
            self.restore(one)
            return
        groups = [*one[0], *other[0]]
        opens = [o for o in (one[1], other[1]) if o is not None]
        self.closed = [dataclasses.replace(_union(groups), several=True)] if groups else []
        self.open = _union(opens) if opens else None

    def branch(self, statement: ir.If) -> list[ir.Stmt]:
        if not any(_concerns_groups(s) for s in rewrite.statements((statement,))):
            return [statement]  # its condition may even differ between the threads, which must wait together
        before = self.state()
        then = tuple(self.run(statement.then) + self.drain(statement.span))
        after_then = self.state()
        self.restore(before)
        orelse = tuple(self.run(statement.orelse) + self.drain(statement.span))
        if not statement.orelse and not orelse:
            orelse = ()
        self.merge(after_then, self.state())
        return [dataclasses.replace(statement, then=then, orelse=orelse)]

    def loop(self, statement: ir.ForEach) -> list[ir.Stmt]:
        if _only_accumulates(statement.body):
            return self.accumulate(statement)
        result = self.drain(statement.span)
        head = self.state()
        while True:  # what is pending when the loop repeats may be more than when it starts
            body = tuple(self.run(statement.body) + self.drain(statement.span))
            end = self.state()
            self.merge(head, end)
            if self.state() == head:
                break
            head = self.state()
        return [*result, dataclasses.replace(statement, body=body)]

    def accumulate(self, statement: ir.ForEach) -> list[ir.Stmt]:
        """A loop of nothing but matrix instructions that do not need each other: no wait inside."""
        result: list[ir.Stmt] = []
        inside = [s for s in rewrite.statements(statement.body) if isinstance(s, ir.Mma)]
        for mma in inside:
            result += self.need_if(_conflict(mma), mma.span)
        before = self.state()
        body = tuple(self.run(statement.body))
        self.merge(before, self.state())
        return [*result, dataclasses.replace(statement, body=body)]


def _operand(mma: ir.Mma) -> frozenset[ir.Fragment]:
    return frozenset((mma.a.fragment,)) if isinstance(mma.a, ir.FragOperand) else frozenset()


def _conflict(mma: ir.Mma) -> Callable[[_Group], bool]:
    """Which groups ``mma`` must wait for. Accumulating into the same registers needs no wait in between if that is done
    by instructions of one shape (PTX ISA, wgmma.fence)."""
    same = mma.accumulator, mma.b.view.root.elem.bytes

    def concerns(group: _Group) -> bool:
        other_shape = any(shape[0] is mma.accumulator and shape != same for shape in group.shapes)
        return bool(_operand(mma) & group.written) or mma.accumulator in group.read or other_shape

    return concerns


def _union(groups: Iterable[_Group]) -> _Group:
    result = _Group()
    for group in groups:
        result |= group
    return result


def _concerns_groups(statement: ir.Stmt) -> bool:
    """Does it issue, await or need matrix instructions, or may it release their operands?"""
    if isinstance(statement, (ir.Mma, ir.MmaCommit, ir.MmaWait, *_RELEASING)):
        return True
    return not rewrite.bodies(statement) and bool(_fragments(statement))


def _only_accumulates(body: tuple[ir.Stmt, ...]) -> bool:
    inside = list(rewrite.statements(body))
    operands = {s.a.fragment for s in inside if isinstance(s, ir.Mma) and isinstance(s.a, ir.FragOperand)}
    accumulators = {s.accumulator for s in inside if isinstance(s, ir.Mma)}
    shapes = {(s.accumulator, s.b.view.root.elem.bytes) for s in inside if isinstance(s, ir.Mma)}
    plain = all(isinstance(s, (ir.Mma, ir.Let, ir.ForEach)) for s in inside)
    return plain and not operands & accumulators and len(shapes) == len(accumulators)


def _fragments(statement: ir.Stmt) -> frozenset[ir.Fragment]:
    """Fragments whose registers ``statement`` touches."""
    return frozenset(node for node in rewrite.nodes(statement) if isinstance(node, ir.Fragment))
