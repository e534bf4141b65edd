"""Damaged pattern files: one line of error or a report, never a traceback."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hb_analyzer.dot import dot_text
from hb_analyzer.examples import example_paths
from hb_analyzer.json_reader import PatternError
from hb_analyzer.pattern_load import parse_pattern
from hb_analyzer.pattern_report import analyse_pattern
from hb_analyzer.text import pattern_text
from hb_analyzer.timeline import timeline_svg

QUICK = ("choreo_fa_kv", "choreo_gemm_1p1c_f16", "choreo_gemm_1p3c", "fa_kv_missing_signal")
DOCUMENTS = [json.loads(path.read_text()) for path in example_paths() if path.stem in QUICK]
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 5),
    st.floats(allow_nan=False),
    st.sampled_from(
        ["", "full", "empty", "k", "k % 2", "k / 0", "k_full", "lhs_s", "K_s", "consumer", "producer", "0 - 1"]
    ),
    st.just([]),
    st.just({}),
    st.lists(st.sampled_from(["full", "k_empty", "k", "out_s"]), max_size=2),
    st.dictionaries(st.sampled_from(["event", "slot", "slots", "buffer", "min", "trip", "initial"]), st.integers(0, 9)),
)
KEYS = st.sampled_from(
    "loop loops when drain commit step barrier async completes stages events slot accesses reads writes "  # noqa: SIM905
    "signal_in signal_out opaque align shape parameters arrivals".split()
)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_damaged_files(data: st.DataObject) -> None:
    value: Any = copy.deepcopy(data.draw(st.sampled_from(DOCUMENTS)))
    for _ in range(data.draw(st.integers(1, 2))):
        _damage(value, data)
    try:
        pattern = parse_pattern(json.dumps(value), "p.json")
        analysis = analyse_pattern(pattern)
    except PatternError as error:
        assert str(error).startswith("p.json")
        assert "\n" not in str(error)
        return
    assert pattern_text(analysis)
    assert dot_text(pattern, analysis.inference)
    assert timeline_svg(analysis.program, analysis.report)


def _damage(value: Any, data: st.DataObject) -> None:
    """Replace, remove or add one thing at a random place."""
    node = value
    while True:
        if isinstance(node, dict):
            if data.draw(st.integers(0, 5)) == 0:
                node[data.draw(KEYS)] = copy.deepcopy(data.draw(VALUES))
                return
            keys: list[Any] = sorted(node)
        elif isinstance(node, list):
            keys = list(range(len(node)))
        else:
            return
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        if not isinstance(node[key], (dict, list)) or data.draw(st.integers(0, 6)) == 0:
            if isinstance(node, dict) and data.draw(st.booleans()):
                del node[key]
            else:
                node[key] = copy.deepcopy(data.draw(VALUES))
            return
        node = node[key]
