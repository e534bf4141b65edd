"""The Graphviz graph."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from hb_analyzer.dot import dot_text
from hb_analyzer.examples import example_paths
from hb_analyzer.infer import infer
from hb_analyzer.pattern import Pattern
from hb_analyzer.pattern_load import load_pattern
from tests.hb_analyzer.patterns import KV_BUFFERS, kv_roles, pattern, phase


def dot(loaded: Pattern) -> str:
    return dot_text(loaded, infer(loaded))


def test_the_kv_pipeline(golden: Callable[[str], None]) -> None:
    golden(dot(pattern(kv_roles(), KV_BUFFERS)))


@pytest.mark.parametrize("path", example_paths(), ids=lambda path: path.stem)
def test_well_formed(path: object) -> None:
    """Braces balance outside quotes, and every edge joins nodes that are declared."""
    text = dot(load_pattern(str(path)))
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    assert bare.count("{") == bare.count("}")
    name = r'(?:p\d+_\d+|"(?:[^"\\]|\\.)*")'
    declared = set(re.findall(rf"^\s*({name}) \[", text, re.MULTILINE))
    edges = re.findall(rf"^\s*({name}) -> ({name}) \[", text, re.MULTILINE)
    assert edges
    assert {end for edge in edges for end in edge} <= declared


def test_names_are_escaped() -> None:
    loaded = pattern({'a "b" \\': [phase('p "q"\nr', None, None, "x")]}, {"x": 1})
    text = dot(loaded)
    assert r'label="a \"b\" \\"' in text
    assert r'label="p \"q\"\nr\nuses x"' in text
