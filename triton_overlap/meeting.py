"""Whether the warps of a warpgroup meet before they release or overwrite what their matrix instructions have read.

One warp's wait for a group of matrix instructions says nothing about the other warps' part of it. The model takes the
meeting for granted, since Triton's barrier insertion puts it there; that is tested on the PTX.
"""

from __future__ import annotations

import re

from triton_overlap.errors import OverlapError

_READS = re.compile(r"\bwgmma\.(?:mma_async|wait_group)\b")
_MEETS = re.compile(r"\b(?:bar|barrier)\.(?:cta\.)?sync\b")
_RELEASES = re.compile(r"\b(?:mbarrier\.arrive|stmatrix|st\.shared)\b")


def check_warps_meet(ptx: str) -> int:
    """Returns how many releases and writes follow matrix instructions with a barrier in between.

    Raises OverlapError at one without, in the order of the text.
    """
    apart, met = False, 0
    waiting = False  # a barrier since the last matrix instruction, and no release or write yet
    for number, line in enumerate(ptx.splitlines(), 1):
        code = line.partition("//")[0]
        if _READS.search(code):
            apart, waiting = True, False
        elif _MEETS.search(code):
            waiting = waiting or apart
            apart = False
        elif _RELEASES.search(code):
            if apart:
                raise OverlapError(
                    f"PTX line {number}: warps do not meet between matrix instructions and this: {code.strip()}"
                )
            met += waiting
            waiting = False
    return met
