"""What a message is, and how it is rendered: with its place, the line of source and a caret.

A class holds the data of a message; its ``template`` is filled from its fields. ``notes`` point at further places that
matter (an earlier definition, the other side of a conflict).
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from croqtile.ir import Span

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[type], type]:
        """For type checkers only (Python 3.10 does not have it)."""
        return lambda cls: cls


def _field(*, default: Any, kw_only: bool) -> Any:
    """A field that is given by keyword only."""
    return default


@dataclass(frozen=True)
class Note:
    """A second place of a message."""

    span: Span
    message: str


@dataclass_transform(frozen_default=True, field_specifiers=(_field,))
class _Record:
    """A dataclass without generated code: with more than a hundred kinds, generating it would take longer than checking
    a kernel."""

    _names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        own = (name for name, kind in cls.__annotations__.items() if not kind.startswith("ClassVar"))
        keywords = ("notes",)
        cls._names = (*cls._names, *(name for name in own if name not in keywords))

    def __init__(self, *values: object, **named: object) -> None:
        fields = dict(zip(self._names, values, strict=False), **named)
        missing = [name for name in self._names if name not in fields and not hasattr(type(self), name)]
        if missing or len(values) > len(self._names):
            raise TypeError(f"{type(self).__name__} takes {', '.join(self._names)}")
        vars(self).update(fields)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class Diagnostic(_Record):
    """Base class. ``span`` is None only for what has no place in a file (a bad command-line macro)."""

    span: Span | None
    notes: tuple[Note, ...] = _field(default=(), kw_only=True)

    template: ClassVar[str] = ""
    severity: ClassVar[str] = "error"

    @property
    def message(self) -> str:
        return _PLURAL.vformat(self.template, (), vars(self))

    @property
    def details(self) -> tuple[str, ...]:
        """Lines to print after the message, its place and its notes."""
        return ()


class _Plural(string.Formatter):
    """``{count:bound}`` gives "1 bound" or "2 bounds"."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, int) and format_spec.isalpha():
            return f"{value} {format_spec}{'s' * (value != 1)}"
        return str(format(value, format_spec))


_PLURAL = _Plural()


class CompileError(Exception):
    """One or more diagnostics of severity "error"; the compiler prints them all and exits with status 1."""

    def __init__(self, diagnostics: Iterable[Diagnostic], sources: Mapping[str, str] | None = None) -> None:
        self.diagnostics = tuple(diagnostics)
        self.sources = dict(sources or {})
        super().__init__("\n".join(f"{d.span or 'choreo'}: {d.message}" for d in self.diagnostics))

    @property
    def rendered(self) -> str:
        """The text to print on stderr."""
        return render(self.diagnostics, self.sources)


def render(diagnostics: Iterable[Diagnostic], sources: Mapping[str, str]) -> str:
    """The text to print: per message ``file:line:column: severity: message``, the source line and a caret.

    ``sources`` maps file names (as in the spans) to their text; a line that is not there is left out.
    """
    lines: list[str] = []
    for diagnostic in diagnostics:
        if diagnostic.span is None:
            lines.append(f"choreo: {diagnostic.severity}: {diagnostic.message}")
        else:
            lines += _place(diagnostic.span, diagnostic.severity, diagnostic.message, sources)
        for note in diagnostic.notes:
            lines += _place(note.span, "note", note.message, sources)
        lines += diagnostic.details
    return "".join(line + "\n" for line in lines)


def _place(span: Span, severity: str, message: str, sources: Mapping[str, str]) -> list[str]:
    lines = [f"{span}: {severity}: {message}"]
    text = sources[span.file].split("\n") if span.file in sources else []
    if 1 <= span.line <= len(text):
        line = text[span.line - 1].rstrip()
        number = f"{span.line:5}"
        # Tabs are kept in the margin under the line, so that the caret stands right whatever their width.
        margin = "".join("\t" if c == "\t" else " " for c in line[: span.column - 1])
        margin = margin.ljust(span.column - 1)
        length = max(1, min(span.length, len(line) - span.column + 1))
        lines += [f"{number} | {line}", f"{' ' * len(number)} | {margin}^{'~' * (length - 1)}"]
    return lines
