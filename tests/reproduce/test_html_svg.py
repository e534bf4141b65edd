"""Pictures beside each other in one page must not take each other's patterns and arrow heads."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from reproduce.html.svg import inline

SVG = """<?xml version="1.0"?><!DOCTYPE svg>
<svg xmlns="http://www.w3.org/2000/svg"
 xmlns:xlink="http://www.w3.org/1999/xlink" width="20" height='10' viewBox="0 0 20 10">
<metadata>made by somebody</metadata>
<defs><pattern id="hatch" width="6" height="6"/><path id='tip' d="M0,0"/></defs>
<rect fill="url(#hatch)" width="5" height="5"/><use xlink:href="#tip"/>
</svg>
"""


def test_ids_become_the_pictures_own() -> None:
    text = inline(SVG, "k1", 'a "map" & more')
    assert 'id="k1-hatch"' in text and "url(#k1-hatch)" in text and "id='k1-tip'" in text and 'href="#k1-tip"' in text
    assert "#hatch" not in text and "#tip" not in text


def test_the_page_decides_the_size_and_readers_get_a_label() -> None:
    text = inline(SVG, "k1", 'a "map" & more')
    root = ElementTree.fromstring(text)
    assert "width" not in root.attrib and "height" not in root.attrib and root.attrib["viewBox"] == "0 0 20 10"
    assert root.attrib["aria-label"] == 'a "map" & more' and "made by" not in text and text.startswith("<svg")
    rectangle = root.find("{http://www.w3.org/2000/svg}rect")
    assert rectangle is not None and rectangle.attrib["width"] == "5"  # only the picture's own size goes
