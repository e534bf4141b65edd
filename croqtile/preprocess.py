"""From the text of a ``.co`` file to the tokens of its ``__co__`` functions, after C preprocessing.

The preprocessor language applies to the whole file, because host code and functions share macros. Only the functions
are taken out; :meth:`croqtile.source.SourceFile.splice` puts generated code in their place.
Every token knows its place in the user's file; what comes out of a macro is placed at the use of the macro.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pcpp  # type: ignore[import-untyped]

from croqtile.diagnostics import (
    BadDefine,
    BadDirective,
    CompileError,
    Diagnostic,
    MacroMisuse,
    UnreadableFile,
    UnterminatedConditional,
    UnterminatedFunction,
    UserError,
)
from croqtile.ir import Span
from croqtile.source import CoFunction, SourceFile, Token

__all__ = ["CoFunction", "SourceFile", "Token", "preprocess"]

KEYWORD = "__co__"
_KEPT_DIRECTIVES = {"define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif"}
_FOREIGN_DIRECTIVES = {"pragma", "include_next", "line", "warning", "ident", "sccs", "import", "embed"}
_HAS_INCLUDE = "__has_include"
_RAW_STRING = re.compile(r'\bu?8?[uUL]?R"([^()\\\s"]{0,16})\((.*?)\)\1"', re.DOTALL)


def preprocess(path: str, defines: Iterable[str] = ()) -> SourceFile:
    """Reads and preprocesses ``path``.

    ``defines``: ``NAME`` or ``NAME=VALUE`` each, as after ``-D``. Raises CompileError.
    """
    machine = _Machine()
    for text in defines:
        machine.define_from_command_line(text)
    try:
        source = machine.read(path, None)
    except CompileError as error:
        raise CompileError(error.diagnostics, machine.texts) from None
    if machine.diagnostics:
        raise CompileError(machine.diagnostics, machine.texts)
    return source


@dataclass
class _Conditional:
    """One open #if: ``outer`` is whether the text around it is active, ``taken`` whether a branch was."""

    directive: str
    span: Span
    outer: bool
    taken: bool
    seen_else: bool = False


@dataclass
class _Line:
    """A logical line of preprocessing tokens; ``start`` to ``end`` are its characters."""

    tokens: list[Any] = field(default_factory=list)
    start: int = 0
    end: int = 0


class _Machine(pcpp.Preprocessor):  # type: ignore[misc]
    """pcpp's macro table, expansion and expressions, under our own treatment of lines.

    The ``source`` attribute of every token is its Span. pcpp hands it on to whatever a macro expands to, so that
    it names the use of the macro.
    """

    def __init__(self) -> None:
        super().__init__()
        self.diagnostics: list[Diagnostic] = []
        self.open_files: list[str] = []
        self.texts: dict[str, str] = {}  # of every file read, by path
        for known in ("__cplusplus 201703L", "__CUDACC__ 1", "__NVCC__ 1"):  # what the rest of the file will meet
            self.define(known)

    def on_error(self, file: Any, line: int, msg: str) -> None:
        """pcpp reports here; ``file`` is the token's ``source``."""
        self.diagnostics.append(MacroMisuse(file if isinstance(file, Span) else None, msg[:1].lower() + msg[1:]))

    def on_unknown_macro_in_defined_expr(self, tok: Any) -> bool:
        return bool(tok.value == _HAS_INCLUDE)

    def define_from_command_line(self, text: str) -> None:
        head, _, value = text.partition("=")
        if not re.fullmatch(r"[A-Za-z_]\w*(\([\w\s,.]*\))?", head) or "\n" in value:
            raise CompileError([BadDefine(None, text)])
        self.define(f"{head} {value if '=' in text else '1'}")

    def read(self, path: str, included_from: Span | None) -> SourceFile:
        try:
            # newline="" keeps CR LF: what we do not replace must come out byte for byte.
            with Path(path).open(encoding="utf-8", errors="surrogateescape", newline="") as stream:
                text = stream.read()
        except OSError as error:
            raise CompileError([UnreadableFile(included_from, path, (error.strerror or str(error)).lower())]) from None
        self.texts[path] = text
        self.open_files.append(path)
        source = _Reader(self, SourceFile(path, text)).run()
        self.open_files.pop()
        return source


def _last_word(tokens: list[Any]) -> str:
    """The last token that is neither white space nor an opening parenthesis."""
    return next((str(t.value) for t in reversed(tokens) if str(t.value).strip() not in ("", "(")), "")


class _Reader:
    """Walks one file: executes its directives and collects its functions."""

    def __init__(self, machine: _Machine, source: SourceFile) -> None:
        self.machine = machine
        self.source = source
        self.conditionals: list[_Conditional] = []
        self.active = True
        self.pending: list[Any] = []  # active text since the last directive, not yet expanded
        self.text: list[Any] = []  # expanded tokens of the file
        self.directives: list[tuple[int, str, bool, str]] = []  # (offset, name, active, line)
        self.included: list[tuple[int, int, SourceFile]] = []

    def run(self) -> SourceFile:
        for line in self.lines():
            words = [t for t in line.tokens if t.type not in self.machine.t_WS]
            if words and words[0].value == "#":
                self.directive(line, words[1:])
            elif self.active:
                self.pending += line.tokens
        self.flush()
        for conditional in self.conditionals:
            self.report(UnterminatedConditional(conditional.span, conditional.directive))
        return SourceFile(self.source.path, self.source.text, tuple(self.functions()), tuple(self.included))

    def report(self, diagnostic: Diagnostic) -> None:
        self.machine.diagnostics.append(diagnostic)

    # -- lines ------------------------------------------------------------------------------------------------

    def lines(self) -> Iterable[_Line]:
        lexer = self.machine.lexer.clone()
        # Same length as the original, so that lexpos is an offset into it.
        plain = _RAW_STRING.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), self.source.text)
        lexer.input(re.sub(r"[\r\f\v\ufeff]", " ", plain))
        lexer.lineno = 1
        line = _Line()
        while token := lexer.token():
            length = len(token.value)
            if token.type in self.machine.t_COMMENT:
                token.type, token.value = self.machine.t_SPACE, " "
            token.source = self.source.span(token.lexpos, length)
            token.offset = token.lexpos
            line.tokens.append(token)
            line.end = token.lexpos + length
            if token.type in self.machine.t_WS and token.value == "\n":
                yield line
                line = _Line(start=line.end, end=line.end)
        if line.tokens:
            line.end = len(self.source.text)
            yield line

    def flush(self) -> None:
        self.text += self.machine.expand_macros(self.pending)
        self.pending = []

    # -- directives -------------------------------------------------------------------------------------------

    def directive(self, line: _Line, words: list[Any]) -> None:
        self.flush()
        if not words:
            return
        name, span = str(words[0].value), words[0].source
        start = next(i for i, token in enumerate(line.tokens) if token is words[0])
        arguments = self.machine.tokenstrip(line.tokens[start + 1 :])
        text = self.source.text[line.start : line.end]
        self.directives.append((line.start, name, self.active, text if text.endswith("\n") else text + "\n"))
        if name in ("if", "ifdef", "ifndef", "elif", "else", "endif"):
            self.conditional(name, span, arguments)
        elif not self.active:
            return
        elif name == "define":
            self.define(span, arguments)
        elif name == "undef":
            if self.wants_name(name, span, arguments):
                self.machine.undef(arguments)
        elif name == "include":
            self.include(line, span, arguments)
        elif name == "error":
            self.report(UserError(span, text.strip().partition("error")[2].strip()))
        elif name not in _FOREIGN_DIRECTIVES:
            self.report(BadDirective(span, name, "unknown directive"))

    def wants_name(self, name: str, span: Span, arguments: list[Any]) -> bool:
        if arguments and arguments[0].type == self.machine.t_ID:
            return True
        self.report(BadDirective(arguments[0].source if arguments else span, name, "expected a macro name"))
        return False

    def define(self, span: Span, arguments: list[Any]) -> None:
        if not self.wants_name("define", span, arguments):
            return
        if len(arguments) > 1 and arguments[1].type not in self.machine.t_WS and arguments[1].value != "(":
            self.report(BadDirective(arguments[1].source, "define", "expected white space after the macro name"))
            return
        try:
            self.machine.define(arguments)
        except (IndexError, ValueError, AttributeError):
            self.report(BadDirective(span, "define", "malformed macro definition"))

    def include(self, line: _Line, span: Span, arguments: list[Any]) -> None:
        """Only ``#include "x.co"`` is opened: it may hold functions. Host headers are nvcc's business."""
        target = str(arguments[0].value) if arguments else ""
        if not target:
            self.report(BadDirective(span, "include", "expected a file name"))
        if not (target.startswith('"') and target.endswith('.co"')):
            return
        path = str(Path(self.source.path).parent / target[1:-1])
        if path in self.machine.open_files:
            self.report(BadDirective(arguments[0].source, "include", f"{target} includes itself"))
            return
        self.included.append((line.start, line.end, self.machine.read(path, arguments[0].source)))

    def conditional(self, name: str, span: Span, arguments: list[Any]) -> None:
        if name in ("if", "ifdef", "ifndef"):
            taken = self.active and self.condition(name, span, arguments)
            self.conditionals.append(_Conditional(name, span, self.active, taken))
            self.active = taken
            return
        if not self.conditionals:
            self.report(BadDirective(span, name, "no #if before it"))
            return
        current = self.conditionals[-1]
        if name == "endif":
            self.conditionals.pop()
            self.active = current.outer
        elif current.seen_else:
            self.report(BadDirective(span, name, "after #else"))
        elif name == "else":
            current.seen_else = True
            self.active = current.outer and not current.taken
            current.taken = True
        else:
            self.active = current.outer and not current.taken and self.condition(name, span, arguments)
            current.taken = current.taken or self.active

    def condition(self, name: str, span: Span, arguments: list[Any]) -> bool:
        if name in ("ifdef", "ifndef"):
            if not self.wants_name(name, span, arguments):
                return False
            return (arguments[0].value in (*self.machine.macros, _HAS_INCLUDE)) == (name == "ifdef")
        if not arguments:
            self.report(BadDirective(span, name, "expected an expression"))
            return False
        before = len(self.machine.diagnostics)
        try:
            value, _ = self.machine.evalexpr(self.without_has_include(arguments))
            failed = len(self.machine.diagnostics) > before
        except (IndexError, ValueError, AttributeError, TypeError, SyntaxError, ZeroDivisionError):
            failed = True
        if failed:
            del self.machine.diagnostics[before:]
            self.report(BadDirective(arguments[0].source, name, "not an integer expression"))
            return False
        return bool(value)

    def without_has_include(self, arguments: list[Any]) -> list[Any]:
        """A copy with every ``__has_include(…)`` decided: quoted files are looked up, others taken to be there."""
        tokens: list[Any] = []
        rest = iter(copy.copy(token) for token in arguments)
        for token in rest:
            if token.value == _HAS_INCLUDE and not (tokens and _last_word(tokens) == "defined"):
                name = ""
                for part in rest:
                    name += str(part.value)
                    if part.value == ")":
                        break
                quoted = re.search(r'"(.*)"', name)
                found = not quoted or (Path(self.source.path).parent / quoted[1]).exists()
                token.type, token.value = self.machine.t_INTEGER, str(int(found))
            tokens.append(token)
        return tokens

    # -- functions --------------------------------------------------------------------------------------------

    def functions(self) -> Iterable[CoFunction]:
        tokens = iter(self.text)
        for token in tokens:
            if token.value == KEYWORD:
                function = self.function(token, tokens)
                if function is not None:
                    yield function

    def function(self, keyword: Any, rest: Iterable[Any]) -> CoFunction | None:
        """From the keyword to the brace that closes the body."""
        taken, depth = [keyword], 0
        for token in rest:
            taken.append(token)
            if token.value == "{":
                depth += 1
            elif token.value == "}":
                depth -= 1
                if depth <= 0:
                    return self.cut(taken)
            elif depth == 0 and token.value in (";", KEYWORD):
                break
        self.report(UnterminatedFunction(keyword.source, "'}'" if depth else "its body '{ … }'"))
        return None

    def cut(self, tokens: list[Any]) -> CoFunction:
        white = (*self.machine.t_WS,)
        kept = tuple(Token(" " if t.type in white else str(t.value), t.source) for t in tokens)
        start, last = self.offset(tokens[0].source), tokens[-1].source
        end = self.after_arguments(self.offset(last) + last.length)
        inside = [entry for entry in self.directives if start <= entry[0] < end]
        for offset, name, active, _ in inside:
            if name == "include" and active:
                self.report(BadDirective(self.source.span(offset, 1), name, "not inside a __co__ function"))
        directives = "".join(text for _, name, _, text in inside if name in _KEPT_DIRECTIVES)
        return CoFunction(start, end, kept, directives, tokens[0].source)

    def after_arguments(self, end: int) -> int:
        """``end``, or behind the parentheses that follow it: nothing but the arguments of a macro whose text ended with
        the function's brace can stand there."""
        text = self.source.text
        opening = re.compile(r"\s*\(").match(text, end)
        if opening is None:
            return end
        depth = 1
        for parenthesis in re.compile(r"[()]").finditer(text, opening.end()):
            depth += 1 if parenthesis.group() == "(" else -1
            if depth == 0:
                return parenthesis.end()
        return end

    def offset(self, span: Span) -> int:
        return self.source.offset(span)
