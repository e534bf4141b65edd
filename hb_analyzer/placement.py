"""Places blocks at byte offsets so that interfering blocks never intersect, with the smallest peak.

This is interval colouring of the interference graph. Any placement can be pushed down until every block lies at 0 or
right above (aligned) an interfering block that starts no higher, so the search only visits placements built in the
order of their offsets: each next block goes to the aligned top of the interfering blocks placed so far. Connected
components of the interference graph do not influence each other and are placed apart.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hb_analyzer.report import Placement

EXACT_LIMIT = 16  # blocks up to which the search is exhaustive
_SEARCH_BUDGET = 300_000  # search nodes per component; on reaching it the placement is not called exact

Block = tuple[int, int]  # (size, alignment) in bytes
Neighbours = dict[str, set[str]]


def align_up(offset: int, alignment: int) -> int:
    """The smallest multiple of ``alignment`` that is at least ``offset``."""
    return -(-offset // alignment) * alignment


def sequential(blocks: Mapping[str, Block]) -> int:
    """Bytes with every block in its own place, in the given order, alignment included."""
    end = 0
    for size, alignment in blocks.values():
        end = align_up(end, alignment) + size
    return end


def place(blocks: Mapping[str, Block], interferes: Collection[frozenset[str]]) -> Placement:
    """Offsets with the smallest peak found (provably the smallest if ``exact``).

    ``blocks`` maps a name to (size, alignment), in bytes; ``interferes`` holds pairs of names that must not
    intersect. Raises ValueError for a pair that names unknown blocks, a negative size or an alignment below 1.
    """
    neighbours: Neighbours = {name: set() for name in blocks}
    for pair in interferes:
        if len(pair) != 2 or not pair <= blocks.keys():
            raise ValueError(f"not a pair of blocks: {', '.join(sorted(pair))}")
        a, b = sorted(pair)
        neighbours[a].add(b)
        neighbours[b].add(a)
    for name, (size, alignment) in blocks.items():
        if size < 0 or alignment < 1:
            raise ValueError(f"block {name}: size {size} or alignment {alignment} is out of range")
    offsets: dict[str, int] = {}
    bound, exact = 0, True
    for component in _components(neighbours):
        local = {name: blocks[name] for name in blocks if name in component}
        clique = _heaviest_clique(local, neighbours) if len(local) <= EXACT_LIMIT else _greedy_clique(local, neighbours)
        best = _best_fit(local, neighbours)
        optimal = _peak(local, best) <= clique
        if not optimal and len(local) <= EXACT_LIMIT:
            search = _Search(local, neighbours, best, clique)
            optimal = search.run()
            best = search.best
        offsets.update(best)
        bound, exact = max(bound, clique), exact and optimal
    peak = _peak(blocks, offsets)
    # A component above the limit may be suboptimal and yet lie below the peak that another one needs.
    exact = exact or peak == bound
    placement = Placement(
        offsets={name: offsets[name] for name in blocks},
        sizes={name: size for name, (size, _) in blocks.items()},
        size=peak,
        lower_bound=bound,
        exact=exact,
    )
    verify(placement, blocks, interferes)
    return placement


def verify(placement: Placement, blocks: Mapping[str, Block], interferes: Collection[frozenset[str]]) -> None:
    """Raises AssertionError if a block is misaligned or missing, or two interfering blocks intersect."""
    for name, (size, alignment) in blocks.items():
        offset = placement.offsets[name]
        if offset < 0 or offset % alignment or offset + size > placement.size:
            raise AssertionError(f"placement of {name} at {offset} breaks its alignment of {alignment} or the peak")
    for pair in interferes:
        a, b = sorted(pair)
        if (
            placement.offsets[a] < placement.offsets[b] + blocks[b][0]
            and placement.offsets[b] < placement.offsets[a] + blocks[a][0]
        ):
            raise AssertionError(f"placement puts the interfering buffers {a} and {b} over each other")


def _peak(blocks: Mapping[str, Block], offsets: Mapping[str, int]) -> int:
    return max((offsets[name] + size for name, (size, _) in blocks.items()), default=0)


def _components(neighbours: Neighbours) -> list[set[str]]:
    components: list[set[str]] = []
    seen: set[str] = set()
    for name in neighbours:
        if name in seen:
            continue
        component, stack = {name}, [name]
        while stack:
            for other in neighbours[stack.pop()] - component:
                component.add(other)
                stack.append(other)
        seen |= component
        components.append(component)
    return components


def _heaviest_clique(blocks: Mapping[str, Block], neighbours: Neighbours) -> int:
    """Bytes of the heaviest set of mutually interfering blocks (exact; branch and bound)."""
    best = 0

    def extend(weight: int, candidates: list[str]) -> None:
        nonlocal best
        best = max(best, weight)
        rest = sum(blocks[name][0] for name in candidates)
        for index, name in enumerate(candidates):
            if weight + rest <= best:
                return
            extend(weight + blocks[name][0], [other for other in candidates[index + 1 :] if other in neighbours[name]])
            rest -= blocks[name][0]

    extend(0, sorted(blocks, key=lambda name: -blocks[name][0]))
    return best


def _greedy_clique(blocks: Mapping[str, Block], neighbours: Neighbours) -> int:
    """Bytes of a heavy clique: grown from every block by the largest common neighbour."""
    best = 0
    by_size = sorted(blocks, key=lambda name: -blocks[name][0])
    for seed in by_size:
        weight, common = blocks[seed][0], neighbours[seed]
        for name in by_size:
            if name in common:
                weight += blocks[name][0]
                common = common & neighbours[name]
        best = max(best, weight)
    return best


def _lowest_gap(name: str, blocks: Mapping[str, Block], neighbours: Neighbours, offsets: Mapping[str, int]) -> int:
    """The lowest aligned offset at which ``name`` intersects no placed neighbour."""
    size, alignment = blocks[name]
    offset = 0
    for low, high in sorted((offsets[o], offsets[o] + blocks[o][0]) for o in neighbours[name] if o in offsets):
        if offset + size <= low:
            break
        offset = max(offset, align_up(high, alignment))
    return offset


def _best_fit(blocks: Mapping[str, Block], neighbours: Neighbours) -> dict[str, int]:
    """The best of a few greedy orders; each block goes into the lowest gap that takes it."""

    def load(name: str) -> int:
        return blocks[name][0] + sum(blocks[other][0] for other in neighbours[name])

    orders = [
        sorted(blocks, key=lambda name: (-blocks[name][0], name)),
        sorted(blocks, key=lambda name: (-load(name), -blocks[name][0], name)),
        sorted(blocks, key=lambda name: (-blocks[name][1], -blocks[name][0], name)),
        list(blocks),
    ]
    best: dict[str, int] | None = None
    for order in orders:
        offsets: dict[str, int] = {}
        for name in order:
            offsets[name] = _lowest_gap(name, blocks, neighbours, offsets)
        if best is None or _peak(blocks, offsets) < _peak(blocks, best):
            best = offsets
    assert best is not None
    return best


class _Search:
    """Branch and bound over the blocks in the order of their offsets, which is one-machine scheduling of every clique.

    A block's *floor* is the aligned top of its placed neighbours. The next block always goes to its floor; nothing may
    be left behind that would fit below it (it could be pushed down later, so those placements are not needed).
    """

    def __init__(self, blocks: Mapping[str, Block], neighbours: Neighbours, best: dict[str, int], bound: int) -> None:
        self.names = sorted(blocks, key=lambda name: (-blocks[name][0], name))
        self.sizes = [blocks[name][0] for name in self.names]
        self.alignments = [blocks[name][1] for name in self.names]
        self.neighbours = [{self.names.index(other) for other in neighbours[name]} for name in self.names]
        self.cliques = _maximal_cliques(self.neighbours)
        self.best = best
        self.peak = _peak(blocks, best)
        self.bound = bound
        self.budget = _SEARCH_BUDGET
        self.seen: dict[tuple[int, ...], int] = {}  # open state -> lowest peak it was reached with

    def run(self) -> bool:
        """Improves ``best``; true if no smaller peak exists."""
        self._extend({}, dict.fromkeys(range(len(self.names)), 0), 0, 0)
        return self.budget > 0 or self.peak == self.bound

    def _extend(self, offsets: dict[int, int], floors: dict[int, int], low: int, peak: int) -> None:
        """``floors``: of the blocks not yet placed; ``low``: the last offset used; ``peak``: of what is placed."""
        if self.peak == self.bound or self.budget <= 0:
            return
        self.budget -= 1
        if not floors:
            self.peak, self.best = peak, {self.names[block]: offset for block, offset in offsets.items()}
            return
        # The past matters only through its peak and these floors; one below `low` must be raised before it is used.
        state = tuple(
            -2 if block not in floors else -1 if floors[block] < low else floors[block]
            for block in range(len(self.names))
        )
        if self.seen.get(state, self.peak) <= peak or self._least_peak(floors, low) >= self.peak:
            return
        self.seen[state] = peak
        sizes = self.sizes
        # Any block placed at or above this would leave another one behind that fits below it.
        ceiling = min(floor + sizes[block] for block, floor in floors.items())
        for block in sorted(floors, key=lambda b: (floors[b], -sizes[b])):
            offset = floors[block]
            top = offset + sizes[block]
            if low <= offset and top < self.peak and (offset < ceiling or sizes[block] == 0):
                rest = {
                    other: max(floor, align_up(top, self.alignments[other]))
                    if other in self.neighbours[block]
                    else floor
                    for other, floor in floors.items()
                    if other != block
                }
                self._extend({**offsets, block: offset}, rest, offset, max(peak, top))

    def _least_peak(self, floors: dict[int, int], low: int) -> int:
        """A lower bound of the tops of the blocks not yet placed: each clique stacked in the order of its floors."""
        least = 0
        for clique in self.cliques:
            end = low
            for floor, size in sorted((floors[block], self.sizes[block]) for block in clique if block in floors):
                end = max(end, floor) + size
            least = max(least, end)
        return least


def _maximal_cliques(neighbours: list[set[int]]) -> list[list[int]]:
    """All maximal cliques (Bron and Kerbosch with pivoting)."""
    cliques: list[list[int]] = []

    def expand(clique: list[int], candidates: set[int], excluded: set[int]) -> None:
        if not candidates and not excluded:
            cliques.append(clique)
            return
        pivot = max(candidates | excluded, key=lambda block: len(neighbours[block] & candidates))
        for block in sorted(candidates - neighbours[pivot]):
            expand([*clique, block], candidates & neighbours[block], excluded & neighbours[block])
            candidates = candidates - {block}
            excluded = excluded | {block}

    expand([], set(range(len(neighbours))), set())
    return cliques
