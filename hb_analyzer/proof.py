"""Shows why two buffers may share addresses: for each pair of their accesses, the chain that orders them.

A chain runs from the end of one access to the beginning of the other through program order, settings and waits, and
barrier meetings; steps inside one role are left out, so that what remains are the places where one role waits for
another. Chains are taken from one unrolling large enough that every ring has wrapped.
"""

from __future__ import annotations

from hb_analyzer.conditions import bits_of
from hb_analyzer.graph import Ordering, shortest_chain
from hb_analyzer.model import Access
from hb_analyzer.report import Site
from hb_analyzer.unrolling import AccessInstance, Setting, Unrolling

_LIMIT = 16  # chains shown for one pair


def proof_paths(run: Unrolling, ordering: Ordering, a: str, b: str) -> tuple[tuple[Site, ...], ...]:
    """One shortest chain for each pair of accesses (one of ``a``, one of ``b``, not both reads) and direction."""
    instances: dict[tuple[int, int], tuple[Access, list[AccessInstance]]] = {}  # (role, statement) -> its instances
    for access in run.accesses:
        if access.op.buffer in (a, b):
            key = (run.roles[access.begin], id(access.op))
            instances.setdefault(key, (access.op, []))[1].append(access)
    paths: dict[tuple[Site, ...], None] = {}
    for op, earlier in instances.values():
        for other, later in instances.values():
            if op.buffer != other.buffer and "w" in (op.mode, other.mode):
                path = _closest(run, ordering, earlier, later)
                if path:
                    paths.setdefault(path)
    return tuple(paths)[:_LIMIT]


def _closest(
    run: Unrolling, ordering: Ordering, earlier: list[AccessInstance], later: list[AccessInstance]
) -> tuple[Site, ...]:
    """The chain from the last of ``earlier`` that some of ``later`` follow to the first that does."""
    candidates = sum(1 << access.index for access in later)
    for access in reversed(earlier):
        following = ordering.after[access.index] & candidates
        if following and access.end is not None:
            goal = run.accesses[next(bits_of(following))]
            chain = shortest_chain(run.preds, access.end, goal.begin)
            return _sites(run, access.begin, chain)
    return ()


def _sites(run: Unrolling, begin: int, chain: list[int]) -> tuple[Site, ...]:
    """Sites of the access, of its end if elsewhere, of the operations where the chain changes role, of the goal."""
    steps = [node for index, node in enumerate(chain) if index == 0 or not isinstance(run.ops[node], Setting)]
    roles = [run.roles[node] for node in steps]
    last = len(steps) - 1
    nodes = [
        node
        for index, node in enumerate(steps)
        if index in (0, last) or not roles[index - 1] == roles[index] == roles[index + 1]
    ]
    return tuple(run.site(node) for node in ([begin, *nodes] if nodes[0] != begin else nodes))
