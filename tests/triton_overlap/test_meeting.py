"""Warps meet between matrix instructions and what releases or overwrites their operands."""

from __future__ import annotations

import pytest

from triton_overlap.errors import OverlapError
from triton_overlap.meeting import check_warps_meet

WAIT, MEET = "wgmma.wait_group.sync.aligned 0;", "bar.sync \t0, 128;"
ARRIVE = "@%p8 mbarrier.arrive.shared::cta.b64 _, [%r52];"
WRITE = "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], {%r2};"


@pytest.mark.parametrize("release", [ARRIVE, WRITE, "st.shared.b32 [%r1], %r2;"])
def test_a_barrier_in_between(release: str) -> None:
    assert check_warps_meet("\n".join([WAIT, MEET, release, release])) == 1


@pytest.mark.parametrize("lines", [(WAIT, ARRIVE), (WAIT, MEET, WAIT, WRITE), (WAIT, f"// {MEET}", ARRIVE)])
def test_no_barrier_in_between(lines: tuple[str, ...]) -> None:
    with pytest.raises(OverlapError, match=f"PTX line {len(lines)}: warps do not meet"):
        check_warps_meet("\n".join(lines))


def test_code_without_matrix_instructions() -> None:
    assert check_warps_meet("\n".join([ARRIVE, WRITE, MEET])) == 0
