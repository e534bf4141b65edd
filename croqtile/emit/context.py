"""The state of emission inside one kernel and one role."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from croqtile import ir, rewrite
from croqtile.emit.expressions import Elements, Printer
from croqtile.emit.names import Names
from croqtile.emit.plan import EmitPlan
from croqtile.emit.shared import Tile
from croqtile.emit.tensormap import Range
from croqtile.emit.wgmma import Instruction
from croqtile.emit.writer import Writer


class Runs(enum.Enum):
    """Who executes the statements being emitted."""

    THREAD = "one thread of a warpgroup"
    WARPGROUP = "all 128 threads of a warpgroup"
    BLOCK = "all threads of the CTA"


@dataclass
class Meeting:
    """What the warps of a warpgroup know of each other at this point of the program.

    ``together``: they have met since the last statement that reads shared memory (a matrix instruction, a call), so
    memory may be overwritten. ``stored``: the tiles written since they last met, by buffer; None among them stands for
    any tile of it. ``just_met``: no statement stands between their meeting and the next one.
    """

    together: bool = False
    just_met: bool = False
    stored: dict[str, list[Tile | None]] = field(default_factory=dict)

    def met(self) -> None:
        self.together = self.just_met = True
        self.stored.clear()

    def store(self, tile: Tile) -> None:
        self.stored.setdefault(tile.buffer.name, []).append(tile)

    def may_store(self, tile: Tile) -> bool:
        """May the warps write ``tile`` without meeting first? Tiles that overlap are divided among them differently."""
        earlier = self.stored.get(tile.buffer.name, [])
        others = self.stored.keys() - {tile.buffer.name}
        return self.together and not others and all(known is not None and known.apart(tile) for known in earlier)

    def copy(self) -> Meeting:
        return Meeting(self.together, self.just_met, {name: list(tiles) for name, tiles in self.stored.items()})

    def restore(self, state: Meeting) -> None:
        self.together, self.just_met, self.stored = state.together, state.just_met, state.copy().stored

    def unknown(self, written: set[str]) -> None:
        """At the head of a loop or behind a branch that writes ``written``."""
        self.together = self.just_met = False
        for name in written:
            self.stored[name] = [None]

    def join(self, other: Meeting) -> None:
        """Control may have come another way, too, on which the warps have not met since they wrote."""
        self.together = self.just_met = False
        for name, tiles in other.stored.items():
            self.stored[name] = [*self.stored.get(name, []), *tiles]


MOST_GROUPS = 8  # that a wait can leave running, and one more


@dataclass
class Flight:
    """Matrix instructions that may still run: accumulators of each committed group, oldest first, and of what has been
    issued since. Where ways join, a group holds what it may hold on any of them; groups are counted from the newest, as
    waits do."""

    groups: list[list[ir.Fragment]] = field(default_factory=list)
    issued: list[ir.Fragment] = field(default_factory=list)

    def copy(self) -> Flight:
        return Flight([list(group) for group in self.groups], list(self.issued))

    def restore(self, state: Flight) -> None:
        self.groups, self.issued = [list(group) for group in state.groups], list(state.issued)

    def commit(self) -> None:
        self.groups.append(self.issued)
        self.issued = []
        if len(self.groups) > MOST_GROUPS:
            self.groups[:2] = [_union(*self.groups[:2])]

    def wait(self, pending: int) -> list[ir.Fragment]:
        """Leaves ``pending`` groups. The accumulators that nothing in flight uses any more."""
        finished, self.groups = self.groups[: len(self.groups) - pending], self.groups[-pending:] if pending else []
        running = {fragment for group in (*self.groups, self.issued) for fragment in group}
        done = dict.fromkeys(fragment for group in finished for fragment in group)
        return [fragment for fragment in done if fragment not in running]

    def join(self, other: Flight) -> None:
        """Either may be in flight here."""
        missing = max(len(other.groups) - len(self.groups), 0)
        self.groups[:0] = [[] for _ in range(missing)]
        for position in range(1, len(other.groups) + 1):
            self.groups[-position] = _union(self.groups[-position], other.groups[-position])
        self.issued = _union(self.issued, other.issued)

    def follow(self, body: Iterable[ir.Stmt]) -> None:
        """What is in flight behind ``body``."""
        for statement in body:
            if isinstance(statement, ir.Mma):
                self.issued.append(statement.accumulator)
            elif isinstance(statement, ir.MmaCommit):
                self.commit()
            elif isinstance(statement, ir.MmaWait):
                self.wait(statement.pending)
            elif isinstance(statement, ir.ForEach):
                self.enter(statement.body)
            elif isinstance(statement, ir.If):
                other = self.copy()
                self.follow(statement.then)
                other.follow(statement.orelse)
                self.join(other)
            elif isinstance(statement, ir.OnlyWarpgroups):
                other = self.copy()
                self.follow(statement.body)
                self.join(other)

    def enter(self, body: tuple[ir.Stmt, ...]) -> None:
        """What is in flight at the head of a loop: what was before it, or what an iteration has left."""
        while True:
            head, end = self.copy(), self.copy()
            end.follow(body)
            self.join(end)
            if self == head:
                return


def _union(one: list[ir.Fragment], other: list[ir.Fragment]) -> list[ir.Fragment]:
    return list(dict.fromkeys((*one, *other)))


@dataclass
class Context:
    """Everything that emitting a statement needs. ``ring`` maps `(k + c) % S` to the variable that runs through it."""

    plan: EmitPlan
    names: Names
    out: Writer
    instructions: set[Instruction]
    runs: Runs = Runs.BLOCK
    instances: tuple[int, ...] = ()  # warpgroups of the role
    ring: Mapping[ir.Expr, str] = field(default_factory=dict)
    ranges: Mapping[ir.Symbol, Range] = field(default_factory=dict)
    meeting: Meeting = field(default_factory=Meeting)
    flight: Flight = field(default_factory=Flight)
    starting: set[int] = field(default_factory=set)  # id of each Mma that starts its accumulator from zero
    announced: set[int] = field(default_factory=set)  # id of each multicast copy whose bytes all CTAs already expect
    delays: Iterator[int] = field(default_factory=itertools.count)  # numbers of the delays of a stress build

    def unused(self, symbol: ir.Symbol) -> str:
        """An attribute for the declaration of a scalar that nothing reads, which nvcc would warn about."""
        return "" if symbol in self._read else "[[maybe_unused]] "

    @cached_property
    def _read(self) -> frozenset[ir.Symbol]:
        return frozenset(node.symbol for node in rewrite.nodes(self.plan.kernel) if isinstance(node, ir.Var))

    def printer(self, elements: Elements | None = None) -> Printer:
        return Printer(self.ring, elements)

    def expression(self, expr: ir.Expr) -> str:
        return self.printer()(expr)

    def shared_address(self, buffer: ir.SharedBuffer, offset: ir.Expr) -> str:
        """Address of a byte of ``buffer``."""
        name = self.names.buffers[buffer.name]
        return name if offset == ir.IntLit(0) else f"{name} + {self._sum_operand(offset)}"

    def _sum_operand(self, offset: ir.Expr) -> str:
        plain = isinstance(offset, ir.Binary) and offset.op in "+-*"
        return self.expression(offset) if plain else self.printer().operand(offset)

    def meet(self) -> None:
        """The warps of the executing warpgroup (or all warps of the CTA) wait for each other."""
        if self.runs is Runs.WARPGROUP:
            self.out.line(f"named_barrier_sync({self.names.meeting()}, 128);")
        elif self.runs is Runs.BLOCK:
            self.out.line("__syncthreads();")
        self.meeting.met()
