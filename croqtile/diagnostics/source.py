"""Messages about files, macros and directives."""

from __future__ import annotations

from croqtile.diagnostics.base import Diagnostic


class UnreadableFile(Diagnostic):
    template = "cannot read {path}: {reason}"
    path: str
    reason: str


class BadDefine(Diagnostic):
    template = "-D{text}: expected NAME or NAME=VALUE"
    text: str


class BadDirective(Diagnostic):
    template = "#{directive}: {reason}"
    directive: str
    reason: str


class UserError(Diagnostic):
    template = "#error {text}"
    text: str


class UnterminatedConditional(Diagnostic):
    template = "#{directive} without #endif"
    directive: str


class MacroMisuse(Diagnostic):
    template = "{reason}"
    reason: str


class UnterminatedFunction(Diagnostic):
    template = "this __co__ function has no end: {missing} is missing"
    missing: str
