"""The result of a translation validation as text."""

from __future__ import annotations

import itertools

from croqtile.validation.result import Validation
from hb_analyzer.table import table

# Columns of the table, and the kinds of instructions that each counts.
_COLUMNS = (
    ("waits", ("wait",)),
    ("arrivals", ("arrive", "expect")),
    ("copies in", ("copy in",)),
    ("matrix", ("mma", "mma commit", "mma wait")),
    ("stores", ("store", "load")),
    ("copies out", ("copy out", "copy commit", "copy wait")),
    ("barriers", ("sync",)),
    ("fences, inits", ("proxy fence", "mma fence", "init", "init fence")),
)


def as_text(validation: Validation) -> str:
    """What was compared, by role, and the verdict."""
    header = ("role", "operations", *(name for name, _ in _COLUMNS), "verdict")
    wrong = {problem.role for problem in validation.problems}
    rows = []
    for row in validation.roles:
        counts = [str(sum(row.instructions.get(kind, 0) for kind in kinds)) for _, kinds in _COLUMNS]
        rows.append((row.role, str(row.operations), *counts, "not shown" if row.role in wrong else "same"))
    rows += [
        (role, *[""] * (len(_COLUMNS) + 1), "not shown")
        for role in sorted(wrong)
        if role and role not in {row.role for row in validation.roles}
    ]
    text = f"{validation.kernel}: PTX against the analysed program\n"
    text += table(header, rows, right=range(1, len(_COLUMNS) + 2)) + "\n"
    pairs = ", ".join(f"{a} over {b}" for a, b in validation.overlaps) or "none"
    text += f"buffers that share memory: {pairs}\n"
    text += f"{validation.instructions} instructions compared, {validation.walked} steps over all paths; trip counts "
    text += f"evaluated at {validation.samples} launches\n"
    for (a, b), paths in itertools.groupby(validation.proofs, lambda path: path.pair):
        text += f"\n{a} and {b} are ordered by\n"
        for path in paths:
            text += "\n"
            for step in path.steps:
                text += f"    {step.text}" + (f"  (PTX {_ranges(step.lines)})" if step.lines else "") + "\n"
    text += "\n" if validation.proofs else ""
    for problem in validation.problems:
        text += f"NOT SHOWN: {problem}\n"
    shown = "is not shown to be" if validation.problems else "is"
    return text + f"verdict: the code {shown} the analysed program\n"


def _ranges(lines: tuple[int, ...]) -> str:
    """``12, 40 … 90``: lines, the middle of many left out."""
    return ", ".join(map(str, lines)) if len(lines) < 4 else f"{lines[0]}, {lines[1]} … {lines[-1]}"
