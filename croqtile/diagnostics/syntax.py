"""Messages of the parser."""

from __future__ import annotations

from croqtile.diagnostics.base import Diagnostic


class SyntaxMistake(Diagnostic):
    template = "expected {expected}, found {found}"
    expected: str
    found: str


class TooDeep(Diagnostic):
    template = "this function nests expressions or statements too deeply"


class StrayCharacter(Diagnostic):
    template = "{found} does not belong to the tile language"
    found: str
