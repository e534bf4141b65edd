"""Pattern files that come with the analyzer. Each states the verdict that is expected of it."""

from __future__ import annotations

from pathlib import Path

DIRECTORY = Path(__file__).parent


def example_paths() -> list[Path]:
    """Every example, sorted by name."""
    return sorted(DIRECTORY.glob("*.json"))
