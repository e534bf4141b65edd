"""Why a kernel is left alone."""

from __future__ import annotations

from hb_analyzer.report import Verdict


class OverlapError(Exception):
    """Base of the errors of this package; the message says what happened, where, and what to do."""


class RefusedError(OverlapError):
    """The kernel is not known to stay right with the overlap, or is not understood; it is left as it is.

    ``reason`` is one sentence, ``where`` the line of the kernel's TTGIR ("line 12: ttng.wait_barrier"), if one is to
    blame; ``verdict`` is the engine's, with an interleaving that observes the overlap, if the engine refused.
    """

    def __init__(self, reason: str, where: str = "", verdict: Verdict | None = None) -> None:
        super().__init__(f"{where}: {reason}" if where else reason)
        self.reason = reason
        self.where = where
        self.verdict = verdict
