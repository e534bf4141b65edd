"""The analysis pass: which shared buffers may overlap, where each one lies, and what is wrong with the events.

``--no-sala`` gives every buffer its own place, in the order of declaration. The synchronisation is checked in both
modes: a deadlock, an event overrun or a race is an error of the program, whatever the placement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import hb_analyzer
from croqtile import diagnostics as diag
from croqtile import ir, rewrite, smem
from croqtile.defects import describe_defects
from croqtile.translate import translate
from hb_analyzer import model
from hb_analyzer.report import Placement, Report


@dataclass(frozen=True)
class Analysis:
    """``placement`` is the one in force; ``report.placement`` always the one with overlap."""

    kernel: ir.Kernel
    program: model.Program
    report: Report
    placement: Placement
    sala: bool
    diagnostics: tuple[diag.Diagnostic, ...]

    @property
    def bytes(self) -> int:
        """Size of the placement in bytes, without runtime slack."""
        return self.placement.size

    @property
    def separate(self) -> Placement:
        """Every buffer in its own place."""
        return separate_placement(self.kernel)

    @property
    def errors(self) -> tuple[diag.Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity == "error")


def analyse(kernel: ir.Kernel, sala: bool = True) -> Analysis:
    """Analyse lowered IR. Never raises for what is wrong with the program: see ``Analysis.diagnostics``."""
    program = translate(kernel)
    report = hb_analyzer.analyse(program)
    problems = describe_defects(report, spans_of(kernel), program, _calls(kernel))
    remote = _remote_statement(kernel)
    if remote is not None:
        certain = tuple(problem for problem in problems if not isinstance(problem, diag.PossibleDefect))
        problems = (*certain, diag.ClusterUnchecked(remote.span))
    separate = separate_placement(kernel)
    if sala and report.overruns and report.placement.size < separate.size:
        # A certain overrun is an error; a possible one is no premise of a proof either.
        report = replace(report, placement=separate)
        problems = (*problems, diag.OverlapUnproved(kernel.span))
    placement = report.placement if sala else separate
    return Analysis(kernel, program, report, placement, sala, (*problems, *_bounds(kernel, placement, sala)))


def separate_placement(kernel: ir.Kernel) -> Placement:
    """Each buffer behind the one declared before it, aligned."""
    offsets: dict[str, int] = {}
    end = 0
    for buffer in kernel.buffers:
        offset = -(-end // buffer.align) * buffer.align
        offsets[buffer.name] = offset
        end = offset + buffer.bytes
    sizes = {buffer.name: buffer.bytes for buffer in kernel.buffers}
    return Placement(offsets, sizes, size=end, lower_bound=end, exact=True)


def spans_of(kernel: ir.Kernel) -> Mapping[str, ir.Span]:
    """The spans of a kernel's statements by their text, as operations of the analysis carry them."""
    return {str(statement.span): statement.span for statement in rewrite.statements(kernel.body)}


def _calls(kernel: ir.Kernel) -> Mapping[str, str]:
    """The functions that the kernel calls, by the text of the statement's span."""
    return {str(s.span): s.function for s in rewrite.statements(kernel.body) if isinstance(s, ir.Call)}


def _remote_statement(kernel: ir.Kernel) -> ir.CopyIn | ir.Trigger | None:
    """The first statement that acts on other CTAs of the cluster."""
    for statement in rewrite.statements(kernel.body):
        if isinstance(statement, ir.CopyIn) and statement.multicast:
            return statement
        if isinstance(statement, ir.Trigger) and statement.cluster:
            return statement
    return None


def _bounds(kernel: ir.Kernel, placement: Placement, sala: bool) -> tuple[diag.Diagnostic, ...]:
    slack = smem.slack(kernel)
    static = smem.static_bytes(kernel)
    if placement.size + slack + static <= smem.BLOCK_LIMIT:
        return ()
    width = max([len("buffer"), *(len(buffer.name) for buffer in kernel.buffers)])
    rows = [f"{'buffer':{width}}  {'offset':>7}  {'bytes':>7}  shape"]
    for buffer in sorted(kernel.buffers, key=lambda b: placement.offsets[b.name]):
        shape = f"{buffer.elem.spelling} [{', '.join(map(str, buffer.shape))}]"
        count = f" × {buffer.count}" if buffer.is_array else ""
        rows.append(f"{buffer.name:{width}}  {placement.offsets[buffer.name]:7}  {buffer.bytes:7}  {shape}{count}")
    if sala and len(kernel.buffers) > 1:
        rows.append("choreo --explain says which buffers may overlap, what forbids it, and what would allow it")
    return (
        diag.SharedMemoryOutOfBound(
            kernel.span,
            kernel=kernel.name,
            bytes=placement.size,
            slack=slack + static,
            limit=smem.BLOCK_LIMIT,
            table=tuple(rows),
        ),
    )
