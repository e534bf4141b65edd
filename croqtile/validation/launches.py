"""Sample launches: what parameters and block indices may be, and the trip counts that they make.

A trip count is an expression of the launch. Whether the compiled code computes the one that was analysed is decided by
evaluating both at these launches: all small sizes one by one, and random larger ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from croqtile import fold, ir, rewrite
from croqtile.validation.ptx import PtxError
from hb_analyzer import model

SMALL, RANDOM = 128, 272  # SMALL is a power of two
_LARGEST = 4096


@dataclass(frozen=True)
class Launches:
    """``values``: C name of each dimension and grid index → its value at each sample. ``trips``: the same for the
    parameters of the analysed program."""

    values: Mapping[str, tuple[int, ...]]
    trips: Mapping[str, tuple[int, ...]]
    count: int


def sample(kernel: ir.Kernel, program: model.Program, seed: int = 0) -> Launches:
    """Launches of ``kernel``. Raises PtxError where the analysed trip counts are not those of the IR."""
    environments = list(_environments(kernel, random.Random(seed)))
    symbols = [*kernel.dims, *kernel.grid]
    values = {symbol.cname: tuple(env[symbol] for env in environments) for symbol in symbols}
    extents = {str(s.span): s.extent for s in rewrite.statements(kernel.body) if isinstance(s, ir.ForEach)}
    lowest = {parameter.name: parameter.minimum for parameter in program.parameters}
    trips: dict[str, tuple[int, ...]] = {}
    for role in program.roles:
        for loop in _loops(role.body):
            names = model.names_in(loop.trip) & lowest.keys()
            if not names:
                continue
            (name,) = names if len(names) == 1 else (None,)
            extent = extents.get(str(loop.where))
            if name is None or extent is None:
                raise PtxError(f"the trip count {loop.trip} is not one launch-time parameter and a constant")
            constant = model.evaluate(loop.trip, {name: 0})
            if any(model.evaluate(loop.trip, {name: n}) != n + constant for n in (1, 7, 1000)):
                raise PtxError(f"the trip count {loop.trip} is not one launch-time parameter and a constant")
            found = [fold.evaluate(extent, env) for env in environments]
            if None in found:
                raise PtxError(f"the trip count at {loop.where} cannot be evaluated")
            counts = tuple(int(str(n)) - constant for n in found)
            if trips.setdefault(name, counts) != counts:
                raise PtxError(f"the loops that are analysed to run {name} times do not run equally often")
            if min(counts) < lowest[name]:
                raise PtxError(f"{name} is analysed to be at least {lowest[name]}, but can be {min(counts)}")
    return Launches(values, trips, len(environments))


def _loops(body: tuple[model.Statement, ...]) -> Iterator[model.Loop]:
    for statement in body:
        if isinstance(statement, model.Loop):
            yield statement
            yield from _loops(statement.body)
        elif isinstance(statement, model.If):
            yield from _loops((*statement.then, *statement.orelse))


def _environments(kernel: ir.Kernel, generator: random.Random) -> Iterator[dict[ir.Symbol, int]]:
    lets = [s for s in kernel.body if isinstance(s, ir.Let)]
    for number in range(SMALL + RANDOM):
        env: dict[ir.Symbol, int] = {}
        for position, dim in enumerate(kernel.dims):
            small = number * (2 * position + 1) % SMALL + 1  # each of them once, in another order for each dimension
            env[dim] = small if number < SMALL else generator.randint(1, _LARGEST if generator.random() < 0.5 else 64)
        for axis in kernel.grid:
            bound = fold.evaluate(axis.bound, env) if axis.bound is not None else None
            if bound is None:
                raise PtxError(f"the extent of the grid along {axis.name} cannot be evaluated")
            env[axis] = generator.choice((0, bound - 1, generator.randrange(bound)))
        for let in lets:
            value = fold.evaluate(let.value, env)
            if value is not None:
                env[let.symbol] = value
        yield env
