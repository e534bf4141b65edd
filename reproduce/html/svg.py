"""SVG documents made fit to stand in an HTML page beside each other."""

from __future__ import annotations

import re
from html import escape


def inline(svg: str, name: str, label: str) -> str:
    """``svg`` as an element of an HTML page: without its XML header, its ids made unique by ``name``, with ``label``
    for readers who do not see it. Its width and height give way to the page's.
    """
    start = svg.index("<svg")
    body = svg[start:].strip()
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"""\bid=(["'])([^"']+)\1""", rf"id=\1{name}-\2\1", body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", body)
    body = re.sub(r"""href=(["'])#([^"']+)\1""", rf"href=\1#{name}-\2\1", body)
    end = body.index(">")
    head = re.sub(r"""\s(?:width|height)=(["'])[^"']*\1""", "", body[:end])
    return f'{head} role="img" aria-label="{escape(label)}"{body[end:]}'
