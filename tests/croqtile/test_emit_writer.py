"""Lines, indentation, and where long ones break."""

from __future__ import annotations

from croqtile.emit.writer import WIDTH, Writer


def test_blocks_indent() -> None:
    out = Writer()
    with out.block("if (x)", note="line 3"):
        out.line("y();")
    assert out.text() == "if (x) {  // line 3\n  y();\n}\n"


def test_a_note_that_does_not_fit_is_left_out() -> None:
    out = Writer()
    out.noted("x" * (WIDTH - 3), "note")
    assert out.lines == ["x" * (WIDTH - 3)]


def test_calls_break_between_arguments() -> None:
    out = Writer(1)
    arguments = [f"argument_number_{i}" for i in range(12)]
    out.call("function", arguments)
    assert all(len(line) <= WIDTH for line in out.lines)
    assert len(out.lines) == 3
    assert "".join(line.strip() + " " for line in out.lines).strip() == f"function({', '.join(arguments)});"


def test_statements_break_before_operators() -> None:
    out = Writer()
    out.wrapped("value = " + "a" * 60 + " ? " + "b" * 60 + " : c;")
    assert out.lines == ["value = " + "a" * 60, "    ? " + "b" * 60 + " : c;"]


def test_what_cannot_break_stays_whole() -> None:
    out = Writer()
    out.wrapped("x" * 200)
    assert out.lines == ["x" * 200]
