"""Pictures of every kernel of the project: where its buffers lie without and with SALA, and one run over time.

Made when the report is written, from the sources of the kernels: they show the analysis, not a measurement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from croqtile import memory_map
from croqtile.analyse import analyse as analyse_kernel
from croqtile.diagnostics import CompileError
from croqtile.frontend import load
from hb_analyzer import analyse
from hb_analyzer.examples import example_paths
from hb_analyzer.pattern_load import load_pattern
from hb_analyzer.report import Report
from hb_analyzer.timeline import timeline_svg
from hb_analyzer.translate import to_program
from reproduce import ROOT

# Patterns that Figure 2 measures; the other examples of the analyzer are not the paper's.
PATTERNS = ("choreo_fa_kv", "choreo_fa_full")


@dataclass(frozen=True)
class Pair:
    """May two buffers share addresses? ``why`` is the reason of a refusal."""

    buffers: str
    overlap: bool
    why: str


@dataclass(frozen=True)
class Picture:
    """``memory_map`` and ``timeline`` are SVG documents; "" where there is none, and ``problem`` says why."""

    name: str
    summary: str
    memory_map: str = ""
    timeline: str = ""
    pairs: tuple[Pair, ...] = ()
    problem: str = ""


def pictures(kernels: Sequence[Path] | None = None) -> Iterator[Picture]:
    """Every kernel in kernels/, then the two patterns of Figure 2."""
    for path in sorted((ROOT / "kernels").glob("*/*.co")) if kernels is None else kernels:
        yield from _kernel(path)
    for path in example_paths():
        if path.stem in PATTERNS and kernels is None:
            program = to_program(load_pattern(path))
            report = analyse(program)
            name = f"{path.stem} (pattern)"
            yield Picture(name, _summary(report), timeline=timeline_svg(program, report), pairs=_pairs(report))


def _kernel(path: Path) -> Iterator[Picture]:
    try:
        kernels = load(str(path)).kernels
    except CompileError as error:
        yield Picture(path.stem, "", problem=f"does not compile: {error.diagnostics[0].message}")
        return
    for kernel in kernels:
        found = analyse_kernel(kernel)
        name = path.stem if len(kernels) == 1 else f"{path.stem}, {kernel.name}"
        timeline = timeline_svg(found.program, found.report)
        yield Picture(name, _summary(found.report), memory_map.draw([found]), _relative(timeline), _pairs(found.report))


def _summary(report: Report) -> str:
    saved = report.baseline - report.placement.size
    share = f", {100 * saved / report.baseline:.3g} % less" if saved and report.baseline else ", nothing saved"
    optimum = "; no smaller placement exists" if report.placement.exact else ""
    return f"{report.baseline / 1024:g} → {report.placement.size / 1024:g} KiB{share}{optimum}"


def _pairs(report: Report) -> tuple[Pair, ...]:
    return tuple(Pair(f"{v.a} / {v.b}", v.overlap, "" if v.overlap else _relative(v.why)) for v in report.verdicts)


def _relative(text: str) -> str:
    """Places in the sources from the project's root, wherever it lies."""
    return text.replace(f"{ROOT}/", "")
