"""Pictures of kernels come from the compiler and the analyzer; one that does not compile leaves a message."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from reproduce import ROOT, kernels
from reproduce.html import maps


def test_a_kernel_has_a_map_a_timeline_and_its_verdicts() -> None:
    (picture,) = maps.pictures([kernels.source("matmul_f16_dyn_sm90_warpspec_1p3c")])
    assert picture.summary.startswith("128 → 80 KiB, 37.5 % less")
    for svg in (picture.memory_map, picture.timeline):
        assert ElementTree.fromstring(svg).tag.endswith("svg") and str(ROOT) not in svg
    assert {pair.overlap for pair in picture.pairs} == {True, False}
    assert all(bool(pair.why) != pair.overlap and str(ROOT) not in pair.why for pair in picture.pairs)


def test_a_kernel_that_does_not_compile_leaves_its_message(tmp_path: Path) -> None:
    broken = tmp_path / "broken.co"
    broken.write_text("__co__ void f() {")
    (picture,) = maps.pictures([broken])
    assert picture.name == "broken" and picture.problem.startswith("does not compile: ") and not picture.memory_map


def test_all_kernels_and_the_patterns_of_figure_2() -> None:
    names = [picture.name for picture in maps.pictures()]
    assert len(names) == len(list((ROOT / "kernels").glob("*/*.co"))) + len(maps.PATTERNS)
    assert "choreo_fa_kv (pattern)" in names
