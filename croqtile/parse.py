"""Tokens of a ``__co__`` function → syntax tree. The grammar is in ``grammar.lark``."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from croqtile import ast
from croqtile.build_ast import Builder, FunctionText
from croqtile.diagnostics import CompileError, StrayCharacter, SyntaxMistake
from croqtile.source import CoFunction


def parse(function: CoFunction) -> ast.Function:
    """The syntax tree of ``function``. Raises CompileError with one syntax error."""
    text = FunctionText(function)
    try:
        tree = _parser().parse(text.text)
    except UnexpectedInput as error:
        raise CompileError([_explain(error, text)]) from None
    result: ast.Function = Builder(text).transform(tree)
    return result


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, start="function", parser="lalr", lexer="contextual", propagate_positions=True, cache=_cache())


def _cache() -> str | bool:
    """A file beside this module's bytecode for the parser's tables, which take longer to build than to use.

    Lark builds them anew when the grammar, or lark itself, has changed. False where nothing can be written.
    """
    directory = Path(importlib.util.cache_from_source(__file__)).parent
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return str(directory / "grammar.lark.cache") if os.access(directory, os.W_OK) else False


# --------------------------------------------------------------------------------------------------------------
# Syntax errors in the language's words

_WORDS = {"NAME": "a name", "INT": "an integer", "FLOAT": "a number", "$END": "the end of the function"}
_CLASSES = {  # named terminals of several spellings
    "ROW_OR_COL": ("'row'", "'col'"),
    "REDUCTION": ("'reduce_max'", "'reduce_sum'"),
}
_OPERATORS = {"OR", "AND", "EQUALITY", "RELATION", "LESS", "MORE", "PLUS", "MINUS", "PRODUCT", "HASH", "QMARK"}
_CONTINUE_EXPRESSION = _OPERATORS | {"DOT", "LSQB"}
_START_EXPRESSION = {"NAME", "INT", "FLOAT", "LPAR", "MINUS", "NOT", "PLUS", "HASH", "__TO"}
_START_STATEMENT = {"PARALLEL", "FOREACH", "INTHREADS", "IF", "SHARED", "FRAGMENT", "WAIT", "TRIGGER", "TMA"}
_START_STATEMENT |= {"MMA", "FRAG", "SYNC", "CALL", "LAUNCH_BOUNDS", "NAME", "SEMICOLON", "LBRACE"}


def _expected(terminals: Iterable[str]) -> str:
    left, words = set(terminals), []
    if {"FOREACH", "WAIT"} <= left:
        left -= _START_STATEMENT
        words.append("a statement")
    if {"NAME", "INT", "LPAR"} <= left:
        left -= _START_EXPRESSION
        words.append("an expression")
    if {"PLUS", "PRODUCT"} <= left:
        left -= _CONTINUE_EXPRESSION
        if not left:
            words.append("an operator")
    words += sorted(word for terminal in left for word in _spellings(terminal))
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def _spellings(terminal: str) -> tuple[str, ...]:
    if terminal in _CLASSES:
        return _CLASSES[terminal]
    return (_WORDS.get(terminal) or f"'{_parser().get_terminal(terminal).pattern.value}'",)


def _explain(error: UnexpectedInput, text: FunctionText) -> StrayCharacter | SyntaxMistake:
    if isinstance(error, UnexpectedCharacters):
        token = text.tokens[text.at(error.pos_in_stream or 0)]
        return StrayCharacter(token.span, repr(token.text))
    assert isinstance(error, UnexpectedToken)
    accepts = error.accepts or error.expected
    expected = _expected(accepts)
    if error.token.type == "$END":
        end = text.tokens[-1].span
        return SyntaxMistake(end, expected, "the end of the function")
    start = error.token.start_pos or 0
    span = text.span(start, start + len(error.token))
    before = text.before(start)
    if "SEMICOLON" in accepts and "a statement" not in expected and before and before.line != span.line:
        span = before  # a forgotten semicolon shows best where it belongs
    written = text.tokens[text.at(start)].text  # of '+=', the grammar sees the '+' only
    return SyntaxMistake(span, expected, f"'{written if error.token in written else error.token}'")
