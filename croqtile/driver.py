"""The passes in order: from a .co file to analysed kernels, and from these to CUDA C++ text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from croqtile import diagnostics as diag
from croqtile.analyse import Analysis, analyse

if TYPE_CHECKING:
    from croqtile.frontend import Unit


@dataclass(frozen=True)
class Compilation:
    """A file after the analysis. ``unit`` is what the front end made of it."""

    path: Path
    unit: Unit
    defines: Mapping[str, str]
    analyses: tuple[Analysis, ...]

    @property
    def warnings(self) -> tuple[diag.Diagnostic, ...]:
        return tuple(d for analysis in self.analyses for d in analysis.diagnostics if d.severity != "error")


def compile_file(path: Path, defines: Mapping[str, str], sala: bool = True) -> Compilation:
    """Run every pass up to the analysis. Raises diagnostics.CompileError for what the front end refuses.

    What the analysis finds is in ``Analysis.diagnostics``: the caller reports it together with the allocation.
    """
    from croqtile import frontend

    unit = frontend.load(path, dict(defines))
    return Compilation(path, unit, defines, tuple(analyse(kernel, sala) for kernel in unit.kernels))
