"""The harness: one step per figure or table of the paper, their results, and the verification of those results."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
