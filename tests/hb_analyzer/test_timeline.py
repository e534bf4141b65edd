"""The SVG timeline."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from hb_analyzer.examples import example_paths
from hb_analyzer.pattern_load import load_pattern
from hb_analyzer.pattern_report import PatternAnalysis, analyse_pattern
from hb_analyzer.timeline import timeline_svg
from tests.hb_analyzer.patterns import pattern, phase

SVG = "{http://www.w3.org/2000/svg}"


def draw(analysis: PatternAnalysis, **trips: int) -> ElementTree.Element:
    return ElementTree.fromstring(timeline_svg(analysis.program, analysis.report, trips))


def example(name: str) -> PatternAnalysis:
    return analyse_pattern(load_pattern(next(path for path in example_paths() if path.stem == name)))


def texts(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


@pytest.mark.parametrize("path", example_paths(), ids=lambda path: path.stem)
def test_well_formed_and_inside_the_picture(path: object) -> None:
    root = draw(analyse_pattern(load_pattern(str(path))))
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for rect in root.iter(f"{SVG}rect"):
        x, y = float(rect.get("x", 0)), float(rect.get("y", 0))
        assert x >= 0 and y >= 0
        assert x + float(rect.get("width", 0)) <= width + 0.1
        assert y + float(rect.get("height", 0)) <= height + 0.1


def test_what_it_shows() -> None:
    shown = texts(draw(example("choreo_gemm_1p3c")))
    assert shown[0] == "matmul_f16_dyn_sm90_warpspec_1p3c"
    assert "131072 B (128 KiB) → 81920 B (80 KiB) (−38 %)" in shown[1]
    for text in ("producer", "consumer_3", "load [0]", "multiply [2]", "epilogue", "lhs_s[1]", "49152", "time"):
        assert text in shown
    assert "out_s: 49152 B at 0" in shown


def test_trip_counts() -> None:
    assert "load K [4]" in texts(draw(example("choreo_fa_kv"), N=5))
    assert "load K [4]" not in texts(draw(example("choreo_fa_kv")))


def test_a_deadlock_is_said() -> None:
    stuck = analyse_pattern(pattern({"r": [phase("p", "never", None, "A", loop=[])]}, {"A": 64}))
    assert "stuck at r: p: wait never" in texts(draw(stuck))


def test_names_are_escaped() -> None:
    analysis = analyse_pattern(pattern({"<r> & 'co'": [phase("<p>", None, None, "A<B", loop=[])]}, {"A<B": 64}))
    assert "<r> & 'co'" in texts(draw(analysis))


def test_nothing_to_draw() -> None:
    assert draw(analyse_pattern(pattern({"r": []}, {"A": 64}))) is not None
