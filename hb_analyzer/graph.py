"""Order in a finite happens-before graph: topological order, cycles, closure over accesses, shortest chains.

The closure is kept where it is asked for only: per access, two bit sets over access indices (Python integers).
"""

from __future__ import annotations

from collections import deque

from hb_analyzer.unrolling import Unrolling


def topological_order(preds: list[list[int]]) -> list[int]:
    """Nodes, predecessors first. Shorter than ``preds`` iff there is a cycle: then the nodes that can execute."""
    # The edges out of each node as linked lists in arrays: the graphs are large, and a list for each node takes longer.
    first = [-1] * len(preds)  # node -> its first edge
    following: list[int] = []  # edge -> the next one of the same node
    goals: list[int] = []
    for node, before in enumerate(preds):
        for p in before:
            following.append(first[p])
            first[p] = len(goals)
            goals.append(node)
    missing = list(map(len, preds))
    order = [node for node, count in enumerate(missing) if count == 0]
    for node in order:
        edge = first[node]
        while edge >= 0:
            goal = goals[edge]
            missing[goal] -= 1
            if missing[goal] == 0:
                order.append(goal)
            edge = following[edge]
    return order


def find_cycle(preds: list[list[int]]) -> list[int]:
    """A shortest-by-search cycle, in execution-order direction; empty if there is none."""
    executable = set(topological_order(preds))
    blocked = [node for node in range(len(preds)) if node not in executable]
    if not blocked:
        return []
    # Every blocked node has a blocked predecessor, so walking backwards must close a cycle.
    seen: dict[int, int] = {}
    walk: list[int] = []
    node = blocked[0]
    while node not in seen:
        seen[node] = len(walk)
        walk.append(node)
        node = next(p for p in preds[node] if p not in executable)
    return walk[seen[node] :][::-1]


class Ordering:
    """Which accesses are over before which others begin.

    ``before[i]`` has bit j iff access j has ended before access i begins; ``after[i]`` has bit j iff access j begins
    after access i has ended. Bit ``tracked[n]`` of ``done[node]``, above those of the accesses, says that the
    synchronisation node n happened strictly before ``node``.
    """

    def __init__(self, unrolling: Unrolling, order: list[int]) -> None:
        """``order`` is a complete topological order of the unrolling."""
        preds, accesses = unrolling.preds, unrolling.accesses
        ends = [0] * len(preds)
        begins = [0] * len(preds)
        for access in accesses:
            begins[access.begin] |= 1 << access.index
            if access.end is not None:
                ends[access.end] |= 1 << access.index
        sync = {node for settings in unrolling.settings.values() for setting in settings for node in setting.made_by}
        sync.update(node for by_role in unrolling.waits.values() for waits in by_role.values() for node in waits)
        # Their bits in order, so that the sets of early nodes are short.
        self.tracked = {node: bit for bit, node in enumerate((n for n in order if n in sync), len(accesses))}
        for node, bit in self.tracked.items():
            ends[node] |= 1 << bit
        self.done = done = [0] * len(preds)
        over = [0] * len(preds)  # `done`, and what ends at the node itself
        for node in order:
            bits = 0
            for p in preds[node]:
                bits = bits | over[p] if bits else over[p]
            done[node] = bits
            over[node] = bits | ends[node] if ends[node] else bits
        future = [0] * len(preds)
        for node in reversed(order):
            bits = future[node] | begins[node] if begins[node] else future[node]
            for p in preds[node]:
                future[p] = future[p] | bits if future[p] else bits
        everything = (1 << len(accesses)) - 1
        self.before = [done[access.begin] & everything for access in accesses]
        self.after = [0 if access.end is None else future[access.end] for access in accesses]

    def happened(self, earlier: int, node: int) -> bool:
        """Did the tracked synchronisation node ``earlier`` happen strictly before ``node``?"""
        return bool(self.done[node] >> self.tracked[earlier] & 1)


def shortest_chain(preds: list[list[int]], start: int, goal: int) -> list[int]:
    """A chain of edges from ``start`` to ``goal`` with the fewest nodes; empty if ``goal`` does not follow."""
    if start == goal:
        return [start]
    parent = {goal: goal}
    queue = deque([goal])
    while queue:
        node = queue.popleft()
        for p in preds[node]:
            if p not in parent:
                parent[p] = node
                if p == start:
                    chain = [start]
                    while chain[-1] != goal:
                        chain.append(parent[chain[-1]])
                    return chain
                queue.append(p)
    return []
