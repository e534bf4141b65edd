"""The host runtime header that precedes every generated source (``choreo.h`` and the headers it includes)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

DIRECTORY = Path(__file__).parent

_QUOTED_INCLUDE = re.compile(r'^#include "([^"]+)"\n', re.MULTILINE)


@cache
def prelude() -> str:
    """``choreo.h`` as one text: every quoted include replaced, once, by the file that it names.

    Generated sources are complete in themselves, so that a work script can be built on a machine without this package.
    """
    included: set[Path] = set()

    def expand(path: Path) -> str:
        included.add(path)

        def replace(match: re.Match[str]) -> str:
            target = (path.parent / match[1]).resolve()
            return "" if target in included else expand(target)

        return _QUOTED_INCLUDE.sub(replace, path.read_text(encoding="utf-8"))

    return expand((DIRECTORY / "choreo.h").resolve())
