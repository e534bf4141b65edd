"""Edits of a TTGIR text by line, applied together."""

from __future__ import annotations


class Edits:
    """Lines are those of the original text, counted from 0."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = list(lines)
        self._before: dict[int, list[str]] = {}
        self._dropped: set[int] = set()

    def line(self, number: int) -> str:
        """The line as it is now."""
        return self._lines[number]

    def replace(self, number: int, text: str) -> None:
        self._lines[number] = text

    def substitute(self, number: int, old: str, new: str) -> None:
        """Replaces text that the line must contain exactly once."""
        line = self._lines[number]
        if line.count(old) != 1:
            raise ValueError(f"line {number + 1} does not contain {old!r} once")
        self._lines[number] = line.replace(old, new)

    def insert_before(self, number: int, *texts: str) -> None:
        """In the order of the calls, indented like the line before which they go."""
        self._before.setdefault(number, []).extend(texts)

    def insert_after(self, number: int, *texts: str) -> None:
        self.insert_before(number + 1, *texts)

    def drop(self, number: int) -> None:
        self._dropped.add(number)

    def text(self) -> str:
        out = []
        for number, line in enumerate(self._lines):
            indent = line[: len(line) - len(line.lstrip())]
            out += [indent + added for added in self._before.get(number, [])]
            if number not in self._dropped:
                out.append(line)
        return "\n".join(out) + "\n"
