"""The PTX of kernels against what was analysed."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from croqtile import cli, toolchain
from croqtile.driver import compile_file, generate
from croqtile.validation.mutants import mutants, units
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
    assert "consumer 1: sync.wg 1, 2  (PTX " in text and text.count("lhs_s and out_s are ordered by\n") == 1
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
        ("SWIZZLE_128B", "SWIZZLE_NONE", "the tensor map swizzles by 0, lhs_s is laid out by 128"),
        ("{64, 64}, CU_TENSOR_MAP_SWIZZLE_128B", "{64, 64}, CU_TENSOR_MAP_SWIZZLE_NONE", "swizzles by 0, out_s"),
        ("SWIZZLE_128B", "SWIZZLE_64B", "the rows of the tensor map lhs_map have 128 bytes, its swizzle 64"),
        ("TYPE_FLOAT16", "TYPE_FLOAT32", "elements of type FLOAT32, which are not 2 bytes wide"),
        ("static_cast<int>(K),", "static_cast<int>(N),", "is K, but N is passed"),
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


_UNKNOWN = "ld.global.u32 \t%r599, [%rd6];\n\tsetp.eq.s32 \t%p15, %r599, 0;\n"
_COMMIT = "wgmma.commit_group.sync.aligned;\n\t// end inline asm\n"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (_COMMIT, f"{_COMMIT}\t$L_more:\n\tbra $L_more;\n", "a loop that nothing ends"),
        (
            _COMMIT,
            f"{_COMMIT}{_UNKNOWN}@%p15 bra \t$L_more;\n\tbarrier.cta.sync.aligned %r106, 128;\n\t$L_more:\n",
            "the warps do not meet equally often on all paths",
        ),
        ("{%r647, ", "{%r106, ", "is not recovered"),
        ("{%r647, ", "{%r648, ", "is not recovered"),
    ],
    ids=["endless", "meeting of some threads", "matrix result over a barrier's number", "matrix result over parities"],
)
def test_changes_of_more_than_one_operation(old: str, new: str, why: str) -> None:
    text = kernels.module()
    assert old in text
    assert why in kernels.problem(text.replace(old, new, 1))


def test_barriers_of_one_meeting_have_one_number() -> None:
    """Else the two warpgroups would wait for each other forever."""
    text = kernels.module()
    found = next(
        match
        for match in re.finditer(r"barrier\.cta\.sync\.aligned (%r\d+), (%r\d+)", text)
        if f"mov.u32 \t{match[2]}, 256;" in text
    )
    start = text.rindex("\t// begin", 0, found.start())
    wrong = f"{text[:start]}\tadd.s32 \t%r600, %r1, 8;\n{text[start : found.start(1)]}%r600{text[found.end(1) :]}"
    assert re.search(r"sync\.wg 1, 2.* meet at barrier 9 and at barrier 10", kernels.problem(wrong))


LONE = """
__co__ void kernel(global f16 [M, K] lhs, global f16 [N, K] rhs, global f16 [M, N] output) {
  parallel {bm, bn} by [cdiv(M, 64), cdiv(N, 64)] : block {
    shared f16 [64, 64] lhs_s, rhs_s, dead_s;
    shared event full;
    parallel p by 1 : group-4, t by 128 : thread {
      inthreads.async (p == 0) {
        acc = mma.fill.f32 0.0f;
        foreach {k} in [cdiv(K, 64)] {
          tma.copy.async<full>.swiz<128> lhs.subspan(64, 64).at(bm, k) => lhs_s;
          tma.copy.async<full>.swiz<128> rhs.subspan(64, 64).at(bn, k) => rhs_s;
          trigger full;
          wait full;
          a = mma.load.swiz<128> lhs_s;
          b = mma.load.swiz<128> rhs_s;
          mma.row.row acc, a, b;
          mma.commit;
        }
        mma.store acc, dead_s;
        mma.store acc, lhs_s;
        tma.copy lhs_s => output.subspan(64, 64).at(bm, bn);
      }
    }
  }
}
"""


@pytest.mark.nvcc
def test_meetings_of_one_warpgroup(tmp_path: Path) -> None:
    """A warpgroup that copies in over what its own matrix instructions read, and stores twice to the same bytes."""
    path = tmp_path / "lone.co"
    path.write_text(LONE)
    compilation = compile_file(path, {}, True)
    validator = Validator(compilation.analyses[0], generate(compilation))
    text = toolchain.compile_ptx(toolchain.find(), generate(compilation), compilation.include_directories)
    assert validator.validate(text).problems == ()
    meetings = [unit for unit in units(text, validator.function) if unit.kind == "sync" and "barrier" in unit.text]
    fates = [validator.validate(text[: unit.start] + text[unit.end :]).problems for unit in meetings]
    before_copies, before_trigger, *before_stores_and_copy_out = fates
    assert "have not met since they used shared memory: tma.copy into lhs_s" in str(before_copies[0])
    assert not before_trigger  # the copies are the leader's own
    assert len(before_stores_and_copy_out) == 3 and all(before_stores_and_copy_out)


def test_any_warpgroup_may_come_first() -> None:
    good, bad = kernels.module(), kernels.module().replace("wgmma.wait_group.sync.aligned 0", "", 1)
    for order in ((2,), (1, 0), (2, 1, 0)):
        assert not kernels.validator().validate(good, order=order).problems
        assert kernels.validator().validate(bad, first_only=True, order=order).problems
    assert [row.warpgroup for row in kernels.validator().validate(good, order=(2,)).roles] == [2, 0, 1]


def test_answers_do_not_depend_on_what_was_validated_before() -> None:
    """Much is kept from one module to the next, and some of it from one kernel to another."""
    modules = [kernels.module(), *(mutant.text for mutant in list(mutants(kernels.module(), kernels.FUNCTION))[::12])]
    cases = [(sala, text) for text in modules for sala in (True, False)]
    validators = {sala: kernels.validator(sala=sala) for sala in (True, False)}
    answers = [validators[sala].validate(text) for sala, text in cases]
    assert [validators[sala].validate(text) for sala, text in reversed(cases)] == answers[::-1]
    assert len({str(answer.problems) for answer in answers}) > len(modules)
