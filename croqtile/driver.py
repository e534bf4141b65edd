"""The passes in order: from a .co file to analysed kernels, and from these to CUDA C++ text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from croqtile import frontend, ir
from croqtile.analyse import Analysis, analyse
from croqtile.preprocess import CoFunction, SourceFile
from hb_analyzer.report import Placement

if TYPE_CHECKING:
    from croqtile.stress import Stress, Wrong


@dataclass(frozen=True)
class Compilation:
    """A file after the analysis: ``analyses`` holds one entry per ``__co__`` function of ``unit``, in its order."""

    path: Path
    unit: frontend.Unit
    defines: Mapping[str, str]
    analyses: tuple[Analysis, ...]

    @property
    def include_directories(self) -> tuple[Path, ...]:
        """Where quoted includes of the file, and of ``.co`` files that it includes, are looked for."""
        return tuple(dict.fromkeys(Path(file.path).absolute().parent for file in _files(self.unit.source)))


def compile_file(path: Path, defines: Mapping[str, str], sala: bool = True) -> Compilation:
    """Run every pass up to the analysis. Raises diagnostics.CompileError for what the front end refuses.

    What the analysis finds is in ``Analysis.diagnostics``: the caller reports it together with the allocation.
    """
    unit = frontend.load(str(path), [f"{name}={value}" for name, value in defines.items()])
    return Compilation(path, unit, defines, tuple(analyse(kernel, sala) for kernel in unit.kernels))


def generate(compilation: Compilation, stress: Wrong | None = None) -> str:
    """The CUDA C++ file: macros of the command line, the prelude, and the user's text with every function replaced.

    ``stress``: a build for stress tests; a right one, unless the value says what is to be wrong with it. Raises
    diagnostics.CompileError for what cannot be emitted, stress.CannotBeWrongError for a wrong build that would be none.
    """
    from croqtile.emit.unit import emit_unit
    from croqtile.stress import stress_of

    kernels: list[tuple[ir.Kernel, Placement, Stress | None]] = []
    for analysis in compilation.analyses:
        how, placement = (None, analysis.placement) if stress is None else stress_of(analysis, stress)
        kernels.append((analysis.kernel, placement, how))
    text = emit_unit(kernels)
    emitted = dict(zip(map(id, compilation.unit.functions), text.functions, strict=True))

    def generated(function: CoFunction) -> str:
        return emitted[id(function)]

    source = compilation.unit.source.splice(generated, path=str(compilation.path.absolute()))
    return _macros(compilation.defines) + text.prelude.rstrip("\n") + "\n" + source


def _macros(defines: Mapping[str, str]) -> str:
    """``-D`` for nvcc: in the text, so that no value passes through a shell. The command line of nvcc goes first."""
    lines = ""
    for name, value in defines.items():
        lines += f"#ifndef {name.split('(')[0]}\n#define {name} {value}\n#endif\n"
    return lines


def _files(source: SourceFile) -> list[SourceFile]:
    return [source, *(inner for _, _, file in source.included for inner in _files(file))]
