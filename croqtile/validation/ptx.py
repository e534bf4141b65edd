"""Reading the text of one kernel in a PTX module: its instructions in order, its labels, its shared memory.

Only the text counts: nothing here knows how the text came to be. What is not understood raises :class:`PtxError`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


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


_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.\w+\s+([\w$]+)")
_SHARED = re.compile(r"(\.extern\s+)?\.shared\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)\s*((?:\[\d*\])*)\s*;")
_LABEL = re.compile(r"\s*([\w$]+)\s*:(?!:)")
_GUARD = re.compile(r"\s*@(!?)([%\w$]+)\s+")
_LOCAL = re.compile(r"(?<![\w.%$:])[A-Za-z_]\w*")
_SIZES = {"b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "b32": 4, "u32": 4, "f32": 4, "b64": 8, "u64": 8, "f64": 8}


def without_comments(text: str) -> str:
    """Comments become spaces, so that positions and lines stay."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.DOTALL)


def find_entry(text: str, function: str) -> tuple[str, int, int]:
    """The mangled name of the kernel whose C++ name is ``function``, and where its body starts and ends in ``text``."""
    plain = without_comments(text)
    wanted = [m for m in _ENTRY.finditer(plain) if m[1] == function or f"{len(function)}{function}" in m[1]]
    if len(wanted) != 1:
        raise PtxError(f"{len(wanted)} kernels are called {function}, not one")
    start = plain.index("{", wanted[0].end())
    depth = 0
    for position in range(start, len(plain)):
        depth += {"{": 1, "}": -1}.get(plain[position], 0)
        if depth == 0:
            return wanted[0][1], start + 1, position
    raise PtxError(f"the body of {function} does not end")


def parse(text: str, function: str) -> Entry:
    """The kernel ``function`` of the module ``text``."""
    plain = without_comments(text)
    name, start, end = find_entry(text, function)
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
    body = _Body(plain, start, end)
    body.read()
    parameters = tuple(_PARAMETER.findall(head))
    return Entry(name, parameters, int(threads[1]), tuple(body.instructions), body.labels, shared)


class _Body:
    """Reads statements. Names declared inside ``{…}`` (inline assembly) are local: they get the scope's number."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text, self.position, self.end = text, start, end
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.scopes: list[int] = []
        self.number = 0

    def read(self) -> None:
        while True:
            self._skip_space()
            if self.position >= self.end:
                return
            character = self.text[self.position]
            label = _LABEL.match(self.text, self.position, self.end)
            if character == "{":
                self.number += 1
                self.scopes.append(self.number)
                self.position += 1
            elif character == "}":
                self.scopes.pop()
                self.position += 1
            elif character == ";":
                self.position += 1
            elif label:
                name = self._local(label[1])
                if name in self.labels:
                    raise PtxError(f"line {self._line()}: the label {name} stands twice")
                self.labels[name] = len(self.instructions)
                self.position = label.end()
            else:
                self._statement()

    def _skip_space(self) -> None:
        while self.position < self.end and self.text[self.position].isspace():
            self.position += 1

    def _line(self) -> int:
        return self.text.count("\n", 0, self.position) + 1

    def _local(self, name: str) -> str:
        return f"{name}@{self.scopes[-1]}" if self.scopes and not name.startswith(("%", "$")) else name

    def _statement(self) -> None:
        line = self._line()
        end = self.text.find(";", self.position, self.end)
        if end < 0:
            raise PtxError(f"line {line}: a statement without an end")
        text = self.text[self.position : end]
        self.position = end + 1
        if text.startswith("."):  # a declaration or directive
            return
        guard = None
        guarded = _GUARD.match(text)
        if guarded:
            guard = (self._local(guarded[2]), not guarded[1])
            text = text[guarded.end() :]
        opcode, rest = (*text.split(None, 1), "")[:2]
        operands = tuple(self._localised(part) for part in split_operands(rest))
        self.instructions.append(Instruction(opcode, operands, guard, line))

    def _localised(self, operand: str) -> str:
        if not self.scopes or not _LOCAL.fullmatch(operand.strip("[]")) or operand == "_":
            return operand
        return _LOCAL.sub(lambda found: self._local(found[0]), operand)


def split_operands(text: str) -> list[str]:
    """At commas outside of ``{}`` and ``[]``."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    if current.strip():
        parts.append(current.strip())
    return parts
