"""What a kernel may ask for that this code generator cannot give: the last diagnostics of the compiler."""

from __future__ import annotations

from typing import NoReturn

from croqtile.diagnostics import CompileError, Diagnostic
from croqtile.ir import Span


class NotOnThisDevice(Diagnostic):
    """Legal in the language, but outside what the generated sm_90a code can express."""

    template = "cannot generate code for this: {reason}"
    reason: str


def refuse(span: Span, reason: str) -> NoReturn:
    """Stop with a message at ``span``; ``reason`` is a clause that says what is wrong and what would be right."""
    raise CompileError([NotOnThisDevice(span, reason=reason)])
