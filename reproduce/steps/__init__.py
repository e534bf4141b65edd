"""The steps, one module per figure, table or check of the paper, in the order in which ``all`` runs them."""

from __future__ import annotations

from reproduce.step import Step
from reproduce.steps import census, correctness, fa, figure2, figure3, registers, soundness, table2, table3, table4

STEPS: dict[str, Step] = {
    module.STEP.name: module.STEP
    for module in (figure2, table4, census, registers, table2, table3, correctness, figure3, fa, soundness)
}
