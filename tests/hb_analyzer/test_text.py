"""Text of the report that the golden files of the command do not show."""

from __future__ import annotations

from hb_analyzer.pattern_report import analyse_pattern
from hb_analyzer.report import Placement
from hb_analyzer.table import kib, percent, table
from hb_analyzer.text import memory_map, pattern_text
from tests.hb_analyzer.patterns import load


def test_memory_map_is_to_scale() -> None:
    placement = Placement({"A": 0, "B": 512, "C": 0}, {"A": 512, "B": 512, "C": 1}, 1024, 1024, True)
    lines = memory_map(placement, indent="").splitlines()
    assert [line.split()[0] for line in lines] == ["A", "C", "B"]
    bars = [line.split()[1] for line in lines]
    assert bars[0] == "█" * 24 + "·" * 24
    assert bars[1] == "█" + "·" * 47
    assert bars[2] == "·" * 24 + "█" * 24
    assert lines[2].endswith("512 … 1024       512 B")


def test_an_empty_placement() -> None:
    assert memory_map(Placement({}, {}, 0, 0, True)) == ""


def test_a_pattern_of_every_form() -> None:
    value = {
        "warp_groups": [
            {
                "role": "r",
                "phases": [
                    {
                        "label": "p",
                        "signal_in": {"event": "e", "slot": "k % 2"},
                        "loop": "k",
                        "when": "k > 0",
                        "buffers": ["B"],
                        "writes": [
                            {"buffer": "A", "region": None},
                            {"buffer": "A", "region": [[0, 2]], "ends": "never"},
                        ],
                        "opaque": {"reason": "a branch on data"},
                    }
                ],
            }
        ],
        "shared_buffers": {"A": {"size_bytes": 8, "shape": [8]}, "B": {"size_bytes": 8}},
        "events": {"e": {"slots": 2}},
    }
    text = pattern_text(analyse_pattern(load(value)))
    assert "p (if k > 0)" in text
    assert "e[k % 2]" in text
    assert "uses B; writes A[?], A[0:2] (never awaited); opaque: a branch on data" in text
    assert "Deadlocks\n" in text


def test_tables() -> None:
    text = table(("a", "bb"), [("x", "1"), ("long", "22")], right=(1,), indent="")
    assert text == "a     bb\n────  ──\nx      1\nlong  22"


def test_sizes() -> None:
    assert (kib(32768), kib(1280), kib(100)) == ("32768 B (32 KiB)", "1280 B (1.25 KiB)", "100 B")
    assert (percent(1, 3), percent(0, 0)) == ("33.3 %", "0.0 %")
