"""Lays a table out for a width in columns of characters, without ever cutting a word off.

Columns are shown side by side if they fit. If they do not, headings wrap, then columns of text do; and a table that is
still too wide is shown in several blocks, one below the other, each with the rows' labels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

_INDENT, _GAP = 2, 2
_LONG = 28  # a word that is longer may be broken, after a sign that separates its parts
_READABLE = 16  # a column of text is made narrower than this only where its block has no other column


@dataclass(frozen=True)
class Field:
    """One column. Cells wrap between words if they must, unless ``whole``; ``text`` is kept readably wide.

    A field with ``joins`` stands in the same block as the one before it.
    """

    heading: str
    cells: tuple[Text, ...]
    text: bool = False
    right: bool = False
    whole: bool = False
    joins: bool = False

    @property
    def natural(self) -> int:
        return max((cell_len(cell.plain) for cell in self.cells), default=0)

    @property
    def least(self) -> int:
        """The width below which a word would be cut or a figure would wrap."""
        heading = longest_word(self.heading)
        if self.whole:
            return max(heading, self.natural)
        words = max((longest_word(cell.plain) for cell in self.cells), default=0)
        return max(heading, words, min(self.natural, _READABLE) if self.text else 0)


def lines(fields: Sequence[Field], width: int, rule: str = "─") -> list[list[Text]]:
    """The blocks of a table, as lines. The first field has the labels of the rows and begins every block."""
    return [_block(block, width, rule) for block in _blocks(fields, width)]


def longest_word(text: str) -> int:
    return max((cell_len(piece) for piece, _ in _pieces(text)), default=0)


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` characters; a piece that is longer has a line of its own.

    >>> wrap("launch request", 8), wrap("1P1C 64x128 3s", 20)
    (['launch', 'request'], ['1P1C 64x128 3s'])
    """
    found = [""]
    for piece, glued in _pieces(text):
        space = "" if glued or not found[-1] else " "
        if found[-1] and cell_len(found[-1] + space + piece) > width:
            found.append(piece)
        else:
            found[-1] += space + piece
    return found


def _pieces(text: str) -> list[tuple[str, bool]]:
    """The words of a text, long ones in parts; true for what follows the piece before without a space."""
    found = []
    for word in text.split():
        parts = re.findall(r"[^_/]*[_/]+|[^_/]+", word) if cell_len(word) > _LONG else [word]
        found += [(part, number > 0) for number, part in enumerate(parts)]
    return found


def _total(widths: Sequence[int]) -> int:
    return _INDENT + sum(widths) + _GAP * (len(widths) - 1)


def _blocks(fields: Sequence[Field], width: int) -> list[list[Field]]:
    """Columns by block: all in one if that fits, else as few blocks as there can be."""
    groups: list[list[Field]] = []
    for field in fields[1:]:
        if field.joins and groups:
            groups[-1].append(field)
        else:
            groups.append([field])
    found = [[fields[0]]]
    for group in groups:
        if len(found[-1]) > 1 and _total([each.least for each in (*found[-1], *group)]) > width:
            found.append([fields[0]])
        found[-1] += group
    return found


def _widths(fields: Sequence[Field], width: int) -> list[int]:
    widths = [max(field.natural, cell_len(field.heading)) for field in fields]
    narrow = [max(field.natural, longest_word(field.heading)) for field in fields]
    for least in (narrow, [field.least for field in fields]):
        while _total(widths) > width and any(now > low for now, low in zip(widths, least, strict=True)):
            # The widest of those that can give way: long texts wrap before short ones do.
            widest = max(range(len(widths)), key=lambda i: (widths[i] > least[i], widths[i]))
            widths[widest] -= 1
    return widths


def _block(fields: Sequence[Field], width: int, rule: str) -> list[Text]:
    widths = _widths(fields, width)
    headings = [wrap(field.heading, size) for field, size in zip(fields, widths, strict=True)]
    tallest = max(map(len, headings))
    made = [
        _line([Text(words[row - tallest] if row >= tallest - len(words) else "") for words in headings], fields, widths)
        for row in range(tallest)
    ]
    made.append(Text(" " * _INDENT + rule * (_total(widths) - _INDENT)))
    for row in range(len(fields[0].cells)):
        parts = [
            [Text(part, style=field.cells[row].style) for part in wrap(field.cells[row].plain, size)]
            for field, size in zip(fields, widths, strict=True)
        ]
        for number in range(max(map(len, parts))):
            cells = [part[number] if number < len(part) else Text("") for part in parts]
            made.append(_line(cells, fields, widths))
    return made


def _line(cells: Sequence[Text], fields: Sequence[Field], widths: Sequence[int]) -> Text:
    line = Text(" " * _INDENT)
    for number, (cell, field, size) in enumerate(zip(cells, fields, widths, strict=True)):
        space = " " * (size - cell_len(cell.plain))
        line.append(" " * _GAP if number else "")
        line.append_text(Text.assemble(space, cell) if field.right else Text.assemble(cell, space))
    line.rstrip()
    return line
