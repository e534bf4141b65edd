"""Programs that stand for the same kernel with one thing changed differ in exactly that, comments aside."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import pytest

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
MATMUL, ATTENTION = "matmul/matmul_f16_dyn_sm90_warpspec_", "flash_atten/fa_"


def code(name: str) -> list[str]:
    """The lines of a program without comments and blank lines."""
    text = (KERNELS / f"{name}.co").read_text(encoding="utf-8")
    lines = (re.sub(r"\s*//.*", "", line) for line in text.splitlines())
    return [line.strip() for line in lines if line.strip()]


@pytest.mark.parametrize(
    ("base", "variant", "difference"),
    [
        (
            f"{MATMUL}1p1c_64x128_4s",
            f"{MATMUL}1p1c_64x128_3s",
            [
                "-#define MATMUL_STAGES 4",
                "+#define MATMUL_STAGES 3",
                "-foreach {s} in [MATMUL_STAGES - 1] trigger empty[s];",
                "+foreach {s} in [MATMUL_STAGES] trigger empty[s];",
                "+trigger empty[stage];",
                "-mma.wait<1>;",
                "-trigger empty[(k + MATMUL_STAGES - 1) % MATMUL_STAGES];",
            ],
        ),
        (f"{MATMUL}1p3c", f"{MATMUL}1p3c_nobarrier", ["-sync.wg 1, 2, 3;"]),
        (f"{ATTENTION}tuned_1p2c", f"{ATTENTION}tuned_1p2c_nobarrier", ["-sync.wg 1, 2;"]),
        (
            f"{MATMUL}1p2c",
            f"{MATMUL}1p3c",
            [
                "-#define MATMUL_TILE_M 128",
                "+#define MATMUL_TILE_M 192",
                "-#define MATMUL_STAGES 3",
                "+#define MATMUL_STAGES 2",
                "-parallel {bm, bn} by [cdiv(M, MATMUL_TILE_M), cdiv(N, MATMUL_TILE_N)] : block {",
                "+parallel {bn, bm} by [cdiv(N, MATMUL_TILE_N), cdiv(M, MATMUL_TILE_M)] : block {",
                "-sync.wg 1, 2;",
                "+sync.wg 1, 2, 3;",
            ],
        ),
    ],
)
def test_variants_differ_in_one_thing(base: str, variant: str, difference: list[str]) -> None:
    changes = difflib.ndiff(code(base), code(variant))
    assert [line[0] + line[2:] for line in changes if line[0] in "+-"] == difference


def test_three_stages_of_attention_are_the_tuned_program() -> None:
    assert code(f"{ATTENTION}3s") == ["#define STAGES 3", '#include "fa_tuned_1p2c.co"']
