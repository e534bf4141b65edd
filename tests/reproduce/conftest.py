"""Fixtures of the harness' tests."""

from __future__ import annotations

import pytest

from reproduce import ROOT
from reproduce.cutlass.errors import CutlassError
from reproduce.cutlass.headers import Headers, find


@pytest.fixture(scope="session")
def cutlass_headers() -> Headers:
    """The pinned CUTLASS; fetched once, and where that cannot be done the test is skipped with the reason."""
    try:
        return find(ROOT / "build" / "steps" / "cutlass", {})
    except CutlassError as error:
        if "cannot download" in str(error):
            pytest.skip(str(error))
        raise
