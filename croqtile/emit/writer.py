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
            if len(current.strip()) > len(head) + 1 and 2 * self._depth + len(current) + len(piece) > WIDTH:
                self.line(current.rstrip())
                current = "    "
            current += piece
        self.line(current)

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """``head { … }``."""
        self.line(f"{head} {{" if head else "{")
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
