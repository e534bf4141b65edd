"""All executions of a small program, up to the order of transitions that commute.

Depth-first search over the machine's states with *persistent sets* (transitions that nothing else can ever interfere
with before they happen need no alternative) and *sleep sets* (of two transitions that commute, one order suffices);
both as in Godefroid, "Partial-Order Methods for the Verification of Concurrent Systems" (1996). States are kept, and
visited again only with transitions that slept before. Programs are finite and never return to a state, so every
execution is a reordering of one that is explored, with every pair of accesses that meet in it.

Two transitions commute unless both touch a common place or mbarrier, one changing it. An access touches its places from
its begin on; a write changes, besides its own, the places that it lies over. Whether a copy lands before the CTA ends
counts, too: the last instruction of every thread changes a bit that copies read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from hb_analyzer.model import Barrier
from hb_analyzer.simulator.code import DRAIN, MEET, TRIGGER, WAIT, Code, Instruction
from hb_analyzer.simulator.layout import Layout
from hb_analyzer.simulator.machine import Finding, Machine, Subject

Footprint = tuple[int, int]  # bit sets: what a transition reads, what it changes

_NONE: Footprint = (0, 0)


def _conflict(a: Footprint, b: Footprint) -> bool:
    return bool(a[1] & (b[0] | b[1]) or a[0] & b[1])


@dataclass
class Exploration:
    """``complete``: every execution was covered; ``schedules`` has one that shows each finding."""

    findings: dict[tuple[str, Subject], Finding] = field(default_factory=dict)
    schedules: dict[tuple[str, Subject], list[int]] = field(default_factory=dict)
    states: int = 0
    transitions: int = 0
    complete: bool = True


def explore(
    code: Code, layout: Layout, limit: int = 200_000, until: Collection[tuple[str, Subject]] | None = None
) -> Exploration:
    """Explores until all is covered, ``limit`` transitions were made, or all of ``until`` were found."""
    return _Explorer(code, layout, limit, until).run()


class _Explorer:
    def __init__(self, code: Code, layout: Layout, limit: int, until: Collection[tuple[str, Subject]] | None) -> None:
        self.code, self.limit, self.until = code, limit, until
        self.root = Machine(code, layout)
        self.bit = {key: 1 << (len(layout.places) + i) for i, key in enumerate(code.keys)}
        self.over = 1 << (len(layout.places) + len(code.keys))  # has the CTA ended?
        self.footprints = [self._footprint(instruction) for instruction in code.instructions]
        self.futures = [self._suffixes(number) for number in range(len(code.threads))]
        self.barriers = [self._barriers(number) for number in range(len(code.threads))]
        self.seen: dict[tuple[object, ...], frozenset[int]] = {}
        self.result = Exploration()

    # ----------------------------------------------------------------------------------------------------------
    # What transitions touch

    def _footprint(self, instruction: Instruction) -> Footprint:
        reads = changes = 0
        if instruction.kind == WAIT:
            reads = self.bit[instruction.key]
        elif instruction.kind == TRIGGER:
            changes = self.bit[instruction.key]
        elif instruction.kind == DRAIN:
            for access in instruction.ends:
                r, c = self._memory(access)
                reads, changes = reads | r, changes | c
        elif instruction.kind != MEET:
            reads, changes = self._memory(instruction)
            if instruction.key[0]:
                changes |= self.bit[instruction.key]
                reads |= self.over
        if instruction.position == len(self.code.threads[instruction.thread].code) - 1:
            changes |= self.over
        return reads, changes

    @staticmethod
    def _memory(access: Instruction) -> Footprint:
        return (0, access.own | access.foreign) if access.write else (access.own, 0)

    def _suffixes(self, thread: int) -> list[Footprint]:
        """What a thread may still touch, from each of its instructions on."""
        result = [_NONE]
        for instruction in reversed(self.code.threads[thread].code):
            r, c = self.footprints[instruction.identity]
            result.append((result[-1][0] | r, result[-1][1] | c))
        return result[::-1]

    def _barriers(self, thread: int) -> list[frozenset[str]]:
        result: list[frozenset[str]] = [frozenset()]
        for instruction in reversed(self.code.threads[thread].code):
            op = instruction.op
            result.append(result[-1] | {op.name} if isinstance(op, Barrier) else result[-1])
        return result[::-1]

    def _next(self, machine: Machine, process: int) -> Footprint:
        instruction = machine.next(process)
        return _NONE if instruction is None else self.footprints[instruction.identity]

    def _future(self, machine: Machine, process: int) -> Footprint:
        if process >= machine.copies_from:
            return self._next(machine, process)
        return self.futures[process][machine.at[process]]

    # ----------------------------------------------------------------------------------------------------------
    # Search

    def run(self) -> Exploration:
        result = self.result
        # machines with the transitions left to try, and those asleep
        stack: list[tuple[Machine, list[int], set[int]]] = []
        path: list[int] = []
        self._visit(self.root, set(), stack, path)
        while stack:
            machine, todo, asleep = stack[-1]
            if not todo:
                stack.pop()
                if path:
                    path.pop()
                continue
            if result.transitions >= self.limit:
                result.complete = False
                break
            process = todo.pop()
            child = machine.copy()
            known = len(child.findings)
            child.step(process)
            result.transitions += 1
            path.append(process)
            if len(child.findings) > known:
                self._note(child, path)
                if self.until is not None and set(self.until) <= result.findings.keys():
                    result.complete = False
                    break
            mine = self._next(machine, process)
            sleeping = {p for p in asleep if not self._dependent(machine, p, process, mine)}
            asleep.add(process)
            self._visit(child, sleeping, stack, path)
        result.states = len(self.seen)
        return result

    def _dependent(self, machine: Machine, other: int, process: int, mine: Footprint) -> bool:
        return other == process or _conflict(self._next(machine, other), mine)

    def _visit(
        self, machine: Machine, asleep: set[int], stack: list[tuple[Machine, list[int], set[int]]], path: list[int]
    ) -> None:
        state = machine.state()
        before = self.seen.get(state)
        enabled = machine.enabled()
        if before is not None and before <= asleep:
            stack.append((machine, [], asleep))
            return
        self.seen[state] = frozenset(asleep) if before is None else before & asleep
        if not enabled:
            known = len(machine.findings)
            machine.finish()
            if len(machine.findings) > known:
                self._note(machine, path)
            stack.append((machine, [], asleep))
            return
        chosen = self._persistent(machine, enabled)
        todo = [process for process in chosen if process not in asleep]
        stack.append((machine, todo, set(asleep)))

    def _note(self, machine: Machine, path: list[int]) -> None:
        for key, finding in machine.findings.items():
            if key not in self.result.findings:
                self.result.findings[key] = finding
                self.result.schedules[key] = list(path)

    def _persistent(self, machine: Machine, enabled: list[int]) -> list[int]:
        """A smallest persistent set, found by growing one from each enabled process."""
        everybody = [t for t in range(machine.copies_from) if machine.at[t] < machine.lengths[t]]
        everybody += [p for p in enabled if p >= machine.copies_from]
        futures = {process: self._future(machine, process) for process in everybody}
        ready = set(enabled)
        best = enabled
        for seed in enabled:
            grown = self._grow(machine, seed, everybody, futures, ready, len(best))
            if grown is not None and len(grown) < len(best):
                best = grown
                if len(best) == 1:
                    break
        return best

    def _grow(
        self,
        machine: Machine,
        seed: int,
        everybody: Iterable[int],
        futures: dict[int, Footprint],
        ready: set[int],
        limit: int,
    ) -> list[int] | None:
        members, queue, found = {seed}, [seed], []
        while queue:
            process = queue.pop()
            if process in ready:
                found.append(process)
                if len(found) >= limit:
                    return None
                touched = self._next(machine, process)
                needed = [p for p in everybody if p not in members and _conflict(futures[p], touched)]
            else:
                needed = [p for p in self._enablers(machine, process, everybody, futures) if p not in members]
            members.update(needed)
            queue += needed
        return found

    def _enablers(
        self, machine: Machine, process: int, everybody: Iterable[int], futures: dict[int, Footprint]
    ) -> list[int]:
        """All processes one of which must move before a blocked thread can."""
        instruction = machine.next(process)
        assert instruction is not None
        if instruction.kind == WAIT:
            bit = self.bit[instruction.key]
            return [p for p in everybody if futures[p][1] & bit]
        assert isinstance(instruction.op, Barrier)
        name = instruction.op.name
        return [p for p in everybody if p < machine.copies_from and name in self.barriers[p][machine.at[p]]]
