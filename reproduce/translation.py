"""Translation validation of every kernel: is the PTX that nvcc makes the program that was analysed?

Part ``translation`` of ``python -m reproduce.soundness``. Each kernel is compiled with and without overlap (where it
fits), both are validated, and so are mutants of the PTX with overlap, each of which must be refused.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

from croqtile.driver import compile_file, generate
from croqtile.toolchain import Toolchain, compile_ptx
from croqtile.validation.mutants import mutants
from croqtile.validation.result import Validation
from croqtile.validation.validate import Validator
from hb_analyzer.table import table

COLUMNS = ("builds", "instructions", "paths", "steps", "differing", "mutants", "refused")


def translation(path: Path, tools: Toolchain, with_mutants: bool = True) -> dict[str, Any]:
    """Counts of one ``.co`` file. ``paths``: orderings of proofs found in the code; ``steps``: instructions walked;
    ``differing``: builds with a problem; ``unnoticed``: mutants that were not refused.

    Raises CompileError of the toolchain or of the front end."""
    found: dict[str, Any] = dict.fromkeys(COLUMNS, 0)
    kinds: Counter[str] = Counter()
    problems: list[str] = []
    unnoticed: list[str] = []
    for sala in (True, False):
        compilation = compile_file(path, {}, sala)
        if any(analysis.errors for analysis in compilation.analyses):
            if sala:
                raise ValueError(f"{path.stem} is refused by the compiler")
            continue  # without overlap it does not fit
        cuda = generate(compilation)
        text = compile_ptx(tools, cuda, compilation.include_directories)
        for analysis in compilation.analyses:
            validator = Validator(analysis, cuda)
            result = validator.validate(text)
            found["builds"] += 1
            found["instructions"] += result.instructions
            found["paths"] += len(result.proofs)
            found["steps"] += result.walked
            found["differing"] += bool(result.problems)
            mode = "" if sala else ", without overlap"
            problems += [f"{path.stem}{mode}: {problem}" for problem in result.problems]
            for mutant in mutants(text, validator.function) if sala and with_mutants else ():
                kinds[mutant.kind] += 1
                order = nearest(result, mutant.line)
                refused = bool(validator.validate(mutant.text, first_only=True, order=order).problems)
                found["mutants"] += 1
                found["refused"] += refused
                unnoticed += [] if refused else [f"{path.stem}: {mutant.kind}: {mutant.what}"]
    return {**found, "kinds": dict(kinds), "problems": problems, "unnoticed": unnoticed}


def nearest(result: Validation, line: int) -> list[int]:
    """The warpgroups of a validated kernel, first those that act next to ``line`` of its PTX."""
    rows = sorted(result.roles, key=lambda row: min((abs(line - own) for own in row.lines), default=math.inf))
    return [row.warpgroup for row in rows]


def text_of(data: dict[str, dict[str, Any]]) -> str:
    """Tables: kernels, and mutants by kind."""
    rows = [(name, *(str(found[column]) for column in COLUMNS)) for name, found in data.items()]
    rows.append(("all", *(str(sum(found[column] for found in data.values())) for column in COLUMNS)))
    numbers = range(1, len(COLUMNS) + 1)
    text = f"Compiled kernels against the analysed programs\n{table(('kernel', *COLUMNS), rows, right=numbers)}\n"
    kinds: Counter[str] = Counter()
    for found in data.values():
        kinds.update(found["kinds"])
    if kinds:
        text += "\nMutants of the PTX\n"
        text += table(("what is wrong", "mutants"), [(k, str(n)) for k, n in kinds.most_common()], right=(1,)) + "\n"
    for found in data.values():
        text += "".join(f"DIFFERS {problem}\n" for problem in found["problems"])
        text += "".join(f"NOT REFUSED {mutant}\n" for mutant in found["unnoticed"])
    return text
