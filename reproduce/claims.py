"""The paper's claims (``claims.yaml``), and how the paper rounds what it prints."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any


@cache
def load() -> dict[str, Any]:
    """All claims by step. The file is part of the project: a defect in it is a bug and may raise."""
    import yaml

    claims: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "claims.yaml").read_text(encoding="utf-8"))
    return claims


def saving_percent(base: float, optimised: float) -> int:
    """Saving in whole percent as the paper prints it: halves go down (128 -> 80 is printed as 37 %, not 38 %).

    >>> saving_percent(131072, 81920), saving_percent(262144, 229376), saving_percent(196608, 163840)
    (37, 12, 17)
    """
    percent = 100 * (base - optimised) / base
    whole = int(percent)
    return whole + (percent - whole > 0.5)


def ncu_digits(size: int, like: str) -> str:
    """``size`` bytes as Nsight Compute prints them, in units of 1000 bytes, with as many decimals as ``like`` has.

    >>> ncu_digits(115712, "115.7"), ncu_digits(229504, "229.50")
    ('115.7', '229.50')
    """
    decimals = len(like.partition(".")[2])
    return f"{size / 1000:.{decimals}f}"
