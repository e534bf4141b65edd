"""The orderings by which buffers may overlap, found again in the compiled code."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import hb_analyzer
from croqtile.analyse import Analysis
from croqtile.validation.result import Problem, ProofPath, ProofStep

Lines = Mapping[tuple[str, str, str], Collection[int]]  # role, label, place in the source → PTX lines


def proofs(
    analysis: Analysis, pairs: Collection[tuple[str, str]], lines: Lines
) -> tuple[list[ProofPath], list[Problem]]:
    """For every pair of buffers that share bytes: the paths of its proof with the instructions on them. A pair without
    a proof, and an operation on a path without an instruction, are problems."""
    found: dict[ProofPath, None] = {}
    problems: list[Problem] = []
    for a, b in pairs:
        verdict = hb_analyzer.explain_pair(analysis.program, a, b)
        if not verdict.overlap or not verdict.proof:
            problems.append(Problem("", f"{a} and {b} share memory without a proof that they may"))
        for path in verdict.proof:
            steps = []
            for site in path:
                own = lines.get((site.role, site.label, str(site.where)), ()) if site.where else ()
                if site.where and not own:
                    problems.append(
                        Problem(site.role, f"no instruction for `{site.label}`, on which an overlap relies")
                    )
                steps.append(ProofStep(f"{site.role}: {site.label}", tuple(sorted(own))))
            found[ProofPath((a, b), tuple(steps))] = None
    return list(found), problems
