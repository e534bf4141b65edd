"""The device kernel as a whole: what a person reads, and what the two modes have in common."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import tile
from emitting import device, plan_of

from croqtile.emit.device import emit_device, emit_wrappers

KERNELS = sorted((Path(__file__).resolve().parents[2] / "kernels").glob("*/*.co"))


def test_gemm(tmp_path: Path, golden: Callable[[str], None]) -> None:
    golden(device(tmp_path, tile.GEMM))


def test_softmax(tmp_path: Path, golden: Callable[[str], None]) -> None:
    golden(device(tmp_path, tile.SOFTMAX))


def without_offsets(text: str) -> str:
    """The kernel's text without byte offsets of the placement."""
    text = re.sub(r"memory_( \+ \d+)?;  // .*", "memory_ + …", text)
    return re.sub(r"\d+ bytes of shared memory for buffers, \d+ requested", "…", text)


@pytest.mark.parametrize("program", [tile.GEMM, tile.SOFTMAX], ids=["gemm", "softmax"])
def test_modes_differ_in_offsets_only(tmp_path: Path, program: str) -> None:
    base, sala = (device(tmp_path, program, sala) for sala in (False, True))
    assert base != sala
    assert without_offsets(base) == without_offsets(sala)


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_modes_of_the_kernels_differ_in_offsets_only(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    base, sala = (device_of(path, sala) for sala in (False, True))
    assert without_offsets(base) == without_offsets(sala)


def device_of(path: Path, sala: bool) -> str:
    from croqtile.analyse import analyse
    from croqtile.emit.planning import make_plan
    from croqtile.frontend import load

    (kernel,) = load(str(path)).kernels
    return emit_device(make_plan(kernel, analyse(kernel, sala).placement))[0]


def test_lines_are_short(tmp_path: Path) -> None:
    for path in KERNELS:
        text = device_of(path, True)
        assert not [line for line in text.splitlines() if len(line) > 120]


def test_wrappers_of_several_kernels_once(tmp_path: Path) -> None:
    _, first = emit_device(plan_of(tmp_path, tile.GEMM))
    _, second = emit_device(plan_of(tmp_path, tile.SOFTMAX))
    text = emit_wrappers([*first, *second, *first])
    names = re.findall(r"void (wgmma_\w+)\(", text)
    assert names == sorted(names)
    assert len(names) == len(set(names)) == 3


def test_grid_dimensions_follow_the_program(tmp_path: Path) -> None:
    text = device(tmp_path, tile.GEMM)
    assert "const int bm = blockIdx.x;" in text
    assert "const int bn = blockIdx.y;" in text


def test_launch_bounds(tmp_path: Path) -> None:
    assert "__launch_bounds__(384) __choreo_device_gemm(" in device(tmp_path, tile.GEMM)
    asked = tile.edited(
        tile.GEMM, [("shared f16 [128, 64] lhs_s[4];", "launch_bounds(1); shared f16 [128, 64] lhs_s[4];")]
    )
    assert "__launch_bounds__(384, 1) __choreo_device_gemm(" in device(tmp_path, asked)


def test_cluster(tmp_path: Path, golden: Callable[[str], None]) -> None:
    program = (Path(__file__).parent / "forms" / "cluster.co").read_text()
    golden(device(tmp_path, program[program.index("__co__") : program.index("int main")]))
