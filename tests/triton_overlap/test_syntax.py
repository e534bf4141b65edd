"""The grammar: what it reads, and that it refuses the rest."""

from __future__ import annotations

import pytest

from tests.triton_overlap.conftest import Text
from triton_overlap.errors import RefusedError
from triton_overlap.syntax import parse_for, parse_module, split_types, walk

MODULE = """#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32} {
  tt.func public @kernel(%n: i32 {tt.divisibility = 16 : i32}, %p: !tt.ptr<f16>) attributes {noinline = false} {
    %c0_i32 = arith.constant 0 : i32
    %0:2 = scf.for %i = %c0_i32 to %n step %c0_i32 iter_args(%a = %c0_i32, %b = %n) -> (i32, i32)  : i32 {
      scf.yield %a, %b : i32, i32
    }
    tt.return
  }
}
"""


def test_a_small_module() -> None:
    module = parse_module(MODULE)
    body = module.function.regions[0]
    assert body.args == [("%n", "i32"), ("%p", "!tt.ptr<f16>")]
    assert [op.name for op in walk(body)] == ["arith.constant", "scf.for", "scf.yield", "tt.return"]
    loop = body.ops[1]
    assert loop.results == ["%0#0", "%0#1"] and (loop.line, loop.last) == (4, 6)
    header = parse_for(loop)
    assert (header.iv, header.lower, header.upper) == ("%i", "%c0_i32", "%n")
    assert header.inits == (("%a", "%c0_i32"), ("%b", "%n")) and header.types == ("i32", "i32")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("tt.return", "what is this", "`what is this` is not understood"),
        ("scf.for %i", "scf.while %i", "a region that is not understood"),
        ("tt.func public", "tt.func private", "is not understood"),
        ("}\n}\n", "}\n  tt.func public @other() {\n  tt.return\n  }\n}\n", "is not understood"),
        ("    tt.return\n  }\n}\n", "    tt.return\n", "ends in the middle"),
    ],
)
def test_what_is_not_understood_is_refused(old: str, new: str, reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        parse_module(MODULE.replace(old, new))


def test_types_with_commas_in_them() -> None:
    assert split_types("tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>, i64") == [
        "tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>",
        "i64",
    ]
    assert split_types("(i32, f32) -> i32, i1") == ["(i32, f32) -> i32", "i1"]
    assert split_types("") == []


def test_partitions_of_a_kernel(ttgir_of: Text) -> None:
    function = parse_module(ttgir_of("attention")).function
    region = next(op for op in walk(function.regions[0]) if op.name == "ttg.warp_specialize")
    assert [part.warps for part in region.regions] == [0, 4, 4]
    assert [part.isolated for part in region.regions] == [False, True, True]
