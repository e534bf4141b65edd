"""What stops a CUTLASS row: one class, messages that say what to do."""

from __future__ import annotations


class CutlassError(Exception):
    """The headers, the edit or a compilation failed; the message says which, and the way out."""
