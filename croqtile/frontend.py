"""The front end as one call: a ``.co`` file to lowered kernels.

unit = load("gemm.co", ["MATMUL_STAGES=3"])
for function, kernel in unit.kernels: …
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from croqtile import diagnostics, ir
from croqtile.check import check
from croqtile.diagnostics import CompileError, Diagnostic
from croqtile.lower import lower
from croqtile.parse import parse
from croqtile.preprocess import preprocess
from croqtile.source import CoFunction, SourceFile


@dataclass(frozen=True)
class Unit:
    """A compiled file: its kernels are lowered, in the order of their functions in ``source``."""

    source: SourceFile
    functions: tuple[CoFunction, ...]
    kernels: tuple[ir.Kernel, ...]

    def render(self, problems: Iterable[Diagnostic]) -> str:
        """Diagnostics as text, with the lines of this file."""
        return diagnostics.render(problems, self.source.sources())


def load(path: str, defines: Iterable[str] = ()) -> Unit:
    """Reads, checks and lowers every ``__co__`` function of ``path``.

    ``defines``: macros, ``NAME`` or ``NAME=VALUE``. Raises CompileError with the messages of all functions; its
    ``rendered`` is the text to print.
    """
    source = preprocess(path, defines)
    functions = source.all_functions()
    kernels: list[ir.Kernel] = []
    problems: list[Diagnostic] = []
    names: dict[str, ir.Span] = {}
    for function in functions:
        try:
            kernel = lower(check(parse(function)))
        except CompileError as error:
            problems += error.diagnostics
            continue
        except RecursionError:
            problems.append(diagnostics.TooDeep(function.span))
            continue
        if kernel.name in names:
            note = diagnostics.Note(names[kernel.name], "it was defined here")
            problems.append(diagnostics.Redefinition(kernel.span, kernel.name, notes=(note,)))
        names.setdefault(kernel.name, kernel.span)
        kernels.append(kernel)
    if problems:
        raise CompileError(problems, source.sources())
    return Unit(source, functions, tuple(kernels))
