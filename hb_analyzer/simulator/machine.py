"""One execution: where every thread stands, what is under way, what memory holds.

A *process* is a thread, or an asynchronous copy between its issue and its landing; ``step`` lets one of them make one
transition. Accesses take time: an ordinary one begins with one transition of its thread and ends with the next; a copy
in ends when it lands; a matrix instruction ends at the drain that covers it, the latest moment at which it can (the
longer it is under way, the more can meet it); what nobody awaits never ends.

What memory holds is kept per place of the layout: whether it was written, and which other buffers have written to its
bytes since. A read that finds such a place would have seen its own value with separate placement, and does not: a
*clobber*. A bulk copy that is under way when the last thread ends is *unawaited*: its memory belongs to another CTA
then. Two accesses under way at once to common bytes, one a write, are a *conflict* (between buffers) or a *race*
(within one). A generic write without a proxy fence is under way for ever as far as the asynchronous proxy is concerned.
"""

from __future__ import annotations

from dataclasses import dataclass

from hb_analyzer.model import Access, Barrier
from hb_analyzer.simulator.code import BEGIN_END, DRAIN, ISSUE, MEET, TRIGGER, WAIT, Code, Instruction, Key
from hb_analyzer.simulator.layout import Layout
from hb_analyzer.simulator.mbarriers import Mbarrier

Subject = tuple[str, ...]  # buffers (sorted), an event, or the roles that are stuck


@dataclass(frozen=True)
class Finding:
    """``kind``: conflict, clobber, race, overrun, deadlock or unawaited. ``step``: transitions before it showed.

    ``first`` and ``second``: the accesses (or arrivals) concerned, where there are such."""

    kind: str
    subject: Subject
    step: int
    first: Instruction | None = None
    second: Instruction | None = None
    why: str = ""

    @property
    def key(self) -> tuple[str, Subject]:
        return self.kind, self.subject


class Machine:
    """``findings`` grows as the execution goes on: the first of each kind and subject."""

    def __init__(self, code: Code, layout: Layout) -> None:
        self.code = code
        self.names = [buffer.name for buffer in code.program.buffers]
        self.lengths = [len(thread.code) for thread in code.threads]
        self.at = [0] * len(code.threads)  # instruction of each thread …
        self.half = [False] * len(code.threads)  # … and whether it has begun
        self.flying: dict[int, Instruction] = {}  # accesses under way, by identity
        self.unfenced: list[Instruction] = []
        initial = {event.name: event.initial for event in code.program.events}
        self.mbarriers = {key: Mbarrier(code.expected[key], initial[key[0]]) for key in code.keys}
        self.initial = initial
        self.written = 0
        self.lost = [0] * len(self.names)  # [b]: places that buffer b has written over
        self.findings: dict[tuple[str, Subject], Finding] = {}
        self.steps = 0
        self.halted = False  # an mbarrier is in a state that the hardware does not define

    def copy(self) -> Machine:
        other = Machine.__new__(Machine)
        other.code, other.names, other.lengths = self.code, self.names, self.lengths
        other.initial = self.initial
        other.at, other.half, other.flying = self.at[:], self.half[:], dict(self.flying)
        other.unfenced = self.unfenced[:]
        other.mbarriers = {key: mbarrier.copy() for key, mbarrier in self.mbarriers.items()}
        other.written, other.lost = self.written, self.lost[:]
        other.findings, other.steps, other.halted = dict(self.findings), self.steps, self.halted
        return other

    def state(self) -> tuple[object, ...]:
        """Everything that the future depends on."""
        return (
            tuple(self.at),
            tuple(self.half),
            frozenset(self.flying),
            tuple(mbarrier.state() for mbarrier in self.mbarriers.values()),
            self.written,
            tuple(self.lost),
            self.halted,
        )

    # ----------------------------------------------------------------------------------------------------------
    # Transitions

    @property
    def copies_from(self) -> int:
        """Processes from this number on are copies: their identity is added to it."""
        return len(self.at)

    def next(self, process: int) -> Instruction | None:
        """What a process does next; None if it is over."""
        if process >= len(self.at):
            return self.flying.get(process - len(self.at))
        at = self.at[process]
        return self.code.threads[process].code[at] if at < self.lengths[process] else None

    def enabled(self) -> list[int]:
        """The processes that can make a transition now."""
        if self.halted:
            return []
        ready = [thread for thread in range(len(self.at)) if self.ready(thread)]
        base = len(self.at)
        ready += [base + identity for identity, access in self.flying.items() if access.key[0]]
        return ready

    def ready(self, thread: int) -> bool:
        at = self.at[thread]
        if at >= self.lengths[thread]:
            return False
        instruction = self.code.threads[thread].code[at]
        if instruction.kind == WAIT:
            return self.mbarriers[instruction.key].passes(instruction.number)
        if instruction.kind == MEET and self.half[thread]:
            return self._met(instruction)
        return True

    def _met(self, instruction: Instruction) -> bool:
        assert isinstance(instruction.op, Barrier)
        arrivals = self.code.meetings[instruction.op.name, instruction.number]
        roles = self.code.program.roles
        members = set(instruction.op.members)
        present = set()
        for thread, arrival in arrivals.items():
            assert isinstance(arrival.op, Barrier)
            if set(arrival.op.members) != members:
                return False
            at = self.at[thread]
            if at < arrival.position or (at == arrival.position and not self.half[thread]):
                return False
            present.add(roles[self.code.threads[thread].role].name)
        return present == members

    def step(self, process: int) -> None:
        """One transition of an enabled process."""
        self.steps += 1
        if process >= len(self.at):
            self._land(self.flying[process - len(self.at)])
            return
        instruction = self.code.threads[process].code[self.at[process]]
        kind = instruction.kind
        if kind == BEGIN_END:
            if not self.half[process]:
                self.half[process] = True
                self._begin(instruction)
                return
            self._end(instruction)
        elif kind == MEET:
            if not self.half[process]:
                self.half[process] = True
                return
        elif kind == ISSUE:
            self._begin(instruction)
            if instruction.key[0]:
                if instruction.closed:
                    self._punctual(instruction)
                self.mbarriers[instruction.key].expect(self._bytes(instruction))
        elif kind == TRIGGER:
            self._arrive(instruction)
        elif kind == DRAIN:
            for access in instruction.ends:
                self._end(access)
        self.at[process] += 1
        self.half[process] = False
        if self.at[process] == self.lengths[process] and self.at == self.lengths:
            self._exit()

    def _exit(self) -> None:
        """The CTA has ended. What happens to copies under way is not defined."""
        for access in self.flying.values():
            if access.copy:
                self._find("unawaited", (self.names[access.buffer],), access, None, "the CTA has ended")

    def finish(self) -> None:
        """To be called when nothing is enabled: who is stuck?"""
        stuck = sorted({self.code.threads[t].name for t, at in enumerate(self.at) if at < self.lengths[t]})
        if stuck and not self.halted and not any(kind == "overrun" for kind, _ in self.findings):
            self._find("deadlock", tuple(stuck))

    # ----------------------------------------------------------------------------------------------------------
    # Memory

    def _begin(self, access: Instruction) -> None:
        op = access.op
        assert isinstance(op, Access)
        for other in self.flying.values():
            if access.write or other.write:
                self._meet(other, access)
        if op.proxy == "async" and self.unfenced:
            for other in self.unfenced:
                if other.buffer == access.buffer:
                    if other.own & access.own and not access.write:
                        self._find("race", (self.names[access.buffer],), other, access, "no proxy fence")
                elif other.own & access.foreign:
                    self._pair("conflict", other, access, "no proxy fence")
        self.flying[access.identity] = access
        if access.write:
            self.lost[access.buffer] |= access.foreign & self.written
        else:
            self._look(access)

    def _meet(self, first: Instruction, second: Instruction) -> None:
        if first.buffer != second.buffer:
            if first.own & second.foreign and self._visible(first, second):
                self._pair("conflict", first, second)
        elif first.own & second.own and not _same_statement(self.code, first, second):
            self._find("race", (self.names[first.buffer],), first, second)

    def _visible(self, first: Instruction, second: Instruction) -> bool:
        """Warps that run apart may read garbage beside a store of their own role: only values that exist are lost."""
        if self.code.warps == 1 or (first.write and second.write):
            return True
        return bool((second if first.write else first).own & self.written)

    def _end(self, access: Instruction) -> None:
        del self.flying[access.identity]
        if access.write:
            own, keep = access.buffer, ~access.must
            self.lost = [lost & keep for lost in self.lost]
            self.written |= access.own
            self.lost[own] |= access.foreign & self.written
        else:
            self._look(access)
        op = access.op
        if isinstance(op, Access) and not op.fenced and access.write and op.proxy == "generic":
            self.unfenced.append(access)

    def _look(self, read: Instruction) -> None:
        for buffer, lost in enumerate(self.lost):
            if lost & read.own and buffer != read.buffer:
                pair = tuple(sorted((self.names[buffer], self.names[read.buffer])))
                self._find("clobber", pair, None, read, f"finds {self.names[buffer]} there")

    # ----------------------------------------------------------------------------------------------------------
    # Events

    def _bytes(self, access: Instruction) -> int:
        return max(1, access.own.bit_count())

    def _land(self, access: Instruction) -> None:
        self._end(access)
        if self.mbarriers[access.key].land(self._bytes(access)):
            self._completed(access.key, access)

    def _arrive(self, trigger: Instruction) -> None:
        self._punctual(trigger)
        try:
            done = self.mbarriers[trigger.key].arrive()
        except OverflowError:
            self._find("overrun", (trigger.key[0],), None, trigger, "more arrivals than the phase has")
            self.halted = True
            return
        if done:
            self._completed(trigger.key, trigger)

    def _punctual(self, arrival: Instruction) -> None:
        """An arrival, or a copy's bytes, must count for the phase that the program means."""
        phase = self.mbarriers[arrival.key].completed
        meant = arrival.number + self.initial[arrival.key[0]]
        if phase != meant:
            why = f"meant for phase {meant}, counts for phase {phase}"
            self._find("overrun", (arrival.key[0],), None, arrival, why)

    def _completed(self, key: Key, by: Instruction) -> None:
        """Phase k is over: every wait for phase k − 1 must be, too."""
        for wait in self.code.waits.get((key, self.mbarriers[key].completed - 2), ()):
            if self.at[wait.thread] <= wait.position:
                self._find("overrun", (key[0],), by, wait, "a waiter is lapped")

    # ----------------------------------------------------------------------------------------------------------

    def _pair(self, kind: str, first: Instruction, second: Instruction, why: str = "") -> None:
        low, high = sorted((self.names[first.buffer], self.names[second.buffer]))
        self._find(kind, (low, high), first, second, why)

    def _find(
        self,
        kind: str,
        subject: Subject,
        first: Instruction | None = None,
        second: Instruction | None = None,
        why: str = "",
    ) -> None:
        if (kind, subject) not in self.findings:
            self.findings[kind, subject] = Finding(kind, subject, self.steps, first, second, why)


def _same_statement(code: Code, a: Instruction, b: Instruction) -> bool:
    """Two warps of one warpgroup at the same operation: together they are one access."""
    return a.op is b.op and a.iteration == b.iteration and code.threads[a.thread].role == code.threads[b.thread].role
