"""mbarriers as the hardware has them: a phase, arrivals that are still missing, bytes that are still expected.

The current phase completes as soon as no arrival and no byte is missing; the next one begins at once with the full
count. Arrivals have no name: one that comes too early is counted for the phase before. A wait for phase k tests its
parity, so it passes iff an odd number of phases above k has completed; a waiter that is lapped waits on.
"""

from __future__ import annotations


class Mbarrier:
    """One slot of an event. ``completed`` counts the phases that are over."""

    __slots__ = ("bytes", "completed", "count", "missing")

    def __init__(self, count: int, completed: int = 0) -> None:
        self.count = self.missing = count
        self.completed = completed
        self.bytes = 0

    def copy(self) -> Mbarrier:
        other = Mbarrier(self.count, self.completed)
        other.missing, other.bytes = self.missing, self.bytes
        return other

    def state(self) -> tuple[int, int, int]:
        return self.completed, self.missing, self.bytes

    def passes(self, number: int) -> bool:
        """Does the wait for phase ``number`` return now?"""
        return self.completed > number and (self.completed - number) % 2 == 1

    def expect(self, size: int) -> None:
        """expect_tx: ``size`` more bytes until the current phase can complete."""
        self.bytes += size

    def arrive(self) -> bool:
        """One arrival; true if it completes the phase. Raises OverflowError where the hardware has no meaning for it:
        all arrivals of the phase have come, but not its bytes."""
        if self.missing == 0:
            raise OverflowError
        self.missing -= 1
        return self._settle()

    def land(self, size: int) -> bool:
        """complete_tx: ``size`` bytes have arrived; true if that completes the phase."""
        self.bytes -= size
        return self._settle()

    def _settle(self) -> bool:
        if self.missing or self.bytes:
            return False
        self.completed += 1
        self.missing = self.count
        return True
