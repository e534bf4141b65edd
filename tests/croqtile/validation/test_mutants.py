"""Wrong code is refused."""

from __future__ import annotations

from collections import Counter

import pytest

from croqtile import toolchain
from croqtile.validation.mutants import mutants, units
from tests.croqtile.validation import kernels

OTHERS = ("matmul_f16_dyn_sm90_warpspec_1p1c_64x128_4s", "conv2d_fprop_ws_1p1c", "fa_1p1c_2s")


def test_every_mutant_of_the_kept_kernel_is_refused() -> None:
    kinds: Counter[str] = Counter()
    for mutant in mutants(kernels.module(), kernels.FUNCTION):
        assert mutant.text != kernels.module()
        assert kernels.problem(mutant.text), f"accepted: {mutant.kind}, {mutant.what}"
        kinds[mutant.kind] += 1
    for kind in ("wait", "arrive", "sync", "store", "copy in", "copy out", "mma", "mma wait", "init", "proxy fence"):
        assert kinds[f"{kind} dropped"], kind
    for kind in ("arrival count", "expected bytes", "parity", "target address", "barrier address"):
        assert kinds[f"{kind} changed"], kind
    for kind in ("arrivals of later phases changed", "repetition changed", "proxy fence by one thread"):
        assert kinds[kind], kind
    assert kinds["two operations swapped"] > 5 and kinds["foreign store"] > 5 and sum(kinds.values()) > 100


def test_reasons() -> None:
    """Refused for what is wrong with them, and not for something else."""
    text = kernels.module()
    named = next(
        unit
        for unit in units(text, kernels.FUNCTION)
        if unit.kind == "sync"
        and "%r" in unit.text
        and text[: unit.start].count("wgmma.wait")
        and _threads(text, unit.text) == 256
    )
    assert "the next operation is: sync.wg 1, 2" in kernels.problem(text[: named.start] + text[named.end :])
    for kind, reason in (
        ("wait", "the next operation is: wait"),
        ("init", "is not initialised"),
        ("mma commit", "a wait that leaves 0 groups"),
        ("copy wait", "the code ends, but the program goes on with: tma.copy out of out_s"),
        ("proxy fence", "no proxy fence between"),
    ):
        unit = next(unit for unit in units(text, kernels.FUNCTION) if unit.kind == kind)
        assert reason in kernels.problem(text[: unit.start] + text[unit.end :])


def _threads(text: str, barrier: str) -> int:
    register = barrier.split(",")[-1].strip(" ;")
    return 256 if f"mov.u32 \t{register}, 256;" in text else 0


@pytest.mark.nvcc
@pytest.mark.parametrize("name", OTHERS)
def test_a_sample_of_mutants_of_other_kernels(name: str) -> None:
    path = next((kernels.ROOT / "kernels").glob(f"*/{name}.co"))
    compilation = kernels.compilation(path)
    text = toolchain.compile_ptx(toolchain.find(), kernels.cuda(path), compilation.include_directories)
    validator = kernels.validator(path)
    for mutant in list(mutants(text, validator.function))[::7]:
        assert validator.validate(mutant.text, first_only=True).problems, f"accepted: {mutant.kind}, {mutant.what}"
