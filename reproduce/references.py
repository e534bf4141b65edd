"""The commands about ``expected/``: comparing results to it, and the only way to rewrite it."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from reproduce import ROOT, claims, golden, results, verify
from reproduce.machine import Need
from reproduce.running import EXIT_DIFFERS, EXIT_USAGE, check_writable, context_for, provide, results_folder, run_step
from reproduce.step import Options
from reproduce.steps import STEPS


def check(options: argparse.Namespace) -> int:
    kinds = {"exact": _verify_exact, "timing": _verify_timing}
    if options.kind not in kinds:
        raise ValueError(f"verify compares {' or '.join(kinds)} results; got `{options.kind}`")
    return kinds[options.kind](results_folder(options.results))


def _verify_exact(folder: Path) -> int:
    names = [name for name in verify.exact_steps() if name in STEPS]
    check_writable(folder)
    for name in names:
        provide(STEPS[name], Options(), None)
    findings: list[verify.Finding] = []
    for name in names:
        document = run_step(STEPS[name], context_for(name, folder, Options()))
        here = verify.exact(document)
        equal = sum(finding.status == verify.OK for finding in here)
        lacking = Counter(finding.got for finding in here if finding.status == verify.NOT_HERE)
        absent = "".join(f"; {count} not measured here: {reason}" for reason, count in lacking.items())
        print(f"{name}: {equal} of {len(here)} exact values equal{absent}")
        findings += [finding for finding in here if finding.status != verify.NOT_HERE]
    return _conclude(findings)


def _verify_timing(folder: Path) -> int:
    findings: list[verify.Finding] = []
    documents, problems = results.load_all(folder, STEPS)
    for name, document in documents.items():
        profile, here = verify.timing(document)
        if here:
            equal = sum(finding.status == verify.OK for finding in here)
            print(f"{name}: {equal} of {len(here)} timed values within the tolerances of the profile `{profile}`")
        findings += here
    for error in problems.values():
        print(error, file=sys.stderr)
    if not findings:
        print(f"no timed results in {folder}: run figure3, table3 or fa on a GPU first")
    return _conclude(findings) or (EXIT_USAGE if problems or not findings else 0)


def _conclude(findings: list[verify.Finding]) -> int:
    for finding in findings:
        if finding.status != verify.OK:
            print(finding)
    return EXIT_DIFFERS if any(finding.status == verify.MISMATCH for finding in findings) else 0


def rewrite(options: argparse.Namespace) -> int:
    changes = 0
    for path, reference in _references(options):
        lines = golden.difference(path, reference)
        changes += len(lines)
        print("\n".join(lines) if lines else f"{path.name}: no difference")
        if options.update and lines:
            golden.write(path, reference)
            print(f"{path.relative_to(ROOT)} written")
    if changes and not options.update:
        print("nothing written: --update writes these values")
    return 0


def _references(options: argparse.Namespace) -> list[tuple[Path, dict[str, Any]]]:
    if options.paper:
        profiles = golden.paper_profiles(claims.load())
        return [(verify.EXPECTED / "timing" / f"{name}.json", made) for name, made in profiles.items()]
    if not options.timing:
        unknown = [name for name in options.steps if name not in STEPS]
        if unknown:
            raise ValueError(f"there is no step `{unknown[0]}`: {', '.join(STEPS)}")
        # What only a GPU can make is no exact reference: it could not be verified without one.
        timed = [name for name in STEPS if Need.GPU in STEPS[name].needs]
        for name in options.steps:
            if name in timed:
                raise ValueError(f"{name} has no exact reference, since it needs a GPU: --timing makes a GPU's profile")
        folder = results_folder(options.results)
        names = [name for name in options.steps or STEPS if name not in timed]
        documents = [document for name in names if (document := results.load(folder, name))]
        if not documents:
            raise results.NoResultsError(folder, names[0])
        exact = [(verify.EXPECTED / "exact" / f"{each.step}.json", each) for each in documents]
        made = [(path, golden.exact_reference(document, _previous(path))) for path, document in exact]
        return [(path, reference) for path, reference in made if reference["values"]]
    runs = [[document for name in STEPS if (document := results.load(Path(run), name))] for run in options.timing]
    runs = [run for run in runs if run]
    if not runs:
        raise ValueError(f"no results in {', '.join(options.timing)}")
    path = golden.profile_path(runs[-1])
    return [(path, golden.timing_reference(runs, _previous(path)))]


def _previous(path: Path) -> dict[str, Any] | None:
    return verify.load_reference(path) if path.exists() else None
