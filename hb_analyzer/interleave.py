"""Turns a finding into an execution that a person can follow: a schedule in which the overlap is observed.

Any downward-closed set of nodes of the happens-before graph, in any topological order, is an execution. For a conflict
the schedule runs everything that the first access needs, begins it, runs what the second needs, and begins that one
while the first has not ended. For a clobber it runs all that the read needs; the overwriting write lies in between.
"""

from __future__ import annotations

from hb_analyzer.conditions import Finding
from hb_analyzer.model import Access, Wait
from hb_analyzer.report import ScheduleStep
from hb_analyzer.unrolling import AccessInstance, Setting, Unrolling

_KEPT_PER_ROLE = 6  # operations shown of each role concerned, before each of the accesses concerned


def interleaving(run: Unrolling, finding: Finding) -> tuple[ScheduleStep, ...]:
    """The steps of the schedule that matter, in order, numbered from 1."""
    first, second = run.accesses[finding.first], run.accesses[finding.second]
    if finding.kind == "clobber":
        assert finding.between is not None
        between = run.accesses[finding.between]
        nodes = schedule(run.preds, [second.begin])
        notes = {
            first.begin: f"writes {first.op.buffer}",
            between.begin: f"overwrites it as {between.op.buffer}",
            second.begin: "reads it: value lost",
        }
    else:
        if finding.kind == "conflict":
            first, second = _overtaken_first(run, first, second)
        nodes = schedule(run.preds, [first.begin, second.begin])
        notes = {first.begin: _beginning(first), second.begin: _meeting(finding, run, first, second)}
    keep = _relevant(run, nodes, list(notes))
    steps = [
        (node, notes.get(node) or _ending(run, node, (first, second)))
        for node in nodes
        if node in keep or _ending(run, node, (first, second))
    ]
    return tuple(ScheduleStep(number, run.site(node), note) for number, (node, note) in enumerate(steps, 1))


def schedule(preds: list[list[int]], goals: list[int]) -> list[int]:
    """The nodes that the goals need, and the goals, in an executable order: goals as early as their turn allows."""
    done: set[int] = set()
    order: list[int] = []
    for goal in goals:
        stack = [goal]
        while stack:
            node = stack[-1]
            missing = [p for p in preds[node] if p not in done]
            if missing:
                stack.append(missing[0])
                continue
            stack.pop()
            if node not in done:
                done.add(node)
                order.append(node)
    return order


def _overtaken_first(run: Unrolling, a: AccessInstance, b: AccessInstance) -> tuple[AccessInstance, AccessInstance]:
    """The two unordered accesses, first the one that can be under way when the other begins."""
    if b.begin in schedule(run.preds, [a.begin])[:-1]:
        return b, a
    if a.begin in schedule(run.preds, [b.begin])[:-1]:
        return a, b
    return (b, a) if a.end == a.begin and b.end != b.begin else (a, b)


def _beginning(access: AccessInstance) -> str:
    return "" if access.end == access.begin else "begins"


def _meeting(finding: Finding, run: Unrolling, first: AccessInstance, second: AccessInstance) -> str:
    if finding.kind == "proxy":
        return "no proxy fence since then: may not see that write, or be overtaken by it"
    name = run.site(first.begin).label
    if first.end == first.begin:
        return f"nothing orders it after “{name}”: it may come before"
    return f"begins while “{name}” has not ended"


def _ending(run: Unrolling, node: int, accesses: tuple[AccessInstance, ...]) -> str:
    ended = [run.site(a.begin).label for a in accesses if a.end == node and a.begin != node]
    return f"“{ended[0]}” ends" if ended else ""


def _relevant(run: Unrolling, nodes: list[int], keys: list[int]) -> set[int]:
    """The key nodes, what their roles did just before, and the triggers that the kept waits needed."""
    position = {node: index for index, node in enumerate(nodes)}
    keep = set(keys)
    touched = {_buffer(run, key) for key in keys}
    for key in keys:
        same_role = [n for n in nodes[: position[key]] if run.roles[n] == run.roles[key]]
        mine = [n for n in same_role if not isinstance(run.ops[n], Setting)]
        keep |= {n for n in mine[-_KEPT_PER_ROLE:] if not isinstance(run.ops[n], Access) or _buffer(run, n) in touched}
    for node in list(keep):
        if isinstance(run.ops[node], Wait):
            for p in run.preds[node]:
                setting = run.ops[p]
                if isinstance(setting, Setting):
                    keep |= set(setting.triggers)
                elif run.roles[p] != run.roles[node]:
                    keep.add(p)
    return keep & position.keys()


def _buffer(run: Unrolling, node: int) -> str | None:
    op = run.ops[node]
    return op.buffer if isinstance(op, Access) else None
