"""Reading the text of one kernel in a PTX module: its instructions in order, its labels, its shared memory.

Only the text counts: nothing here knows how the text came to be. What is not understood raises :class:`PtxError`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache


class PtxError(Exception):
    """The text is not PTX that can be read here; the message says what and where."""


@dataclass(frozen=True)
class Instruction:
    """``guard`` is the predicate register and the value that lets it run. ``operands`` as written, split at commas
    outside of brackets and braces. ``line`` counts from 1 in the module."""

    opcode: str
    operands: tuple[str, ...]
    guard: tuple[str, bool] | None
    line: int

    def __str__(self) -> str:
        return f"{self.opcode} {', '.join(self.operands)}"


@dataclass(frozen=True)
class SharedVariable:
    """A variable in shared memory; ``size`` is None for dynamic memory, whose size the launch decides. Bytes."""

    name: str
    align: int
    size: int | None


@dataclass(frozen=True)
class Entry:
    """A kernel. ``labels``: name → index into ``instructions`` (may be one past the end)."""

    name: str
    parameters: tuple[str, ...]
    threads: int
    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]
    shared: Mapping[str, SharedVariable]


# And the places in sources that nvcc notes with -lineinfo, which end with their line.
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|^[ \t]*\.(?:loc|file)\b[^\n]*", re.DOTALL | re.MULTILINE)
_NO_NEWLINE = re.compile(r"[^\n]")
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.\w+\s+([\w$]+)")
_SHARED = re.compile(r"\.(extern\s+\.)?shared\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)\s*((?:\[\d*\])*)\s*;")
_TOKEN = re.compile(r"\s*(?:(?P<mark>[{};])|(?P<label>[\w$]+)\s*:(?!:)|(?P<statement>[^\s;][^;]*);)")
_GUARD = re.compile(r"\s*@(!?)([%\w$]+)\s+")
_BRACE = re.compile(r"[{}]")
_BRACKET_OR_COMMA = re.compile(r"[][{},]")
_LOCAL = re.compile(r"(?<![\w.%$:])[A-Za-z_]\w*")
_DECLARATIONS = (".reg", ".shared", ".local", ".param", ".pragma")
_SIZES = {"b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "b32": 4, "u32": 4, "f32": 4, "b64": 8, "u64": 8, "f64": 8}


def without_comments(text: str) -> str:
    """Comments become spaces, so that positions and lines stay."""
    return _COMMENT.sub(lambda found: _NO_NEWLINE.sub(" ", found[0]) if "\n" in found[0] else " " * len(found[0]), text)


def find_entry(text: str, function: str) -> tuple[str, int, int]:
    """The mangled name of the kernel whose C++ name is ``function``, and where its body starts and ends in ``text``."""
    return _find_entry(without_comments(text), function)


def _find_entry(plain: str, function: str) -> tuple[str, int, int]:
    wanted = [m for m in _ENTRY.finditer(plain) if m[1] == function or f"{len(function)}{function}" in m[1]]
    if len(wanted) != 1:
        raise PtxError(f"{len(wanted)} kernels are called {function}, not one")
    start = plain.index("{", wanted[0].end())
    depth = 0
    for brace in _BRACE.finditer(plain, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return wanted[0][1], start + 1, brace.start()
    raise PtxError(f"the body of {function} does not end")


def parse(text: str, function: str) -> Entry:
    """The kernel ``function`` of the module ``text``."""
    plain = without_comments(text)
    name, start, end = _find_entry(plain, function)
    head = plain[plain.rindex(".entry", 0, start) : start]
    shared = {}
    for found in (*_SHARED.finditer(plain[: plain.index(".entry")]), *_SHARED.finditer(plain[start:end])):
        size = _SIZES.get(found[3], 0)
        for extent in re.findall(r"\[(\d*)\]", found[5]):
            size *= int(extent or 0)
        dynamic = bool(found[1])
        shared[found[4]] = SharedVariable(found[4], int(found[2] or 1), None if dynamic else size)
    threads = re.search(r"\.(?:max|req)ntid\s+(\d+)(?:\s*,\s*(\d+)\s*,\s*(\d+))?", head)
    if threads is None or any(n not in (None, "1") for n in threads.groups()[1:]):
        raise PtxError(f"{name} does not say how many threads a CTA has, along one dimension")
    body = _Body()
    body.read(plain, start, end)
    parameters = tuple(_PARAMETER.findall(head))
    return Entry(name, parameters, int(threads[1]), tuple(body.instructions), body.labels, shared)


class _Body:
    """Reads statements. Names declared inside ``{…}`` (inline assembly) are local: they get the scope's number."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}

    def read(self, text: str, start: int, end: int) -> None:
        scopes, number = [0], 0  # 0: none
        line, counted = 1, 0
        while found := _TOKEN.match(text, start, end):
            kind, start = str(found.lastgroup), found.end()
            value, first = found[kind], found.start(kind)
            line, counted = line + text.count("\n", counted, first), first
            if kind == "label":
                name = _local(value, scopes[-1])
                if name in self.labels:
                    raise PtxError(f"line {line}: the label {name} stands twice")
                self.labels[name] = len(self.instructions)
            elif kind == "statement":
                if value[0] != ".":
                    self.instructions.append(Instruction(*_instruction(value, scopes[-1]), line))
                elif not value.startswith(_DECLARATIONS):  # where it ends is not known
                    raise PtxError(f"line {line}: a directive that is not followed: {value.split()[0]}")
            elif value == "{":
                number += 1
                scopes.append(number)
            elif value == "}":
                scopes.pop()
        rest = text[start:end].lstrip()
        if rest:
            line += text.count("\n", counted, end - len(rest))
            raise PtxError(f"line {line}: a statement without an end")


def _local(name: str, scope: int) -> str:
    return f"{name}@{scope}" if scope and not name.startswith(("%", "$")) else name


@lru_cache(maxsize=1 << 16)  # of a module read before, little has changed
def _instruction(text: str, scope: int) -> tuple[str, tuple[str, ...], tuple[str, bool] | None]:
    """Opcode, operands and guard."""
    guard = None
    guarded = _GUARD.match(text)
    if guarded:
        guard = (_local(guarded[2], scope), not guarded[1])
        text = text[guarded.end() :]
    opcode, rest = (*text.split(None, 1), "")[:2]
    return opcode, tuple(_localised(part, scope) for part in split_operands(rest)), guard


def _localised(operand: str, scope: int) -> str:
    if not scope or not _LOCAL.fullmatch(operand.strip("[]")) or operand == "_":
        return operand
    return _LOCAL.sub(lambda found: _local(found[0], scope), operand)


def split_operands(text: str) -> list[str]:
    """At commas outside of ``{}`` and ``[]``."""
    parts, depth, start = [], 0, 0
    for found in _BRACKET_OR_COMMA.finditer(text):
        if found[0] != ",":
            depth += 1 if found[0] in "{[" else -1
        elif depth == 0:
            parts.append(text[start : found.start()].strip())
            start = found.end()
    if text[start:].strip():
        parts.append(text[start:].strip())
    return parts
