"""Which runner this machine uses."""

from __future__ import annotations

from reproduce.runners import Runner
from reproduce.runners.host import HostRunner


def choose() -> Runner:
    """The runner of this machine."""
    return HostRunner()
