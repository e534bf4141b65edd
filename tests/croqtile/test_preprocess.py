"""Preprocessing: which functions are active, what their tokens are and where they come from, what stays untouched."""

# ruff: noqa: E501  (program text in tables)
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from croqtile.diagnostics import CompileError
from croqtile.preprocess import CoFunction, SourceFile, preprocess

Golden = Callable[[str], None]


def read(directory: Path, text: str, *defines: str) -> SourceFile:
    path = directory / "kernel.co"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return preprocess(str(path), defines)


def text_of(function: CoFunction) -> str:
    return " ".join("".join(token.text for token in function.tokens).split())


def only(source: SourceFile) -> CoFunction:
    (function,) = source.all_functions()
    return function


def refused(directory: Path, text: str, *defines: str) -> str:
    with pytest.raises(CompileError) as error:
        read(directory, text, *defines)
    return error.value.rendered.replace(f"{directory}/", "")


# -- macros


@pytest.mark.parametrize(
    ("before", "body", "expanded"),
    [
        ("#define T 64", "T", "64"),
        ("#define T (2 * U)\n#define U 32", "T", "(2 * 32)"),
        ("#define SQ(x) ((x) * (x))", "SQ(a + 1)", "((a + 1) * (a + 1))"),
        ("#define CAT(a, b) a##b", "CAT(lhs, _s)", "lhs_s"),
        ("#define F(...) g(__VA_ARGS__)", "F(1, 2)", "g(1, 2)"),
        ("#define T 1\n#undef T", "T", "T"),
        ("#define T 1\n#undef T\n#define T 2", "T", "2"),
        ("#define T 1\n#define T 2", "T", "2"),
        ("#define T T", "T", "T"),
        ("#define EMPTY", "a EMPTY b", "a b"),
        ("#define LONG 1 + \\\n 2", "LONG", "1 + 2"),
        ("#if 2 * 3 == 6 && defined(NO) == 0\n#define T 7\n#endif", "T", "7"),
        ("#if defined(__CUDACC__) && __cplusplus >= 201703L\n#define T 7\n#endif", "T", "7"),
        ("#if defined(__has_include) && __has_include(<cuda_fp8.h>)\n#define T 7\n#endif", "T", "7"),
        (
            '#ifdef __has_include\n#if !__has_include("none.h") && __has_include("kernel.co")\n#define T 7\n#endif\n#endif',
            "T",
            "7",
        ),
        ("#ifdef NO\n#define T 1\n#elif 1\n#define T 2\n#else\n#define T 3\n#endif", "T", "2"),
        ("#if 0\n#if 1\n#define T 1\n#endif\n#else\n#define T 4\n#endif", "T", "4"),
        ("#define F(x) x", "F", "F"),
        ("#define ON 1\n#if ON\n#define T 5\n#endif", "T", "5"),
        ("#define T 1 // one\n#define U /* two */ 2", "T U", "1 2"),
    ],
)
def test_macros(tmp_path: Path, before: str, body: str, expanded: str) -> None:
    function = only(read(tmp_path, f"{before}\n__co__ void f() {{ {body} }}\n"))
    assert text_of(function) == f"__co__ void f() {{ {expanded} }}"


def test_a_macro_has_its_value_at_that_place(tmp_path: Path) -> None:
    source = read(tmp_path, "#define T 1\n__co__ void f() { T }\n#undef T\n#define T 2\n__co__ void g() { T }\n")
    assert [text_of(f) for f in source.functions] == ["__co__ void f() { 1 }", "__co__ void g() { 2 }"]


@pytest.mark.parametrize(
    ("text", "defines", "expanded"),
    [
        ("", ["T=3"], "3"),
        ("", ["T"], "1"),
        ("", ["T="], ""),
        ("#define T 4\n", ["T=3"], "4"),
        ("#ifndef T\n#define T 4\n#endif\n", ["T=3"], "3"),
        ("#ifndef T\n#define T 4\n#endif\n", [], "4"),
        ("", ["T=a=b"], "a=b"),
    ],
)
def test_defines_of_the_command_line(tmp_path: Path, text: str, defines: list[str], expanded: str) -> None:
    function = only(read(tmp_path, f"{text}__co__ void f() {{ T }}\n", *defines))
    assert text_of(function) == " ".join(f"__co__ void f() {{ {expanded} }}".split())


# -- places


def test_tokens_know_their_place(tmp_path: Path) -> None:
    text = "#define TILE 64\n#define TWICE(x) (2 * x)\n\n__co__ void f() {\n\tTILE + TWICE(y);  /* a\n b */ z }\n"
    places = {t.text: (t.span.line, t.span.column, t.span.length) for t in only(read(tmp_path, text)).tokens}
    assert places["f"] == (4, 13, 1)
    assert places["64"] == (5, 2, 4)  # the use of the macro, not its definition
    assert places["2"] == (5, 9, 5)
    assert places["z"] == (6, 7, 1)


def test_a_macro_may_hold_a_whole_function(tmp_path: Path) -> None:
    text = "#define MAKE(name) __co__ void name() { body }\nint a;\nMAKE(first)\nint b;\n"
    source = read(tmp_path, text)
    function = only(source)
    assert text_of(function) == "__co__ void first() { body }"
    assert source.text[function.start : function.end] == "MAKE(first)"


def test_macros_may_hold_parts_of_a_function(tmp_path: Path) -> None:
    text = "#define HEAD(n) __co__ void n()\n#define TAIL(x, y) x }\nHEAD(first) { TAIL((a), b) int c;\nHEAD(g) { }\nint d;\n"
    source = read(tmp_path, text)
    assert [text_of(f) for f in source.functions] == ["__co__ void first() { (a) }", "__co__ void g() { }"]
    assert [text[f.start : f.end] for f in source.functions] == ["HEAD(first) { TAIL((a), b)", "HEAD(g) { }"]


# -- functions


def test_inactive_functions_are_not_seen(tmp_path: Path) -> None:
    text = "#if 0\n__co__ void f() { }\n#else\n__co__ void g() { }\n#endif\n"
    assert text_of(only(read(tmp_path, text))) == "__co__ void g() { }"


@pytest.mark.parametrize(
    "host",
    [
        "// __co__ void f() {",
        "/* __co__\n void f() { */",
        'const char* s = "__co__ {";',
        "const char c = '\"'; // {",
        'auto r = R"(__co__ "void\' { )";',
        'auto r = R"x(__co__ )" )x";',
        "int n = 1'000'000;",
    ],
)
def test_host_code_may_mention_the_keyword(tmp_path: Path, host: str) -> None:
    source = read(tmp_path, f"{host}\n__co__ void g() {{ }}\n")
    assert text_of(only(source)) == "__co__ void g() { }"


def test_no_function(tmp_path: Path) -> None:
    assert read(tmp_path, "int main() { return 0; }\n").functions == ()


# -- what stays


def splice(source: SourceFile) -> str:
    return source.splice(lambda function: "<generated>", path="k.co")


def test_everything_else_stays(tmp_path: Path) -> None:
    text = '#include "missing.h"\n#include <gone>\n#pragma once\nint a;\n__co__ void f() { x }\nint main() {\n#include "part.inc"\n}\n'
    assert splice(read(tmp_path, text)) == (
        '#line 1 "k.co"\n#include "missing.h"\n#include <gone>\n#pragma once\nint a;\n'
        '\n<generated>\n#line 5 "k.co"\n\nint main() {\n#include "part.inc"\n}\n'
    )


def test_bytes_that_are_not_utf8_stay(tmp_path: Path) -> None:
    text = "\ufeff// caf\udce9\r\n__co__ void f() { }\r\nint b;\r\n"
    source = read(tmp_path, text)
    assert source.text == text
    assert splice(source) == (
        '#line 1 "k.co"\n// caf\udce9\r\n\n<generated>\n#line 2 "k.co"\n\r\nint b;\r\n'  # no byte-order mark
    )


def test_directives_inside_a_function_stay_for_host_code(tmp_path: Path) -> None:
    text = "__co__ void f() {\n#define T 64\n#ifdef NO\n  y\n#else\n  T\n#endif\n#pragma unroll\n}\nint t = T;\n"
    source = read(tmp_path, text)
    assert text_of(only(source)) == "__co__ void f() { 64 }"
    assert splice(source) == (
        '#line 1 "k.co"\n\n<generated>\n#define T 64\n#ifdef NO\n#else\n#endif\n#line 9 "k.co"\n\nint t = T;\n'
    )


def test_an_included_tile_program_is_opened(tmp_path: Path) -> None:
    (tmp_path / "base.co").write_text("__co__ void f() { STAGES }\nint h;\n")
    source = read(tmp_path, '#define STAGES 3\n#include "base.co"\nint after;\n')
    assert text_of(only(source)) == "__co__ void f() { 3 }"
    assert only(source).span.file == str(tmp_path / "base.co")
    assert set(source.sources()) == {str(tmp_path / "kernel.co"), str(tmp_path / "base.co")}
    assert splice(source) == (
        f'#line 1 "k.co"\n#define STAGES 3\n\n#line 1 "{tmp_path}/base.co"\n\n<generated>\n'
        f'#line 1 "{tmp_path}/base.co"\n\nint h;\n#line 3 "k.co"\nint after;\n'
    )


# -- mistakes


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("#if 1\n#error \"no 'such' tile\"\n#endif\n", id="error"),
        pytest.param("int a;\n  #ifdef X\n__co__ void f() { }\n", id="unterminated"),
        pytest.param("#if 1\n#else\n#else\n#endif\n", id="second-else"),
        pytest.param("#if 1\n#else\n#elif 1\n#endif\n", id="elif-after-else"),
        pytest.param("#endif\n", id="endif-alone"),
        pytest.param("#else\n", id="else-alone"),
        pytest.param("#if\n#endif\n", id="if-without-expression"),
        pytest.param("#if (1\n#endif\n", id="if-malformed"),
        pytest.param("#if 1 / 0\n#endif\n", id="if-division-by-zero"),
        pytest.param("#ifdef\n#endif\n", id="ifdef-without-name"),
        pytest.param("#ifndef 3\n#endif\n", id="ifndef-of-a-number"),
        pytest.param("#define\n", id="define-without-name"),
        pytest.param("#define 3 4\n", id="define-of-a-number"),
        pytest.param("#define A+B\n", id="define-without-space"),
        pytest.param("#define F(x\n", id="define-unclosed"),
        pytest.param("#define F(x, 3) x\n", id="define-bad-argument"),
        pytest.param("#undef\n", id="undef-without-name"),
        pytest.param("#frobnicate\n", id="unknown"),
        pytest.param("#include\n", id="include-without-name"),
        pytest.param('#include "none.co"\n', id="include-missing"),
        pytest.param('#include "kernel.co"\n', id="include-itself"),
        pytest.param("__co__ void f() {\n#include <x>\n}\n", id="include-in-function"),
        pytest.param("#define F(x, y) x\nint a = F(1);\n", id="macro-arguments"),
        pytest.param("__co__ void f() { if (x) { }\n", id="function-unclosed"),
        pytest.param("__co__ void f();\nint a;\n", id="function-without-body"),
        pytest.param("__co__", id="function-of-nothing"),
    ],
)
def test_refused(tmp_path: Path, golden: Golden, text: str) -> None:
    golden(refused(tmp_path, text))


def test_inactive_mistakes_do_not_count(tmp_path: Path) -> None:
    read(tmp_path, "#if 0\n#error no\n#frobnicate\n#define\n#if (\n#endif\n#endif\n")


@pytest.mark.parametrize("define", ["3=4", "", "A B=1", "=1", "F(x=1", "A=1\n2"])
def test_bad_define(tmp_path: Path, define: str) -> None:
    assert refused(tmp_path, "", define) == f"choreo: error: -D{define}: expected NAME or NAME=VALUE\n"


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as error:
        preprocess(str(tmp_path / "none.co"))
    assert error.value.rendered == f"choreo: error: cannot read {tmp_path}/none.co: no such file or directory\n"
    with pytest.raises(CompileError) as error:
        preprocess(str(tmp_path))
    assert "is a directory" in error.value.rendered
