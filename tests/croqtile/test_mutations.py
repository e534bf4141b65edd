"""Every kernel with one synchronisation taken out is refused, reported, or loses the overlap that needed it."""

import re
from pathlib import Path

import pytest

from croqtile.diagnostics import CompileError
from croqtile.driver import compile_file

KERNELS = Path(__file__).parents[2] / "kernels"
SYNCHRONISATION = re.compile(r"\s*(wait\b|trigger\b|sync\.|mma\.commit|foreach \{s\} in \[\w+\] trigger)")
QUICK = ("matmul_f16_dyn_sm90_warpspec_1p2c", "fa_1p1c_2s")


def mutants():
    for path in sorted(KERNELS.glob("*/*.co")):
        marks = [] if path.stem in QUICK else [pytest.mark.slow]
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            if SYNCHRONISATION.match(line):
                yield pytest.param(path, number, id=f"{path.stem}:{number}:{line.strip()}", marks=marks)


@pytest.mark.parametrize(("path", "number"), list(mutants()))
def test_without_one_synchronisation(path, number, tmp_path):
    (whole,) = compile_file(path, {}).analyses
    assert whole.errors == ()
    lines = path.read_text().splitlines()
    lines[number - 1] = ""
    mutant = tmp_path / path.name
    mutant.write_text("\n".join(lines) + "\n")
    try:
        (analysis,) = compile_file(mutant, {}).analyses
    except CompileError:
        return
    assert analysis.errors or analysis.bytes > whole.bytes
