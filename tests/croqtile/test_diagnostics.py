"""Rendering: place, line, caret, notes; and the records themselves."""

from __future__ import annotations

import pytest

from croqtile import diagnostics as diag
from croqtile.diagnostics import base
from croqtile.ir import Span

TEXT = "first\n\tx = abc;\nläst line"
SOURCES = {"k.co": TEXT}


def rendered(*problems: diag.Diagnostic, sources: dict[str, str] = SOURCES) -> str:
    return diag.render(problems, sources)


def test_place_line_and_caret() -> None:
    assert rendered(diag.UnknownName(Span("k.co", 1, 3, 2), "rs")) == (
        "k.co:1:3: error: unknown name 'rs'\n    1 | first\n      |   ^~\n"
    )


def test_a_tab_stays_a_tab_under_the_line() -> None:
    assert rendered(diag.UnknownName(Span("k.co", 2, 6, 3), "abc")) == (
        "k.co:2:6: error: unknown name 'abc'\n    2 | \tx = abc;\n      | \t    ^~~\n"
    )


def test_the_caret_stays_inside_the_line() -> None:
    assert rendered(diag.DivisionByZero(Span("k.co", 1, 5, 100))).endswith("first\n      |     ^\n")
    assert rendered(diag.DivisionByZero(Span("k.co", 1, 6, 1))).endswith("first\n      |      ^\n")


@pytest.mark.parametrize("span", [Span("other.co", 1, 1), Span("k.co", 9, 1)])
def test_a_line_that_is_not_there_is_left_out(span: Span) -> None:
    assert rendered(diag.DivisionByZero(span)) == f"{span}: error: division by zero\n"


def test_no_place() -> None:
    assert rendered(diag.BadDefine(None, "3")) == "choreo: error: -D3: expected NAME or NAME=VALUE\n"


def test_notes_and_details_follow() -> None:
    note = diag.Note(Span("k.co", 3, 1, 4), "here")
    problem = diag.SharedMemoryOutOfBound(Span("k.co", 1, 1), "f", 9, 1, 8, ("row",), notes=(note,))
    lines = rendered(problem).splitlines()
    assert lines[3:] == ["k.co:3:1: note: here", "    3 | läst line", "      | ^~~~", "  row"]


def test_warnings_say_so() -> None:
    assert rendered(diag.ArrivalMismatch(Span("k.co", 1, 1), "two")).startswith("k.co:1:1: warning: two;")


def test_counts_have_plurals() -> None:
    assert diag.WrongBoundCount(None, 1, 2).message == "1 name, but 2 bounds"


def test_records_compare_by_content_and_need_all_fields() -> None:
    span = Span("k.co", 1, 1)
    assert diag.UnknownName(span, "a") == diag.UnknownName(span, name="a")
    assert len({diag.UnknownName(span, "a"), diag.UnknownName(span, "a"), diag.UnknownName(span, "b")}) == 2
    assert diag.UnknownName(span, "a") != diag.DivisionByZero(span)
    assert repr(diag.BadDefine(None, "x")) == "BadDefine(span=None, text='x')"
    with pytest.raises(TypeError, match="UnknownName takes span, name"):
        diag.UnknownName(span)  # type: ignore[call-arg]


def test_every_kind_fills_its_template() -> None:
    """Placeholders are fields, and every field but the place is said."""
    kinds = [kind for kind in vars(diag).values() if isinstance(kind, type) and issubclass(kind, diag.Diagnostic)]
    assert len(kinds) > 80
    for kind in kinds:
        if kind is diag.Diagnostic:
            continue
        placeholders = {name for _, name, _, _ in base._Plural().parse(kind.template) if name}
        fields = set(kind._names) - {"span", "table"}
        assert placeholders == fields, kind.__name__


def test_compile_error_is_readable_as_an_exception() -> None:
    error = diag.CompileError([diag.UnknownName(Span("k.co", 1, 1, 5), "first"), diag.BadDefine(None, "3")], SOURCES)
    assert str(error).splitlines() == ["k.co:1:1: unknown name 'first'", "choreo: -D3: expected NAME or NAME=VALUE"]
    assert error.rendered.count("error:") == 2
