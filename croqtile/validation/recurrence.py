"""When a loop has been walked often enough: its state recurs, up to the modulus of its counters.

Then all further iterations are covered by those that were walked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Generic

from croqtile.validation.events import Refusal
from croqtile.validation.state import Follower, Listener, State
from croqtile.validation.values import UNKNOWN, Bounds, Count, Question, Rest, Trip, Value, signed

_MOST_STATES = 100  # at the head of one loop; the kernels here need up to 17


class Recurrence(Generic[Follower]):
    """The states seen at the heads of loops. ``heads``: position → the registers that matter from there on."""

    def __init__(self, heads: Mapping[int, frozenset[str]], modulus: int, listener: Listener[Follower]) -> None:
        self.heads, self.modulus, self.listener = heads, modulus, listener
        self.seen: dict[int, list[State[Follower]]] = {}
        self.fresh: set[int] = set()  # ids of the states in ``seen`` since the last branch that could go both ways

    def visit(self, state: State[Follower], line: int) -> State[Follower] | None:
        """``state`` is at a head, in this line. None if what follows is covered by an earlier visit; else the state to
        go on with. Raises Refusal."""
        known_now = state.registers
        registers: dict[str, Value] = {
            name: UNKNOWN if isinstance(known_now[name], Question) else known_now[name]
            for name in self.heads[state.position]
            if name in known_now
        }
        state = replace(state, registers=registers)
        earlier = self.seen.setdefault(state.position, [])
        for known in earlier:
            if self._equal(known, state):
                if id(known) in self.fresh:
                    raise Refusal("a loop that nothing ends", line)
                return None
        for known in earlier:
            counters = self._advanced(known, state)
            if counters is None:
                continue
            if all(isinstance(registers[name], (Count, Rest)) for name in counters):
                return None
            widened = known.copy()
            for name in counters:
                value = known.registers[name]
                if isinstance(value, int):
                    widened.registers[name] = Count(signed(value))
                elif isinstance(value, Trip):
                    widened.registers[name] = Rest(value.parameter, value.offset)
            widened.bounds = {n: replace(b, shifted=True) for n, b in known.bounds.items()}
            if any(self._equal(other, widened) for other in earlier):
                return None
            earlier.append(widened.copy())
            return widened
        if len(earlier) >= _MOST_STATES:
            raise Refusal(f"the state at the head of a loop does not recur within {_MOST_STATES} visits", line)
        earlier.append(state.copy())
        self.fresh.add(id(earlier[-1]))
        return state

    def _equal(self, known: State[Follower], state: State[Follower]) -> bool:
        return (
            known.registers == state.registers
            and known.bounds == state.bounds
            and known.diverged == state.diverged
            and self.listener.shifted(known.follower, state.follower, 0)
        )

    def _advanced(self, known: State[Follower], state: State[Follower]) -> list[str] | None:
        """The registers that have moved by the modulus, if that is all that differs and the bounds have moved along."""
        if known.registers.keys() != state.registers.keys() or known.diverged != state.diverged:
            return None
        counters = []
        for name, before in known.registers.items():
            after = state.registers[name]
            if before == after:
                continue
            if not self._moved(before, after):
                return None
            counters.append(name)
        if not counters or not all(self._along(bounds, state.bounds[n]) for n, bounds in known.bounds.items()):
            return None
        return counters if self.listener.shifted(known.follower, state.follower, self.modulus) else None

    def _moved(self, before: Value, after: Value) -> bool:
        """Has a counter gone up, or what is left of a trip count gone down?"""
        if isinstance(before, int) and isinstance(after, int):
            return signed(after) - signed(before) == self.modulus
        if isinstance(before, Count) and isinstance(after, Count):
            return after.value - before.value == self.modulus
        if isinstance(before, (Trip, Rest)) and isinstance(after, type(before)):
            return after == replace(before, offset=before.offset - self.modulus)
        return False

    def _along(self, before: Bounds, after: Bounds) -> bool:
        high = None if before.high is None else before.high + self.modulus
        return after == replace(before, low=before.low + self.modulus, high=high, shifted=after.shifted)
