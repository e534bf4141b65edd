"""Indented lines of C++."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

WIDTH = 120


class Writer:
    """Collects lines; blocks indent by two spaces."""

    def __init__(self, depth: int = 0) -> None:
        self.lines: list[str] = []
        self._depth = depth

    def line(self, text: str = "") -> None:
        """One line, or an empty one."""
        self.lines.append("  " * self._depth + text if text else "")

    def noted(self, text: str, note: str) -> None:
        """A line with a comment at its end, if there is room for it."""
        whole = f"{text}  // {note}"
        self.line(whole if note and self.fits(whole) else text)

    def wrapped(self, text: str) -> None:
        """A statement, broken where it is too long for one line: before a ternary or logical operator or behind a
        comma, else before a sum's operator."""
        while not self.fits(text):
            room = WIDTH - 2 * self._depth
            cut = max(text.rfind(f" {operator} ", 0, room) for operator in ("?", ":", "&&", "||"))
            cut = max(cut, text.rfind(", ", 0, room) + 1)
            if cut <= 0:
                cut = text.rfind(" + ", 0, room)
            if cut <= len(text) - len(text.lstrip()) + 4:
                break
            self.line(text[:cut])
            text = "    " + text[cut:].lstrip()
        self.line(text)

    def comment(self, text: str) -> None:
        self.line(f"// {text}")

    def unroll(self, count: int | None = None) -> None:
        """Unroll the next loop, completely or ``count`` times. Directives stand at the margin, as is usual."""
        self.lines.append("#pragma unroll" + (f" {count}" if count else ""))

    def fits(self, text: str) -> bool:
        """Is there room for ``text`` on one line?"""
        return 2 * self._depth + len(text) <= WIDTH

    def call(self, head: str, arguments: list[str], tail: str = ";") -> None:
        """``head(arguments…);``, broken after a comma where the line would be too long."""
        whole = f"{head}({', '.join(arguments)}){tail}"
        if self.fits(whole):
            self.line(whole)
            return
        current = f"{head}("
        for index, argument in enumerate(arguments):
            piece = argument + (", " if index < len(arguments) - 1 else f"){tail}")
            if current.strip() and not self.fits(current + piece):
                self.line(current.rstrip())
                current = "    "
            current += piece
        self.line(current)

    @contextmanager
    def block(self, head: str, tail: str = "}", note: str = "") -> Iterator[None]:
        """``head { … }``, with a comment behind the opening brace."""
        self.noted(f"{head} {{" if head else "{", note)
        with self.indented():
            yield
        self.line(tail)

    @contextmanager
    def body(self) -> Iterator[None]:
        """The rest of a block whose head has been written."""
        with self.indented():
            yield
        self.line("}")

    @contextmanager
    def indented(self) -> Iterator[None]:
        self._depth += 1
        yield
        self._depth -= 1

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
