"""Rows that add up many records, for the summary of the evidence of soundness."""

from __future__ import annotations

import string
from collections.abc import Iterable

from reproduce.results import Record
from reproduce.tables import DIFFERS, EQUAL, MEASURED, Cell, Row


def sum_row(id: str, label: str, found: Iterable[Record], tried: str, broken: str) -> Row:
    """How much was tried, and how often it was found broken. ``tried`` is a text with names of values in braces, such
    as "{mutants} mutants"; ``broken`` names the value that must be 0. Without one of the records there is no sum.
    """
    found = list(found)
    missing = next((record for record in found if record.status != MEASURED), None)
    if missing is not None:
        return Row(id, label, {"tried": missing.cell(tried), "broken": missing.cell(broken)})
    names = {name for _, name, _, _ in string.Formatter().parse(tried) if name} | {broken}
    sums = {name: sum(int(str(record.values[name])) for record in found) for name in names}
    verdict = DIFFERS if sums[broken] else EQUAL
    return Row(id, label, {"tried": Cell(tried.format(**sums)), "broken": Cell(sums[broken], verdict=verdict)})
