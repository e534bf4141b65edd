"""The command: ``python -m hb_analyzer`` or ``hb-analyzer``. Exit codes: 0 done, 2 bad input."""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import noacyclic
from .dot import dot_text
from .examples import DIRECTORY, example_paths
from .expectations import unmet_expectations
from .infer import infer
from .json_reader import PatternError
from .pattern import Pattern
from .pattern_load import load_pattern
from .pattern_report import PatternAnalysis, analyse_pattern
from .ptx import ptx_text, summarise_ptx
from .simulator import command as simulator
from .simulator.code import IllFormedError, TooLongError
from .table import percent, table
from .text import pattern_text
from .text_explain import explain_text, verdict_json
from .timeline import timeline_svg
from .translate import to_program

_EPILOG = f"""\
FILE is a pattern file; the name of an example (see all-examples) works too.
{noacyclic.VARIABLE}=1 selects the paper's unsound ablation in pattern, compare and all-examples.
Exit codes: 0 done, 2 bad input."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without these characters shows "?"
    if argv is None:
        gc.disable()  # the process ends in a moment; graphs are no cycles of objects, and searching them takes time
    args = _parser().parse_args(argv)
    try:
        output = args.run(args)
        if isinstance(output, str):
            sys.stdout.write(output)
        else:
            sys.stdout.write(json.dumps(output, indent=2, ensure_ascii=False) + "\n")
        sys.stdout.flush()
    except PatternError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # e.g. `| head`
        sys.stderr.close()
    except OSError as error:  # files have been read and written by now
        print(f"error: standard output: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hb-analyzer",
        description="Which shared-memory buffers of a warp-specialized GPU kernel may overlap, and why.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Any, help: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=help, description=help)
        sub.add_argument("--json", action="store_true", help="print JSON")
        sub.set_defaults(run=run)
        return sub

    sub = command("pattern", _pattern, "report on one pattern: pairs, placement, savings, defects")
    sub.add_argument("file", metavar="FILE")
    sub = command("compare", _compare, "one line per pattern")
    sub.add_argument("files", metavar="FILE", nargs="+")
    command("all-examples", _all_examples, "compare the examples, then report on each")
    sub = command("explain", _explain, "why two buffers may overlap (a proof) or may not (an interleaving)")
    sub.add_argument("file", metavar="FILE")
    sub.add_argument("a", metavar="A")
    sub.add_argument("b", metavar="B")
    sub = command("dot", _dot, "the phases and their order as a Graphviz graph")
    sub.add_argument("file", metavar="FILE")
    sub.add_argument("-o", "--output", metavar="OUT", help="write there instead of to stdout")
    sub = command("timeline", _timeline, "one schedule, buffer lifetimes and the placement as SVG")
    sub.add_argument("file", metavar="FILE")
    sub.add_argument("-o", "--output", metavar="OUT.svg", required=True)
    sub.add_argument("--set", metavar="NAME=COUNT", action="append", default=[], help="a trip count of the picture")
    sub = command("simulate", _simulate, "run it under many schedules, every buffer at its address, and watch")
    sub.add_argument("file", metavar="FILE")
    simulator.add_arguments(sub)
    sub = command("ptx", _ptx, "count the mbarrier, bulk-copy, wgmma and barrier instructions of each kernel")
    sub.add_argument("file", metavar="FILE.ptx")
    return parser


# ---------------------------------------------------------------------------------------------------------------
# Commands: each returns text, or what --json prints


def _pattern(args: argparse.Namespace) -> Any:
    analysis = analyse_pattern(_load(args.file))
    return analysis.to_json() if args.json else pattern_text(analysis)


def _compare(args: argparse.Namespace) -> Any:
    analyses = [analyse_pattern(_load(file)) for file in args.files]
    return [analysis.to_json() for analysis in analyses] if args.json else comparison(analyses)


def _all_examples(args: argparse.Namespace) -> Any:
    analyses = [analyse_pattern(load_pattern(path)) for path in example_paths()]
    if args.json:
        return [analysis.to_json() for analysis in analyses]
    return "\n".join([comparison(analyses), *(pattern_text(analysis) for analysis in analyses)])


def _explain(args: argparse.Namespace) -> Any:
    from . import explain_pair

    pattern = _load(args.file)
    names = [buffer.name for buffer in pattern.buffers]
    for name in (args.a, args.b):
        if name not in names:
            raise PatternError(args.file, "", f'no buffer "{name}" in it (it has: {", ".join(names)})')
    if args.a == args.b:
        raise PatternError(args.file, "", f'"{args.a}" twice: a pair has two different buffers')
    verdict = explain_pair(to_program(pattern), args.a, args.b)
    return verdict_json(verdict) if args.json else explain_text(pattern.kernel, verdict)


def _dot(args: argparse.Namespace) -> Any:
    pattern = _load(args.file)
    text = dot_text(pattern, infer(pattern))
    return _deliver(args, "dot", text)


def _timeline(args: argparse.Namespace) -> Any:
    analysis = analyse_pattern(_load(args.file), ablation=False)
    svg = timeline_svg(analysis.program, analysis.report, _trip_counts(args.set, analysis))
    return _deliver(args, "svg", svg)


def _simulate(args: argparse.Namespace) -> Any:
    analysis = analyse_pattern(_load(args.file), ablation=False)
    for name in args.over or ():
        if name not in analysis.report.placement.offsets:
            raise PatternError(args.file, "", f'no buffer "{name}" in it')
    if args.over and args.over[0] == args.over[1]:
        raise PatternError(args.file, "", f'"{args.over[0]}" twice: a pair has two different buffers')
    try:
        result = simulator.simulate(
            analysis.program,
            analysis.report.placement,
            seed=args.seed,
            schedules=args.schedules,
            exhaustive=args.exhaustive,
            fixed=_trip_counts(args.set, analysis),
            over=args.over,
        )
    except IllFormedError as error:
        raise PatternError(args.file, "", f"cannot be run: {error}") from None
    except TooLongError:
        raise PatternError(args.file, "", "too long to be run at these trip counts: smaller ones with --set") from None
    return result.to_json() if args.json else result.text()


def _ptx(args: argparse.Namespace) -> Any:
    try:
        text = Path(args.file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise PatternError(args.file, "", error.strerror or str(error)) from None
    summaries = summarise_ptx(text, args.file)
    return [summary.to_json() for summary in summaries] if args.json else ptx_text(summaries)


# ---------------------------------------------------------------------------------------------------------------


def comparison(analyses: Sequence[PatternAnalysis]) -> str:
    """One line per pattern: bytes, savings, pairs, defects, and whether what the file expects holds."""
    header = ("kernel", "framework", "baseline", "optimised", "saved", "", "pairs", "defects", "expected")
    rows = []
    for analysis in analyses:
        report = analysis.report
        saved = report.baseline - report.placement.size
        overlapping = sum(verdict.overlap for verdict in report.verdicts)
        counts = {
            "deadlock": len(report.deadlocks),
            "overrun": len(report.overruns),
            "race": len(report.races),
            "arrival count": len(report.arrivals),
            "missing wait": len(report.unawaited),
        }
        found = ", ".join(f"{count} {kind}{'s' * (count > 1)}" for kind, count in counts.items() if count)
        unmet = unmet_expectations(analysis)
        rows.append(
            (
                analysis.pattern.kernel,
                report.framework or "–",
                str(report.baseline),
                str(report.placement.size),
                str(saved),
                percent(saved, report.baseline),
                f"{overlapping}/{len(report.verdicts)}",
                found or "–",
                "–" if unmet is None else "no" if unmet else "yes",
            )
        )
    text = table(header, rows, right=(2, 3, 4, 5, 6)) + "\n"
    return text + f"\n{noacyclic.WARNING}\n" if any(analysis.ablation for analysis in analyses) else text


def _load(file: str) -> Pattern:
    """A pattern file, or an example by its name (with or without ``.json``)."""
    path = Path(file)
    if not path.exists() and path.name == file:
        for name in (file, f"{file}.json"):
            if (DIRECTORY / name).is_file():
                return load_pattern(DIRECTORY / name)
    return load_pattern(path)


def _deliver(args: argparse.Namespace, kind: str, text: str) -> Any:
    """To the file of ``-o``, saying so, or to stdout."""
    if args.output is None:
        return {kind: text} if args.json else text
    output = Path(args.output)
    if output.exists() and Path(args.file).exists() and output.samefile(args.file):
        raise PatternError(args.output, "", "is the input file: it would be overwritten")
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PatternError(args.output, "", error.strerror or str(error)) from None
    return {"output": args.output} if args.json else f"wrote {args.output}\n"


def _trip_counts(settings: Sequence[str], analysis: PatternAnalysis) -> dict[str, int]:
    known = [parameter.name for parameter in analysis.program.parameters]
    counts = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        if name not in known:
            raise PatternError("--set", "", f'no trip count "{name}" (known: {", ".join(known) or "none"})')
        if not value.isdigit() or int(value) > 64:
            raise PatternError("--set", "", f'"{setting}": expected {name}=COUNT with a count of at most 64')
        counts[name] = int(value)
    return counts
