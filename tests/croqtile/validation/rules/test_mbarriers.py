"""Waits and arrivals."""

from __future__ import annotations

import pytest

from croqtile.validation.events import Refusal
from tests.croqtile.validation.following import MEET, TRIGGER, WAIT, E, F, arrived, follow, waited


def test_arrivals_need_a_meeting() -> None:
    follow((WAIT, TRIGGER), (waited(), MEET, arrived()))
    follow((WAIT, TRIGGER), (waited(), arrived()), together=False)
    with pytest.raises(Refusal, match="the warps have not met: trigger f"):
        follow((WAIT, TRIGGER), (waited(), arrived()))
    with pytest.raises(Refusal, match="arrive by 127 threads"):
        follow((WAIT, TRIGGER), (waited(), MEET, arrived()), threads=127)
    with pytest.raises(Refusal, match="2 arrivals at once"):
        follow((WAIT, TRIGGER), (waited(), MEET, arrived(count=2)))


def test_parities_and_places() -> None:
    follow((WAIT, WAIT), (waited(0), waited(1)))
    with pytest.raises(Refusal, match="parity 0, not 1"):
        follow((WAIT, WAIT), (waited(0), waited(0)))
    with pytest.raises(Refusal, match=r"the mbarrier of e\[0\] is at bars \+ 0, but the code uses bars \+ 8"):
        follow((WAIT, WAIT), (waited(0), waited(1, F)))
    with pytest.raises(Refusal, match="have the same mbarrier"):
        follow((WAIT, TRIGGER), (waited(), MEET, arrived(E)))
