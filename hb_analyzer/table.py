"""Plain-text tables and byte counts for people."""

from __future__ import annotations

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = (), indent: str = "  ") -> str:
    """Aligned columns under a rule; the columns numbered in ``right`` are right-aligned."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]

    def render(cells: Sequence[str]) -> str:
        parts = [cell.rjust(width) if i in right else cell.ljust(width) for i, (cell, width) in cells_of(cells)]
        return (indent + "  ".join(parts)).rstrip()

    def cells_of(cells: Sequence[str]) -> list[tuple[int, tuple[str, int]]]:
        return list(enumerate(zip(cells, widths, strict=True)))

    rule = indent + "  ".join("─" * width for width in widths)
    return "\n".join([render(header), rule, *(render(row) for row in rows)])


def kib(size: int) -> str:
    """A size in bytes, with KiB beside it: ``32768 B (32 KiB)``."""
    return f"{size} B ({size / 1024:g} KiB)" if size % 256 == 0 else f"{size} B"


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0.0 %"
