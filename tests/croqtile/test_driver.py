from pathlib import Path

import pytest

from croqtile.diagnostics import CompileError
from croqtile.driver import compile_file, generate
from croqtile.dump import dump

TWO = """\
// first line
#define ROWS 64
__co__ void one(global f16 [M, 64] data) {
  parallel {bm} by [cdiv(M, ROWS)] : block {
    shared f16 [ROWS, 64] tile_s;
    parallel p by 1 : group-4 {
      inthreads.async (p == 0) {
        fragment f32[ROWS, 64] value {0.0f};
        mma.store value, tile_s;
        tma.copy tile_s => data.subspan(ROWS, 64).at(bm, 0);
      }
    }
  }
}
int between() { return ROWS; }  // line 15
__co__ void two(global f16 [M, 64] data) {
  parallel {bm} by [cdiv(M, ROWS)] : block {
    shared f16 [ROWS, 64] tile_s[2];
    parallel p by 1 : group-4 {
      inthreads.async (p == 0) {
        fragment f32[ROWS, 64] value {0.0f};
        mma.store value, tile_s[1];
        tma.copy tile_s[1] => data.subspan(ROWS, 64).at(bm, 0);
      }
    }
  }
}
int main() { return between(); }  // line 28
"""


@pytest.fixture
def two(tmp_path):
    path = tmp_path / "two.co"
    path.write_text(TWO)
    return path


def line_of(source, text, path):
    """The place in the user's file that a compiler would report for the line with ``text``."""
    number, file = 0, ""
    for line in source.splitlines():
        if line.startswith("#line "):
            number, file = int(line.split()[1]) - 1, line.split('"')[1]
            continue
        number += 1
        if text in line:
            assert file == str(path)
            return number
    raise AssertionError(f"no {text!r} in the source")


def test_every_kernel_is_analysed_in_order(two):
    compilation = compile_file(two, {})
    assert [analysis.kernel.name for analysis in compilation.analyses] == ["one", "two"]
    assert [analysis.bytes for analysis in compilation.analyses] == [8192, 16384]


def test_the_users_text_stays_and_keeps_its_lines(two):
    source = generate(compile_file(two, {}))
    assert "__co__" not in source
    assert line_of(source, "// first line", two) == 1
    assert line_of(source, "int between()", two) == 15
    assert line_of(source, "int main()", two) == 28
    assert source.index("__choreo_device_one") < source.index("int between()") < source.index("__choreo_device_two")


def test_the_prelude_comes_before_the_first_line_and_macros_before_it(two):
    source = generate(compile_file(two, {"DEBUG": "1", "TWICE(x)": "((x) * 2)"}))
    assert source.startswith(
        "#ifndef DEBUG\n#define DEBUG 1\n#endif\n#ifndef TWICE\n#define TWICE(x) ((x) * 2)\n#endif\n"
    )
    assert source.index("namespace choreo") < source.index("// first line")


def test_both_modes_differ_only_in_offsets(two):
    path = Path(__file__).parents[2] / "kernels" / "matmul" / "matmul_f16_dyn_sm90_warpspec_1p2c.co"
    one, other = (generate(compile_file(path, {}, sala)).splitlines() for sala in (True, False))
    assert len(one) == len(other)
    changed = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
    assert changed
    for a, b in changed:
        assert "".join(c for c in a if not c.isdigit()) == "".join(c for c in b if not c.isdigit()) or "memory_" in a


def test_what_the_front_end_refuses_is_raised(two):
    two.write_text(TWO.replace("tile_s;", "tile_s", 1))
    with pytest.raises(CompileError):
        compile_file(two, {})


def test_included_co_files_give_their_kernels_and_directories(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "two.co").write_text(TWO)
    outer = tmp_path / "outer.co"
    outer.write_text('#include "inner/two.co"\n')
    compilation = compile_file(outer, {})
    assert [analysis.kernel.name for analysis in compilation.analyses] == ["one", "two"]
    assert compilation.include_directories == (tmp_path, inner)
    assert "__choreo_device_two" in generate(compilation)


@pytest.mark.parametrize("name", ["parse", "check", "lower", "analyse", "emit"])
def test_dumps(two, name):
    text = dump(compile_file(two, {}), name)
    assert text.startswith(f"// {name}: {two}\n")
    assert text.count("two") > 1
