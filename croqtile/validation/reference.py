"""The analysed program of one role as code that can be stepped through: what must come next, and where.

Neighbouring accesses that nothing orders among each other become one step: copies that one setting of an event counts,
operands of matrix instructions up to their commit, stores, copies out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Union

from croqtile import ir
from croqtile.validation import footprint
from croqtile.validation.events import Refusal
from croqtile.validation.values import Bounds
from hb_analyzer import model

Environment = tuple[tuple[str, int], ...]


class Undecided(Refusal):
    """Whether a loop goes on depends on a comparison that the code has not made yet."""


@dataclass(frozen=True)
class Accesses:
    """``kind``: "copy in", "mma", "store" or "copy out"."""

    kind: str
    accesses: tuple[model.Access, ...]


@dataclass(frozen=True)
class Enter:
    """Start of a loop; ``end``: the position behind it."""

    loop: model.Loop
    end: int


@dataclass(frozen=True)
class Repeat:
    start: int


@dataclass(frozen=True)
class End:
    pass


Step = Union[
    Accesses, model.Wait, model.Trigger, model.Commit, model.Drain, model.Barrier, model.Step, Enter, Repeat, End
]


@dataclass(frozen=True)
class Target:
    """An access at its place: the bytes from the base of the placement."""

    access: model.Access
    buffer: ir.SharedBuffer
    mask: int
    event: tuple[str, int] | None


class Reference:
    """The code of one role, and the values of its expressions."""

    def __init__(
        self,
        kernel: ir.Kernel,
        program: model.Program,
        role: model.Role | None,
        offsets: Mapping[str, int],
        modulus: int,
    ) -> None:
        self.kernel, self.offsets, self.modulus = kernel, offsets, modulus
        self.name = role.name if role else "idle"
        self.buffers = {buffer.name: buffer for buffer in kernel.buffers}
        self.parameters = frozenset(parameter.name for parameter in program.parameters)
        self.code: list[Step] = []
        self._compile(role.body if role else ())
        self.code.append(End())

    @property
    def single(self) -> bool:
        """Could one thread run it for its warpgroup?"""
        allowed = (model.Wait, model.Trigger, model.Step, Enter, Repeat, End)
        return all(isinstance(s, allowed) or (isinstance(s, Accesses) and s.kind == "copy in") for s in self.code)

    def _compile(self, body: Sequence[model.Statement]) -> None:
        position = 0
        while position < len(body):
            statement = body[position]
            position += 1
            if isinstance(statement, model.Access):
                run = [statement]
                while position < len(body) and _together(statement, body[position]):
                    following = body[position]
                    assert isinstance(following, model.Access)
                    run.append(following)
                    position += 1
                self.code.append(Accesses(_kind(statement), tuple(run)))
            elif isinstance(statement, model.Loop):
                start = len(self.code)
                self.code.append(End())  # replaced below
                self._compile(statement.body)
                self.code.append(Repeat(start))
                self.code[start] = Enter(statement, len(self.code))
            elif isinstance(statement, model.If):
                if model.names_in(statement.condition):
                    raise Refusal(f"the analysed program branches on {statement.condition}, which is not followed")
                taken = model.evaluate(statement.condition, {})
                self._compile(statement.then if taken else statement.orelse)
            elif isinstance(statement, model.Opaque):
                raise Refusal(f"the analysed program leaves something open: {statement.reason}")
            else:
                self.code.append(statement)

    # -- expressions

    def value(self, expr: model.IntExpr, env: Environment, bounds: Mapping[str, Bounds]) -> int:
        """A slot. It must not depend on more than the residues of counters and parameters."""
        names = _names(expr) & self.parameters
        known = tuple((name, bounds[name]) for name in sorted(names)) if names else ()
        return _value(expr, env, known, self.modulus)

    def advance(self, position: int, env: Environment, bounds: Mapping[str, Bounds]) -> tuple[int, Environment]:
        """Over loops and counters, to the next operation."""
        while True:
            step = self.code[position]
            if isinstance(step, Enter):
                names = dict(env)
                counter = names.setdefault(step.loop.counter, 0)
                if self._goes_on(step.loop.trip, counter, bounds):
                    position += 1
                else:
                    del names[step.loop.counter]
                    position = step.end
                env = tuple(sorted(names.items()))
            elif isinstance(step, Repeat):
                start = self.code[step.start]
                assert isinstance(start, Enter)
                names = dict(env)
                names[start.loop.counter] += 1
                env, position = tuple(sorted(names.items())), step.start
            elif isinstance(step, model.Step):
                names = dict(env)
                names[step.counter] = (names.get(step.counter, 0) + step.by) % self.modulus
                env, position = tuple(sorted(names.items())), position + 1
            else:
                return position, env

    def _goes_on(self, trip: model.IntExpr, counter: int, bounds: Mapping[str, Bounds]) -> bool:
        names = model.names_in(trip)
        if not names:
            return counter < model.evaluate(trip, {})
        (name,) = names
        known = bounds[name]
        limit = counter - model.evaluate(trip, {name: 0})  # goes on iff parameter > limit
        if known.low > limit:
            return True
        if known.high is not None and known.high <= limit:
            return False
        raise Undecided(f"the code acts without having compared its counter with {trip}")

    def targets(self, position: int, env: Environment, bounds: Mapping[str, Bounds]) -> tuple[Target, ...]:
        """The accesses of a step, each with its bytes."""
        step = self.code[position]
        assert isinstance(step, Accesses)
        found = []
        for access in step.accesses:
            buffer = self.buffers[access.buffer]
            slot = self.value(access.slot, env, bounds)
            mask = footprint.tile_region(buffer, self.offsets[buffer.name], slot, access.region)
            if mask is None:
                raise Refusal(f"{access.label}: the bytes are not known")
            event = None if access.event is None else (access.event, self.value(access.event_slot, env, bounds))
            found.append(Target(access, buffer, mask, event))
        return tuple(found)

    def describe(self, position: int, env: Environment) -> str:
        step = self.code[position]
        where = f" [{', '.join(f'{n} = {v}' for n, v in env)}]" if env else ""
        if isinstance(step, End):
            return "the end of the role"
        if isinstance(step, Accesses):
            return "; ".join(access.label for access in step.accesses) + where
        return str(getattr(step, "label", step)) + where


_names = lru_cache(maxsize=1 << 12)(model.names_in)


@lru_cache(maxsize=1 << 16)  # on every path, and for every module of a kernel, the same
def _value(expr: model.IntExpr, env: Environment, known: tuple[tuple[str, Bounds], ...], modulus: int) -> int:
    """``known``: what the path knows of the parameters in ``expr``."""
    values = {**dict.fromkeys(_names(expr), 0), **dict(env)}  # running counters start at 0
    steps = dict.fromkeys(values, modulus)
    for name, bounds in known:
        values[name] = bounds.low
        steps[name] = modulus if bounds.exact is not None else bounds.modulus
    result = model.evaluate(expr, values)
    for name, step in steps.items():
        for times in (1, 2):
            if model.evaluate(expr, {**values, name: values[name] + times * step}) != result:
                raise Refusal(f"{expr} depends on more than is known of {name} here: its residue modulo {step}")
    return result


def _kind(access: model.Access) -> str:
    if access.ends == "event" and access.mode == "w":
        return "copy in"
    if access.ends == "group" and access.mode == "r":
        return "mma"
    if access.ends == "here" and access.mode == "w" and access.proxy == "generic":
        return "store"
    if access.ends == "here" and access.mode == "r" and access.proxy == "async":
        return "copy out"
    raise Refusal(f"the analysed program has an access that is not followed: {access.label}")


def _together(first: model.Access, other: model.Statement) -> bool:
    return (
        isinstance(other, model.Access)
        and replace(other, buffer="", slot=model.ZERO, region=(), label="", where=None)
        == replace(first, buffer="", slot=model.ZERO, region=(), label="", where=None)
        and _kind(first) == _kind(other)
        and (_kind(first) != "store" or first.buffer == other.buffer)  # of two on each other, the order matters
    )


def modulus(program: model.Program) -> int:
    """What loop counters must be known up to: all slot counts, and the parity of each slot's phase."""
    slots = [event.slots for event in program.events] + [buffer.slots for buffer in program.buffers]
    return 2 * math.lcm(1, *slots)


def operations(code: Sequence[Step]) -> Iterator[Step]:
    for step in code:
        if not isinstance(step, (Enter, Repeat, End)):
            yield step
