"""What a build for stress tests may poison by the word of the analysis, and which builds are wrong on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest
import tile

from croqtile.analyse import Analysis, analyse
from croqtile.options import UsageError, parse
from croqtile.stress import CannotBeWrongError, Wrong, stress_of


def analysis(directory: Path, text: str = tile.GEMM, sala: bool = True) -> Analysis:
    return analyse(tile.lowered(directory, text), sala)


def test_a_right_build_keeps_the_placement(tmp_path: Path) -> None:
    for sala in (True, False):
        found = analysis(tmp_path, sala=sala)
        stress, placement = stress_of(found)
        assert placement is found.placement and not stress.warning and not stress.unwaited
        assert stress.accepted == {frozenset(("lhs_s", "out_s")), frozenset(("rhs_s", "out_s"))}
        assert stress.slots == {"lhs_s", "rhs_s", "out_s"}


def test_a_wrong_overlap_moves_the_smaller_buffer(tmp_path: Path) -> None:
    found = analysis(tmp_path)
    stress, placement = stress_of(found, Wrong(overlap=("lhs_s", "rhs_s")))
    assert placement.offsets["lhs_s"] == placement.offsets["rhs_s"]
    assert frozenset(("lhs_s", "rhs_s")) in stress.accepted
    assert stress.warning == "lhs_s and rhs_s lie on each other, which the analysis forbids"


def test_a_wait_left_out(tmp_path: Path) -> None:
    stress, _ = stress_of(analysis(tmp_path), Wrong(unwaited="full"))
    assert stress.unwaited == {"full"} and stress.warning == "the waits for full are left out"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Wrong(overlap=("lhs_s", "out_s")), "lhs_s and out_s may overlap: that is no wrong build"),
        (Wrong(overlap=("lhs_s", "none")), "gemm has no buffer `none`: lhs_s, out_s, rhs_s"),
        (Wrong(overlap=("lhs_s", "lhs_s")), "lhs_s and lhs_s may overlap"),
        (Wrong(unwaited="none"), "gemm has no event `none`"),
    ],
)
def test_builds_that_cannot_be_wrong(tmp_path: Path, wrong: Wrong, message: str) -> None:
    with pytest.raises(CannotBeWrongError, match=message):
        stress_of(analysis(tmp_path), wrong)


def test_slots_are_poisoned_only_where_no_race_is_reported(tmp_path: Path) -> None:
    early = tile.edited(
        tile.GEMM,
        [("          trigger empty[stage];\n", ""), ("wait full[stage];", "wait full[stage]; trigger empty[stage];")],
    )
    found = analysis(tmp_path, early)
    assert found.report.races
    assert not stress_of(found)[0].slots & {defect.buffer for defect in found.report.races}


WRONG_OPTIONS = (["--unsound-overlap", "a,b"], ["--unsound-no-wait=e"])


@pytest.mark.parametrize("options", WRONG_OPTIONS, ids=" ".join)
def test_wrong_builds_need_permission(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHOREO_TESTING", raising=False)
    with pytest.raises(UsageError, match="for tests only"):
        parse(["--stress", *options, "k.co"])
    monkeypatch.setenv("CHOREO_TESTING", "1")
    assert parse(["--stress", *options, "k.co"]).stress
    with pytest.raises(UsageError, match="for tests only"):
        parse([*options, "k.co"])


@pytest.mark.parametrize("pair", ["a", "a,", ",b", "a,b,c", ""])
def test_a_wrong_overlap_is_of_two(pair: str) -> None:
    with pytest.raises(UsageError, match="needs two buffers as A,B"):
        parse(["--stress", f"--unsound-overlap={pair}", "k.co"])
