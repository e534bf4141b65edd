"""The PTX of kernels against what was analysed."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from croqtile import cli, toolchain
from croqtile.driver import compile_file
from croqtile.validation.ptx import find_entry
from croqtile.validation.report import as_text
from croqtile.validation.validate import Validator, validate_file
from tests.croqtile.validation import kernels

FILES = sorted((kernels.ROOT / "kernels").glob("*/*.co"))


def test_the_kernel_is_the_analysed_program() -> None:
    result = kernels.validator().validate(kernels.module())
    assert result.problems == ()
    assert [row.role for row in result.roles] == ["producer", "consumer 1", "consumer 2"]
    assert result.overlaps == (("lhs_s", "out_s"),)
    assert result.roles[1].instructions["mma"] == 4 and result.roles[0].instructions["copy in"] == 2
    text = as_text(result)
    assert len(result.proofs) >= 6 and all(path.pair == ("lhs_s", "out_s") for path in result.proofs)
    assert "consumer 1: sync.wg 1, 2  (PTX " in text
    assert "lhs_s over out_s" in text and text.endswith("verdict: the code is the analysed program\n")


def test_the_same_code_with_another_placement_differs() -> None:
    """Code without overlap is not the program that was analysed with it, and the other way round."""
    other = kernels.validator(sala=False).validate(kernels.module())
    assert any("mma.store to out_s" in str(problem) for problem in other.problems)


@pytest.mark.parametrize(("number", "role"), [(0, "consumer 1"), (1, "producer")])
def test_a_longer_loop(number: int, role: str) -> None:
    """One iteration too many."""
    text = kernels.module()
    first = text.index("setp.lt.s32")
    position = first if number == 0 else text.index("setp.lt.s32", first + 1)
    found = kernels.problem(text[:position] + text[position:].replace("setp.lt", "setp.le", 1))
    assert found.startswith(f"{role}: the code acts without having compared its counter with cdiv(K, 64)")


def test_another_trip_count() -> None:
    """The loops run once per 32 columns: not the trip count that was analysed."""
    text = kernels.module()
    assert text.count(", 26;") >= 2
    wrong = text.replace(", 26;", ", 27;").replace(", 6;", ", 5;")
    assert "without having compared its counter with cdiv(K, 64)" in kernels.problem(wrong)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            "{64, 128}, CU_TENSOR_MAP",
            "{64, 64}, CU_TENSOR_MAP",
            "the code ends, but the program goes on with: tma.copy into",
        ),
        ("SWIZZLE_128B", "SWIZZLE_64B", "the tensor map swizzles by 64"),
        ("99328", "90112", "the buffers need 98304 bytes; 89216 are requested"),
    ],
)
def test_host_code_that_does_not_fit(old: str, new: str, why: str) -> None:
    """Boxes, layout and memory come from the host code of the generated file."""
    wrong = kernels.cuda().replace(old, new)
    assert wrong != kernels.cuda()
    problems = Validator(kernels.compilation().analyses[0], wrong).validate(kernels.module()).problems
    assert any(why in str(problem) for problem in problems), problems


@pytest.mark.nvcc
@pytest.mark.parametrize("sala", [True, False], ids=["overlap", "separate"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_kernel(path: Path, sala: bool) -> None:
    compilation = compile_file(path, {}, sala)
    if any(analysis.errors for analysis in compilation.analyses):
        assert not sala, "only without overlap may a kernel not fit"
        pytest.skip("does not fit without overlap")
    for result in validate_file(compilation, toolchain.find()):
        assert result.problems == ()
        assert result.instructions > 40 and all(row.instructions for row in result.roles)


@pytest.mark.nvcc
def test_the_fixture_is_up_to_date(request: pytest.FixtureRequest) -> None:
    """The kept PTX is what nvcc makes (of its own release)."""
    tools = toolchain.find()
    if tools.release != toolchain.PINNED_RELEASE:
        pytest.skip(f"nvcc {tools.release} makes other code")
    found = toolchain.compile_ptx(tools, kernels.cuda(), kernels.compilation().include_directories)
    if request.config.getoption("--update-golden"):
        kernels.FIXTURE.write_bytes(gzip.compress(kernels.trimmed(found).encode(), mtime=0))
        kernels.module.cache_clear()
    assert find_entry(found, kernels.FUNCTION)
    assert kernels.trimmed(found).splitlines()[6:] == kernels.module().splitlines()[6:], "write it: --update-golden"


@pytest.mark.nvcc
def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--validate", str(kernels.KERNEL)]) == cli.DONE
    assert "verdict: the code is the analysed program" in capsys.readouterr().out


def test_the_command_without_nvcc(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("NVCC", "/nowhere/nvcc")
    assert cli.main(["--validate", str(kernels.KERNEL)]) == cli.REFUSED
    assert "there is no nvcc at /nowhere/nvcc" in capsys.readouterr().err


def test_a_difference_refuses(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    broken = kernels.module().replace("fence.proxy.async.shared::cta;", "")
    monkeypatch.setattr("croqtile.validation.validate.compile_ptx", lambda *_: broken)
    monkeypatch.setattr("croqtile.toolchain.find", lambda: toolchain.Toolchain("nvcc", "test"))
    assert cli.main(["--validate", str(kernels.KERNEL)]) == cli.REFUSED
    out = capsys.readouterr().out
    assert "NOT SHOWN: producer: no proxy fence" in out and "the code is not shown to be the analysed program" in out
