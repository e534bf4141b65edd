"""The steps, one module per figure, table or check of the paper, in the order in which ``all`` runs them."""

from __future__ import annotations

from reproduce.step import Step
from reproduce.steps import figure2, table4

STEPS: dict[str, Step] = {step.name: step for step in (figure2.STEP, table4.STEP)}
