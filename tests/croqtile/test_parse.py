"""The grammar: what it makes of programs, and syntax errors in the language's words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from croqtile import ast
from croqtile.dump import tree
from croqtile.parse import parse
from croqtile.preprocess import preprocess
from tests.croqtile.tile import GEMM, SOFTMAX, Edits, edited, messages, write

Golden = Callable[[str], None]


def parsed(directory: Path, text: str) -> ast.Function:
    return parse(preprocess(write(directory, text)).functions[0])


def expression(directory: Path, text: str) -> str:
    function = parsed(directory, f"__co__ void f() {{ x = {text}; }}")
    assign = function.body[0]
    assert isinstance(assign, ast.Assign)
    return spelled(assign.value)


def spelled(e: object) -> str:
    """With all parentheses."""
    if isinstance(e, ast.Name):
        return e.name
    if isinstance(e, ast.Integer):
        return str(e.value)
    if isinstance(e, ast.Floating):
        return e.text
    if isinstance(e, ast.Binary):
        return f"({spelled(e.left)} {e.op} {spelled(e.right)})"
    if isinstance(e, ast.Join):
        return f"({spelled(e.left)} # {spelled(e.right)})"
    if isinstance(e, ast.Prefix):
        return f"({e.op}{spelled(e.operand)})"
    if isinstance(e, ast.UpperBound):
        return f"#{e.name.name}"
    if isinstance(e, ast.Select):
        return f"({spelled(e.condition)} ? {spelled(e.yes)} : {spelled(e.no)})"
    if isinstance(e, ast.Index):
        return f"{spelled(e.base)}[{spelled(e.index)}]"
    if isinstance(e, ast.Method):
        return f"{spelled(e.base)}.{e.name.name}({', '.join(map(spelled, e.arguments))})"
    if isinstance(e, ast.FunctionCall):
        return f"{e.function.name}({', '.join(map(spelled, e.arguments))})"
    assert isinstance(e, ast.Convert)
    return f"__to<{e.target.name}>({spelled(e.operand)})"


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a + b * c - d", "((a + (b * c)) - d)"),
        ("a - b - c", "((a - b) - c)"),
        ("a * b / c % d", "(((a * b) / c) % d)"),
        ("a < b == c > d", "((a < b) == (c > d))"),
        ("a <= b && c >= d || !e", "(((a <= b) && (c >= d)) || (!e))"),
        ("a ? b : c ? d : e", "(a ? b : (c ? d : e))"),
        ("-a * +b", "((-a) * (+b))"),
        ("- -1", "(-(-1))"),
        ("stage * (#p - 1) + p - 1", "(((stage * (#p - 1)) + p) - 1)"),
        ("a # b * 2", "((a # b) * 2)"),
        ("a # b # c", "((a # b) # c)"),
        ("a # #p", "(a # #p)"),
        ("x[s].subspan(1, _).step(2, 3).at(i + 1, 0).sqz()", "x[s].subspan(1, _).step(2, 3).at((i + 1), 0).sqz()"),
        ("cdiv((bm + 1) * 64, 128)", "cdiv(((bm + 1) * 64), 128)"),
        ("__to<bf16>(x.at(i, j) * 2.5e-3f)", "__to<bf16>((x.at(i, j) * 2.5e-3f))"),
        ("0x1F + 10u + 010 + 1.0 + .5f + 1e3", "(((((31 + 10) + 8) + 1.0) + .5f) + 1e3)"),
        ("-inf", "(-inf)"),
        ("(a)", "a"),
        ("wait_ + trigger1 + at", "((wait_ + trigger1) + at)"),
    ],
)
def test_expressions(tmp_path: Path, text: str, meaning: str) -> None:
    assert expression(tmp_path, text) == meaning


@pytest.mark.parametrize("program", [GEMM, SOFTMAX], ids=["gemm", "softmax"])
def test_trees(tmp_path: Path, golden: Golden, program: str) -> None:
    golden("\n".join(tree(parsed(tmp_path, program))))


def test_further_forms(tmp_path: Path, golden: Golden) -> None:
    text = """__co__ void f(f16 [2] a) {
  parallel.async {c} by [2] : cluster, {i} by [3] : block {
    parallel p by 2 : group-4 {
      inthreads (p == 0) { trigger.cluster e, f[1]; }
      inthreads.async (p == 1) tma.copy.swiz<64>.multicast.async<e> a => b;
      foreach {i, j} in [2, 3] { ; }
      foreach k in 4 wait e;
      if (i) { x = 1; } else if (j) y = 2; else { }
      { z = 3; }
      call g(); call h(x, a.subspan(1).at(0));
      mma.row.col c, a, b; mma.wait<1>; sync.shared;
      fragment f32[64] v {-inf}, w; frag.copy v, w; frag.reduce_sum m, v, 1;
    }
  }
}
"""
    golden("\n".join(tree(parsed(tmp_path, text))))


def test_spans_cover_what_they_mean(tmp_path: Path) -> None:
    function = parsed(tmp_path, "#define T 64\n__co__ void f() {\n  x = a.subspan(T,\n      T).at(0, k + T);\n}\n")
    assign = function.body[0]
    assert isinstance(assign, ast.Assign) and isinstance(assign.value, ast.Method)
    assert (assign.span.line, assign.span.column, assign.span.length) == (3, 3, 16)  # to the end of its line
    last = assign.value.arguments[1]
    assert (last.span.line, last.span.column, last.span.length) == (4, 16, 5)


CASES: dict[str, Edits] = {
    "semicolon": [("wait empty[stage];", "wait empty[stage]")],
    "semicolon-on-the-same-line": [("trigger full[stage];", "trigger full[stage] trigger done;")],
    "expression": [("stage = k % 4", "stage = k %")],
    "statement": [("wait empty[stage];", "42;")],
    "arrow": [("=> lhs_s[stage]", "-> lhs_s[stage]")],
    "target": [("=> lhs_s[stage]", "=> ")],
    "bracket": [("wait empty[stage];", "wait empty[stage;")],
    "parenthesis": [("cdiv(K, 64)", "cdiv(K, 64")],
    "by": [("parallel p by 3", "parallel p in 3")],
    "level": [(" : block {", " {")],
    "condition": [("inthreads.async (p > 0)", "inthreads.async p > 0")],
    "layout": [("mma.row.row", "mma.row.diagonal")],
    "reduction": [("mma.commit;", "frag.reduce_min a, b, 1;")],
    "mma": [("mma.commit;", "mma.commot;")],
    "sync": [("sync.wg 1, 2;", "sync.warp 1, 2;")],
    "copy": [("tma.copy out_s", "tma.move out_s")],
    "return": [("mma.commit;", "frag.apply acc, [](i, j) { acc.at(i, j); };")],
    "character": [("stage = k % 4", "stage = k @ 4")],
    "string": [("stage = k % 4", 'stage = "four"')],
    "increment": [("stage = k % 4", "stage += 1")],
    "assignment-to-element": [("stage = k % 4", "stage[0] = 1")],
    "call-without-keyword": [("stage = k % 4", "f(k)")],
    "parameter": [("global f16 [N, K] rhs,", "global f16 [N, K],")],
    "octal": [("stage = k % 4", "stage = k % 08")],
    "nothing": [(GEMM, "__co__ void gemm() ; {}")],
    "missing-brace": [
        ("        }\n      }\n      inthreads.async (p > 0)", "        }\n      inthreads.async (p > 0)"),
        ("    }\n  }\n}\n", "    }\n  }\n}}\n"),
    ],
    "in-a-macro": [("__co__ void", "#define TILE 64 64\n__co__ void"), ("cdiv(K, 64)", "cdiv(K, TILE)")],
}


@pytest.mark.parametrize("edits", CASES.values(), ids=CASES)
def test_refused(tmp_path: Path, golden: Golden, edits: Edits) -> None:
    golden(messages(tmp_path, edited(GEMM, edits)))
