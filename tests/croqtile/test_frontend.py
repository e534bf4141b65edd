"""The front end as one call."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from croqtile import ir, rewrite
from croqtile.diagnostics import CompileError
from croqtile.frontend import load
from tests.croqtile.tile import GEMM, SOFTMAX, edited, messages, write


def test_kernels_in_order(tmp_path: Path) -> None:
    unit = load(write(tmp_path, GEMM + SOFTMAX))
    assert [kernel.name for kernel in unit.kernels] == ["gemm", "softmax"]
    assert [function.start for function in unit.functions] == [0, len(GEMM)]


def test_defines_reach_the_kernel(tmp_path: Path) -> None:
    text = edited(GEMM, [("lhs_s[4]", "lhs_s[DEPTH]"), ("shared event full[4]", "shared event full[4]")])
    (kernel,) = load(write(tmp_path, text), ["DEPTH=5"]).kernels
    assert kernel.buffers[0].count == 5


def test_the_errors_of_all_functions_are_collected(tmp_path: Path) -> None:
    text = edited(GEMM, [("k % 4", "kk % 4")]) + edited(SOFTMAX, [("wait full;", "wait ful;")])
    with pytest.raises(CompileError) as error:
        load(write(tmp_path, text))
    assert [type(d).__name__ for d in error.value.diagnostics] == ["UnknownName", "UnknownName"]
    assert "wait ful;" in error.value.rendered


def test_a_file_without_functions(tmp_path: Path) -> None:
    assert load(write(tmp_path, "int main() {}\n")).kernels == ()


KERNELS = sorted((Path(__file__).parents[2] / "kernels").glob("*/*.co"))


@pytest.mark.parametrize("path", KERNELS, ids=[path.stem for path in KERNELS])
def test_the_kernels_are_accepted(path: Path) -> None:
    (kernel,) = load(str(path)).kernels
    assert kernel.warpgroups >= 2
    assert all(event.arrivals for event in kernel.events)
    operands = [s.b.view.root for s in rewrite.statements(kernel.body) if isinstance(s, ir.Mma)]
    assert operands and all(isinstance(root, ir.SharedBuffer) and root.swizzle == 128 for root in operands)


def test_two_functions_of_one_name(tmp_path: Path, golden: Callable[[str], None]) -> None:
    golden(messages(tmp_path, GEMM + "\n" + GEMM))


def test_deep_nesting(tmp_path: Path) -> None:
    text = edited(GEMM, [("k % 4", "(" * 3000 + "k" + ")" * 3000 + " % 4 + " + "-" * 3000 + "1")])
    assert "nests expressions or statements too deeply" in messages(tmp_path, text)


TOKEN = re.compile(r"\s+|\w+|=>|[^\w\s]")


@pytest.mark.parametrize("seed", range(8))
def test_damaged_programs_are_refused_in_words(tmp_path: Path, seed: int) -> None:
    """Tokens deleted, doubled, swapped, replaced: there is no traceback, and every message has a place."""
    random = Random(seed)
    for _ in range(20):
        tokens = TOKEN.findall(random.choice([GEMM, SOFTMAX]))
        for _ in range(random.choice([1, 1, 2, 3])):
            here, there = random.randrange(len(tokens)), random.randrange(len(tokens))
            change = random.randrange(4)
            if change == 0:
                del tokens[here]
            elif change == 1:
                tokens.insert(here, tokens[there])
            elif change == 2:
                tokens[here] = tokens[there]
            else:
                tokens[here], tokens[there] = tokens[there], tokens[here]
        try:
            load(write(tmp_path, "".join(tokens)))
        except CompileError as error:
            assert all(problem.span is not None for problem in error.diagnostics)
            assert error.rendered
