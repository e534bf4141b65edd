"""Ways in which overlap has gone wrong elsewhere, as programs: the racy form is refused or reported, its twin accepted.

The second line of every program says what to expect, in the words that ``_outcome`` checks.
"""

import re
from pathlib import Path

import pytest

from croqtile import diagnostics as diag
from croqtile.diagnostics import CompileError
from croqtile.driver import compile_file

PROGRAMS = sorted((Path(__file__).parent / "hazards").glob("*.co"))
PAIR = re.compile(r"(\w+) and (\w+) (may overlap|stay apart \((\w+)\))")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_hazard(path):
    expected = path.read_text().splitlines()[1].removeprefix("// expect: ")
    problems, report, placement = _analysed(path)
    if expected == "released":
        assert any(isinstance(problem, diag.OperandReleased) for problem in problems)
        return
    assert report is not None
    if expected == "left behind":
        assert report.unawaited
        assert [type(problem) for problem in problems] == [diag.CopyUnawaited] * len(report.unawaited)
        return
    if expected == "race":
        assert report.races
        assert any(isinstance(problem, diag.SharedMemoryRace) for problem in problems)
        return
    assert problems == []
    assert not (report.deadlocks or report.overruns or report.races or report.arrivals or report.unawaited)
    if expected == "accepted":
        return
    found = PAIR.fullmatch(expected)
    assert found is not None, f"the program says {expected!r}, which this test does not know"
    verdict = report.verdict(found[1], found[2])
    assert (verdict.overlap, verdict.kind) == (found[3] == "may overlap", found[4] or "")
    assert _disjoint(placement, found[1], found[2]) or verdict.overlap


def _analysed(path):
    try:
        (analysis,) = compile_file(path, {}).analyses
    except CompileError as error:
        return list(error.diagnostics), None, None
    return list(analysis.diagnostics), analysis.report, analysis.placement


def _disjoint(placement, a, b):
    low, high = sorted((a, b), key=lambda name: placement.offsets[name])
    return placement.offsets[low] + placement.sizes[low] <= placement.offsets[high]


def test_every_racy_program_has_a_fixed_twin():
    names = {path.stem for path in PROGRAMS}
    racy = {name.removesuffix("_racy") for name in names if name.endswith("_racy")}
    assert racy
    assert {f"{name}_fixed" for name in racy} <= names
