"""What is known of trip counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from croqtile.validation.values import Bounds, decide, refine


@given(
    st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne"]),
    st.integers(0, 12),
    st.none() | st.integers(0, 12),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(-2, 14),
)
def test_bounds(test: str, low: int, extra: int | None, modulus: int, residue: int, number: int) -> None:
    """Decisions hold for every value within the bounds, and refinement loses none."""
    bounds = Bounds(low, None if extra is None else low + extra, modulus=modulus, residue=residue % modulus).narrowed()
    values = [v for v in range(low, 60) if v % modulus == residue % modulus and (extra is None or v <= low + extra)]
    truth = {"lt": int.__lt__, "le": int.__le__, "gt": int.__gt__, "ge": int.__ge__, "eq": int.__eq__, "ne": int.__ne__}
    holds = [truth[test](value, number) for value in values]
    answer = decide(test, bounds, number)
    if isinstance(answer, int):
        assert all(h == bool(answer) for h in holds)
    for side in (True, False):
        after = refine(test, bounds, number, side)
        for value, hold in zip(values, holds, strict=True):
            if hold == side:
                assert after.low <= value and (after.high is None or value <= after.high)
