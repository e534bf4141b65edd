"""The paper's ablation "happens-before without the acyclic constraint": unsound, and kept to show why.

``HBA_NO_ACYCLIC=1`` selects it. One iteration, every event edge, no loop edges: two buffers "overlap" iff every two
*different* phases, one of each, reach each other in some direction, and no phase uses both. A trigger → wait edge that
closes a cycle then orders the two phases both ways, so that a K/V pipeline seems to allow K over V, although V of one
iteration is read while K of the next one lands. No clobber test, no deadlock report.
"""

from __future__ import annotations

import os
from itertools import combinations

from .pattern import Pattern, PhaseId
from .phase_graph import nodes_of, phase_edges, reachability
from .placement import place
from .report import Report, Site, Verdict

VARIABLE = "HBA_NO_ACYCLIC"
WARNING = f"{VARIABLE}=1: the unsound ablation without the acyclic constraint; do not place buffers by it"


def selected() -> bool:
    """Whether the environment asks for the ablation."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def analyse_without_acyclic(pattern: Pattern) -> Report:
    """The ablation's report of a pattern. Its verdicts are not safe."""
    edges = phase_edges(pattern)
    reached = reachability(nodes_of(pattern, edges), edges)
    users: dict[str, list[PhaseId]] = {buffer.name: [] for buffer in pattern.buffers}
    for id, phase in pattern.phases():
        for name in phase.buffers:
            users[name].append(id)

    def site(id: PhaseId) -> Site:
        return Site(id.role, pattern.phase(id).label)

    def verdict(a: str, b: str) -> Verdict:
        for p in users[a]:
            for q in users[b]:
                if p == q:
                    return Verdict(a, b, False, "conflict", "one phase uses both", site(p), site(q))
                if q not in reached[p] and p not in reached[q]:
                    return Verdict(a, b, False, "conflict", "neither phase reaches the other", site(p), site(q))
        return Verdict(a, b, True, why="every two phases reach each other in some direction")

    names = sorted(users)
    verdicts = tuple(verdict(a, b) for a, b in combinations(names, 2))
    blocks = {buffer.name: (buffer.size, buffer.align) for buffer in pattern.buffers}
    apart = place(blocks, [frozenset(pair) for pair in combinations(names, 2)])
    return Report(
        pattern.kernel,
        pattern.framework,
        apart.size,
        verdicts,
        place(blocks, [frozenset((v.a, v.b)) for v in verdicts if not v.overlap]),
        notes=(WARNING,),
    )
