"""A preprocessed ``.co`` file: its text, its ``__co__`` functions as tokens, and generated code put in their place."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from croqtile.ir import Span

_MARK = "\ufeff"


@dataclass(frozen=True)
class Token:
    """``text`` is a C token, or one space for any white space."""

    text: str
    span: Span


@dataclass(frozen=True)
class CoFunction:
    """A function of the tile language: characters ``start`` to ``end`` (exclusive) of its file.

    ``directives``: the lines inside it that define macros or belong to conditionals; host code after it needs them.
    """

    start: int
    end: int
    tokens: tuple[Token, ...]
    directives: str
    span: Span


@dataclass(frozen=True)
class SourceFile:
    """A preprocessed file. ``text`` is as on disk; bytes that are not UTF-8 are kept as surrogates."""

    path: str
    text: str
    functions: tuple[CoFunction, ...] = ()
    included: tuple[tuple[int, int, SourceFile], ...] = ()  # #include "x.co" lines: (start, end, the file)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def span(self, offset: int, length: int) -> Span:
        line = bisect.bisect_right(self._line_starts, offset)
        return Span(self.path, line, offset - self._line_starts[line - 1] + 1, length)

    def offset(self, span: Span) -> int:
        """Where ``span`` starts in ``text``."""
        return self._line_starts[span.line - 1] + span.column - 1

    def all_functions(self) -> tuple[CoFunction, ...]:
        """Functions of this file and of the ``.co`` files that it includes, in order of appearance."""
        placed: list[tuple[int, tuple[CoFunction, ...]]] = [(f.start, (f,)) for f in self.functions]
        placed += [(start, file.all_functions()) for start, _, file in self.included]
        return tuple(f for _, group in sorted(placed, key=lambda item: item[0]) for f in group)

    def sources(self) -> dict[str, str]:
        """Text by path, of this file and the included ones: what ``diagnostics.render`` needs."""
        texts = {self.path: self.text}
        for _, _, file in self.included:
            texts.update(file.sources())
        return texts

    def splice(self, generated: Callable[[CoFunction], str], path: str | None = None) -> str:
        """The file with each function replaced by ``generated(function)``, and ``#line`` directives around.

        ``path`` names this file in the directives.
        """
        name = path or self.path
        pieces = [_line_directive(1, name)]
        position = len(_MARK) if self.text.startswith(_MARK) else 0  # in the middle of a file it is no byte-order mark
        inserts: list[tuple[int, int, str]] = [
            (f.start, f.end, generated(f).rstrip("\n") + "\n" + f.directives) for f in self.functions
        ]
        inserts += [(start, end, file.splice(generated)) for start, end, file in self.included]
        for start, end, text in sorted(inserts):
            pieces += [self.text[position:start], "\n", text, _line_directive(self.span(end, 1).line, name)]
            position = end
        return "".join(pieces) + self.text[position:]


def _line_directive(line: int, path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line {line} "{escaped}"\n'
