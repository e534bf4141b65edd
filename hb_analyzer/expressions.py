"""Integer expressions as text: the inverse of ``str(IntExpr)``, for slots, trip counts and conditions in pattern files.

Grammar, loosest binding first (all operators associate to the left)::

    ||   &&   == !=   < <= > >=   + -   * / %   unary - and !   number | name | (expr) | cdiv|max|min(expr, expr)

``/`` and ``%`` floor. ``-x`` is ``0 - x`` and ``!x`` is ``x == 0``.
"""

from __future__ import annotations

import re

from .model import BinOp, Const, IntExpr, Name

_LEVELS = (("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"))
_FUNCTIONS = ("cdiv", "max", "min")
_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_][\w.]*)|(\|\||&&|==|!=|<=|>=|[-+*/%<>!(),]))")
_MAX_DEPTH = 50  # keeps hostile input from exhausting Python's stack


class ExpressionError(ValueError):
    """The text is not an integer expression; the message says where and why."""


def parse_expression(text: str) -> IntExpr:
    """The expression that ``text`` denotes. Raises ExpressionError."""
    return _Parser(text).parse()


def negation(expr: IntExpr) -> IntExpr:
    return BinOp("==", expr, Const(0))


def bare(expr: IntExpr) -> str:
    """``str(expr)`` without the parentheses around the whole."""
    text = str(expr)
    return text[1:-1] if isinstance(expr, BinOp) and text.startswith("(") else text


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if not match:
                raise ExpressionError(f'unexpected "{text[position:].strip()[0]}" in expression "{text}"')
            self.tokens.append(match.group().strip())
            position = match.end()
        self.next = 0
        self.depth = 0

    def parse(self) -> IntExpr:
        expr = self._binary(0)
        if self.next < len(self.tokens):
            raise ExpressionError(f'unexpected "{self.tokens[self.next]}" in expression "{self.text}"')
        return expr

    def _peek(self) -> str:
        return self.tokens[self.next] if self.next < len(self.tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self.next += 1
        return token

    def _expect(self, token: str) -> None:
        if self._take() != token:
            raise ExpressionError(f'missing "{token}" in expression "{self.text}"')

    def _binary(self, level: int) -> IntExpr:
        if level == len(_LEVELS):
            return self._unary()
        expr = self._binary(level + 1)
        while self._peek() in _LEVELS[level]:
            operator = self._take()
            expr = BinOp(operator, expr, self._binary(level + 1))
        return expr

    def _unary(self) -> IntExpr:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise ExpressionError(f"expression nested more than {_MAX_DEPTH} deep")
        try:
            if self._peek() == "-":
                self._take()
                return BinOp("-", Const(0), self._unary())
            if self._peek() == "!":
                self._take()
                return negation(self._unary())
            return self._atom()
        finally:
            self.depth -= 1

    def _atom(self) -> IntExpr:
        token = self._take()
        if token.isdigit():
            return Const(int(token))
        if token == "(":
            expr = self._binary(0)
            self._expect(")")
            return expr
        if token in _FUNCTIONS and self._peek() == "(":
            self._take()
            left = self._binary(0)
            self._expect(",")
            right = self._binary(0)
            self._expect(")")
            return BinOp(token, left, right)
        if re.fullmatch(r"[A-Za-z_][\w.]*", token):
            return Name(token)
        found = f'"{token}"' if token else "the end"
        raise ExpressionError(f'expected a number or a name, found {found} in expression "{self.text}"')
