"""What the walks of a kernel find out together: where everything is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from croqtile.validation.events import Refusal
from croqtile.validation.values import Shared


@dataclass
class Findings:
    """What all walks of a kernel have found together."""

    base: str | None = None  # of the placement
    alignment: int = 0
    events: dict[str, Shared] = field(default_factory=dict)  # event → mbarrier of slot 0
    barriers: dict[int, str] = field(default_factory=dict)  # number of a barrier → what it stands for
    inits: dict[Shared, int] = field(default_factory=dict)  # mbarrier → arrivals
    setups: dict[tuple[int, frozenset[int]], set[frozenset[Shared]]] = field(
        default_factory=dict
    )  # threads → what they init

    def placed(self, place: Shared) -> int:
        """The offset of a place in the placement. All buffers have the same base."""
        if self.base is None:
            self.base, self.alignment = place.base, place.align
        if place.base != self.base:
            raise Refusal(f"an address in {place.base}, but the buffers are in {self.base}")
        return place.offset

    def bind(self, event: str, slot: int, place: Shared) -> None:
        start = replace(place, offset=place.offset - 8 * slot)
        known = self.events.setdefault(event, start)
        if known != start:
            raise Refusal(
                f"the mbarrier of {event}[{slot}] is at {known.base} + {known.offset + 8 * slot}, "
                f"but the code uses {place.base} + {place.offset}"
            )
        others = {name for name, other in self.events.items() if other == start and name != event}
        if others:
            raise Refusal(f"{event} and {others.pop()} have the same mbarrier")

    def name(self, number: int, meaning: str) -> None:
        """Whoever meets for ``meaning`` does so at barrier ``number``, and nobody else does."""
        if self.barriers.setdefault(number, meaning) != meaning:
            raise Refusal(f"barrier {number} stands for {self.barriers[number]} and for {meaning}")
        others = [other for other, known in self.barriers.items() if known == meaning and other != number]
        if others:
            raise Refusal(f"{meaning} meet at barrier {others[0]} and at barrier {number}")
