"""The comparison of one kernel: every warpgroup's threads walked, then what holds for all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from croqtile.analyse import Analysis
from croqtile.layout import Layout
from croqtile.validation import footprint, reference
from croqtile.validation.cursor import Cursor
from croqtile.validation.evaluate import Evaluator
from croqtile.validation.events import Refusal
from croqtile.validation.findings import Findings
from croqtile.validation.host import HostSide
from croqtile.validation.launches import Launches
from croqtile.validation.matcher import Matcher
from croqtile.validation.program import Program
from croqtile.validation.progress import Match
from croqtile.validation.ptx import Entry
from croqtile.validation.reference import Reference
from croqtile.validation.result import Problem, RoleRow
from croqtile.validation.values import WARPGROUP, Bounds
from croqtile.validation.walk import Divided, Walk
from croqtile.walk import RoleKey
from hb_analyzer import model


@dataclass
class _Class:
    """Threads of a warpgroup that walk together."""

    threads: frozenset[int]
    cursor: Cursor
    lines: Mapping[int, str]


@dataclass
class Checker:
    """One comparison. ``first_only``: stop at the first problem. ``order``: warpgroups to begin with."""

    analysis: Analysis
    host: HostSide
    launches: Launches
    evaluator: Evaluator
    first_only: bool = False
    order: Sequence[int] = ()
    problems: list[Problem] = field(default_factory=list)
    rows: list[RoleRow] = field(default_factory=list)
    walked: int = 0
    lines: dict[tuple[str, str, str], set[int]] = field(default_factory=dict)  # role, label, place → PTX lines
    findings: Findings = field(default_factory=Findings)

    def run(self, entry: Entry) -> None:
        """Fills ``problems`` and ``rows``. Raises Refusal for what concerns the kernel as a whole."""
        kernel, program = self.analysis.kernel, self.analysis.program
        if len(self.host.parameters) != len(entry.parameters) or self.host.threads != entry.threads:
            raise Refusal("the host code launches another kernel than the PTX has")
        if self.host.threads != WARPGROUP * kernel.warpgroups:
            raise Refusal(f"{self.host.threads} threads are launched for {kernel.warpgroups} warpgroups")
        layout = Layout(kernel)
        if layout.has_block or kernel.cluster > 1:
            raise Refusal("kernels with accesses outside of roles, or with clusters, are not followed")
        self.program = Program(entry, self.host, self.launches, self.evaluator)
        self.bounds = {p.name: Bounds(p.minimum, p.maximum) for p in program.parameters}
        self.entry = entry
        roles = {role.name: role for role in program.roles}
        keys = {name: key for name, key in layout.roles.items() if key is not None}
        self.members = {name: key.warpgroup for name, key in keys.items()}
        for warpgroup in dict.fromkeys((*self.order, *range(kernel.warpgroups))):
            own = [name for name, key in keys.items() if key.warpgroup == warpgroup]
            if len(own) > 1:
                raise Refusal(f"warpgroup {warpgroup} runs {len(own)} roles, which is not followed")
            name = own[0] if own else ""
            try:
                self._warpgroup(warpgroup, roles.get(name), keys.get(name))
            except Refusal as error:
                self.problems.append(Problem(name or f"warpgroup {warpgroup}", str(error), error.line))
                if self.first_only:
                    return
        if not self.problems:
            self._barriers()
            self._memory()

    # -- one warpgroup

    def _warpgroup(self, warpgroup: int, role: model.Role | None, key: RoleKey | None) -> None:
        kernel, program = self.analysis.kernel, self.analysis.program
        code = Reference(kernel, program, role, self.analysis.placement.offsets, self.evaluator.modulus)
        idle = Reference(kernel, program, None, self.analysis.placement.offsets, self.evaluator.modulus)
        waiting = [frozenset(range(WARPGROUP))]
        done: list[_Class] = []
        while waiting:
            threads = waiting.pop(0)
            try:
                done.append(self._class(warpgroup, threads, code, idle, role, key))
            except Divided as division:
                waiting += [part for part in division.parts if part]
        leaders = [found for found in done if found.cursor.leader]
        if role is not None and len(leaders) != 1:
            raise Refusal(f"{len(leaders)} single threads could act for the warpgroup, not one")
        if sum(len(found.threads) for found in done) != WARPGROUP:
            raise Refusal("not every thread of the warpgroup has been followed")
        active = [found for found in done if found.cursor.reference is code]
        for found in active:
            meetings = found.cursor.meetings
            if meetings != active[0].cursor.meetings or any(len(numbers) > 1 for numbers in meetings.values()):
                raise Refusal("the warps do not meet equally often on all paths")
        self._stores(code, active)
        for found in active:
            for (label, where), lines in found.cursor.lines.items():
                self.lines.setdefault((code.name, label, where), set()).update(lines)
        reached = {line: kind for found in done for line, kind in found.lines.items()}
        kinds: dict[str, int] = {}
        for line, kind in reached.items():
            kinds[kind] = kinds.get(kind, 0) + (line > 0)
        operations = len(list(reference.operations(code.code)))
        self.rows.append(RoleRow(role.name if role else "idle", warpgroup, operations, kinds, tuple(sorted(reached))))

    def _class(
        self,
        warpgroup: int,
        threads: frozenset[int],
        code: Reference,
        idle: Reference,
        role: model.Role | None,
        key: RoleKey | None,
    ) -> _Class:
        """Threads that take all branches together; of which role, their number and what they do decide."""
        lone = role is not None and code.single  # one thread may do it all
        choices: list[tuple[Reference, bool, bool]]
        if role is None:
            choices = [(idle, False, False)]
        elif key is not None and key.thread is not None:
            choices = [(code, True, False) if threads == {key.thread} else (idle, False, False)]
        elif len(threads) == 1:
            choices = [(code, True, not lone)]
        else:
            choices = [(idle, False, False)] if lone else [(code, False, True)]
        failure: Refusal | None = None
        for chosen, leader, together in choices:
            cursor = Cursor(chosen, self.findings, self.host, warpgroup, threads, self.members, leader, together)
            walk: Walk[Match] = Walk(self.program, warpgroup, threads, self.bounds, Matcher(cursor))
            try:
                walk.run()
            except Refusal as error:
                failure = failure or error
                continue
            finally:
                self.walked += walk.steps
            return _Class(threads, cursor, walk.events)
        assert failure is not None
        raise failure

    def _stores(self, code: Reference, classes: list[_Class]) -> None:
        """All threads together write what the program says they write, and no two warps the same byte."""
        for key in {key for found in classes for key in found.cursor.stored}:
            warps = [0, 0, 0, 0]
            for found in classes:
                visits = found.cursor.stored.get(key, [(0, 0, 0, 0)])
                if any(visit != visits[0] for visit in visits):
                    raise Refusal(f"{code.describe(*key)}: not the same bytes on all paths")
                for warp, mask in enumerate(visits[0]):
                    warps[warp] |= mask
            written = 0
            for mask in warps:
                if mask & written:
                    raise Refusal(f"{code.describe(*key)}: two warps write {footprint.describe(mask & written)}")
                written |= mask
            wanted = 0
            for target in code.targets(*key, self.bounds):
                wanted |= target.mask
            if written != wanted:
                raise Refusal(f"{code.describe(*key)}: {footprint.describe(wanted & ~written)} are not written")

    # -- the kernel as a whole

    def _barriers(self) -> None:
        """Each mbarrier is initialised once, with the arrivals that were analysed, and there are no others."""
        wanted = {}
        for event in self.analysis.program.events:
            start = self.findings.events.get(event.name)
            for slot in range(event.slots) if start else ():
                assert start is not None
                place = type(start)(start.base, start.align, start.offset + 8 * slot)
                wanted[place] = (f"{event.name}[{slot}]", event.arrivals)
        for place, (name, arrivals) in wanted.items():
            count = self.findings.inits.get(place)
            if count != arrivals:
                found = "is not initialised" if count is None else f"expects {count} arrivals"
                self.problems.append(Problem("", f"the mbarrier of {name} {found}; {arrivals} were analysed"))
        for place in self.findings.inits.keys() - wanted.keys():
            self.problems.append(Problem("", f"an mbarrier at {place.base} + {place.offset} belongs to no event"))
        if any(len(ways) > 1 for ways in self.findings.setups.values()):
            self.problems.append(Problem("", "mbarriers are initialised on some paths only"))
        if sum(frozenset() not in ways for ways in self.findings.setups.values()) > 1:
            self.problems.append(Problem("", "several threads initialise mbarriers"))

    def _memory(self) -> None:
        """The placement, with its base aligned, and the mbarriers lie apart within what the launch requests."""
        findings, placement = self.findings, self.analysis.placement
        if findings.base is None:
            return
        needed = max((buffer.align for buffer in self.analysis.kernel.buffers), default=1)
        if findings.alignment % needed:
            self.problems.append(Problem("", f"the buffers are aligned to {findings.alignment} bytes, not {needed}"))
        name = findings.base[3:].split(",")[0] if findings.base.startswith("up(") else findings.base
        variable = self.entry.shared[name]
        slack = findings.alignment - variable.align if findings.base != name else 0
        room = (self.host.dynamic_bytes if variable.size is None else variable.size) - slack
        if placement.size > room:
            self.problems.append(Problem("", f"the buffers need {placement.size} bytes; {room} are requested"))
        for place in findings.inits:
            own = place.base == findings.base
            size = self.entry.shared[place.base].size if place.base in self.entry.shared else None
            limit = room if own else size
            if limit is None or not (placement.size if own else 0) <= place.offset <= limit - 8 or place.offset % 8:
                self.problems.append(
                    Problem("", f"the mbarrier at {place.base} + {place.offset} is not in memory of its own")
                )
