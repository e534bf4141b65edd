"""Threads that do what others do for them, and what ends too early."""

from __future__ import annotations

import pytest

from croqtile.validation.events import Refusal
from tests.croqtile.validation.following import MEET, TRIGGER, WAIT, follow, waited


def test_the_other_threads_only_wait_and_meet() -> None:
    follow((WAIT, TRIGGER), (waited(), MEET), threads=127)
    with pytest.raises(Refusal, match="the code ends, but the program goes on with: trigger f"):
        follow((WAIT, TRIGGER), (waited(), MEET))
