"""TTGIR as a tree of operations, read from Triton's own printed form.

Triton's Python objects expose neither integer attributes nor the operations of a block, so the text that its printer
writes (without locations) is parsed here. The grammar is strict: one operation per line, and of operations with regions
only the known ones. Whatever else appears is refused, never skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from triton_overlap.errors import RefusedError

VALUE = r"%[\w$.-]+(?:#\d+)?"
_RESULTS = re.compile(rf"({VALUE}(?::\d+)?) = ")
_NAME = re.compile(r'"?([a-z_]\w*\.[\w.]+)"?')
_FOR = re.compile(
    rf"scf\.for (?P<iv>{VALUE}) = (?P<lower>{VALUE}) to (?P<upper>{VALUE}) step (?P<step>{VALUE})"
    r"(?: iter_args\((?P<args>[^()]*)\) -> \((?P<types>.*)\))?  ?: (?P<type>i\d+) \{"
)
_WARP_SPECIALIZE = re.compile(r"ttg\.warp_specialize\((?P<captures>[^()]*)\)(?: attributes \{.*\})?")
_PARTITION = re.compile(r"partition\d+\((?P<args>.*)\) num_warps\((?P<warps>\d+)\) \{")
_FUNCTION = re.compile(r"tt\.func public @[\w.]+\((?P<args>.*)\)(?: attributes \{[^{}]*\})? \{")


@dataclass
class Region:
    """Operations between braces. ``args`` are (name, type); ``isolated``: sees no name from around it."""

    ops: list[Op] = field(default_factory=list)
    args: list[tuple[str, str]] = field(default_factory=list)
    isolated: bool = False
    first: int = 0  # line of the opening brace
    warps: int = 0


@dataclass
class Op:
    """One operation. ``text`` is its line without results and indentation; ``line`` counts from 0."""

    name: str
    results: list[str]
    text: str
    line: int
    regions: list[Region] = field(default_factory=list)
    last: int = 0  # its last line

    @property
    def where(self) -> str:
        return f"line {self.line + 1}: {self.name}"


@dataclass(frozen=True)
class ForLoop:
    """The header of an scf.for. ``inits`` are (region argument, initial value); ``types`` of the carried values."""

    iv: str
    lower: str
    upper: str
    step: str
    inits: tuple[tuple[str, str], ...]
    types: tuple[str, ...]


@dataclass
class Module:
    """A TTGIR module with one kernel. ``lines`` is its whole text."""

    lines: list[str]
    attributes: str
    function: Op


def split_types(text: str) -> list[str]:
    """Splits at the commas that are inside no bracket.

    >>> split_types("tensor<2xf32, #mma>, i32")
    ['tensor<2xf32, #mma>', 'i32']
    """
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        if char in "<([{":
            depth += 1
        elif char in ")]}" or (char == ">" and text[index - 1] != "-"):
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def parse_module(text: str) -> Module:
    """Parses what ``module.str_nodebug()`` prints. Raises RefusedError for anything outside the grammar."""
    return _Parser(text.splitlines()).module()


def parse_for(op: Op) -> ForLoop:
    """The header of ``op``. Raises RefusedError if it has another form."""
    match = _FOR.fullmatch(op.text)
    if not match:
        raise RefusedError("a loop of this form is not understood", op.where)
    inits = []
    for part in split_types(match["args"] or ""):
        name, _, value = part.partition(" = ")
        inits.append((name, value))
    return ForLoop(
        match["iv"],
        match["lower"],
        match["upper"],
        match["step"],
        tuple(inits),
        tuple(split_types(match["types"] or "")),
    )


def captures_of(op: Op) -> list[str]:
    """The operands of a ttg.warp_specialize."""
    match = _WARP_SPECIALIZE.fullmatch(op.text)
    if not match:
        raise RefusedError("this operation has a form that is not understood", op.where)
    return split_types(match["captures"])


def walk(region: Region) -> Iterator[Op]:
    """Every operation of ``region`` in program order, the nested ones included."""
    for op in region.ops:
        yield op
        for inner in op.regions:
            yield from walk(inner)


class _Parser:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0

    def module(self) -> Module:
        while self.at < len(self.lines) and re.match(r"#\w+ = |$", self.lines[self.at]):
            self.at += 1
        head = self._take()
        match = re.fullmatch(r"module(?: attributes \{(.*)\})? \{", head)
        if not match:
            raise self._unknown(head)
        function = self._function()
        self._expect("}")
        if any(line.strip() for line in self.lines[self.at :]):
            raise RefusedError("the module has more than one function", f"line {self.at + 1}")
        return Module(self.lines, match[1] or "", function)

    def _function(self) -> Op:
        line = self.at
        head = self._take()
        match = _FUNCTION.fullmatch(head)
        if not match:
            raise self._unknown(head)
        region = Region(args=_arguments(match["args"]), isolated=True, first=line)
        op = Op("tt.func", [], head, line, [region])
        self._body(region)
        op.last = self.at - 1
        return op

    def _body(self, region: Region) -> str:
        """Reads operations up to the line that begins with the closing brace; returns that line."""
        while True:
            text = self.lines[self.at].strip() if self.at < len(self.lines) else ""
            if text.startswith("}"):
                return self._take()
            region.ops.append(self._op())

    def _op(self) -> Op:
        line = self.at
        text = self._take()
        results: list[str] = []
        match = _RESULTS.match(text)
        if match:
            base, _, count = match[1].partition(":")
            results = [f"{base}#{index}" for index in range(int(count))] if count else [base]
            text = text[match.end() :]
        name = _NAME.match(text)
        if not name:
            raise self._unknown(text)
        op = Op(name[1], results, text, line)
        if op.name == "ttg.warp_specialize":
            self._partitions(op)
        elif op.name == "scf.for":
            self._nested(op, r"\}(?: \{.*\})?")
        elif op.name == "scf.if":
            self._if(op)
        elif op.name == "tt.reduce":
            self._combiner(op)
        elif text.endswith("{") or text.endswith("({"):
            raise RefusedError("an operation with a region that is not understood", op.where)
        op.last = self.at - 1
        return op

    def _nested(self, op: Op, closing: str) -> str:
        region = Region(first=self.at - 1)
        op.regions.append(region)
        end = self._body(region)
        if not re.fullmatch(closing, end):
            raise self._unknown(end)
        return end

    def _if(self, op: Op) -> None:
        if self._nested(op, r"\}(?: else \{)?(?: \{.*\})?").startswith("} else {"):
            self._nested(op, r"\}(?: \{.*\})?")

    def _combiner(self, op: Op) -> None:
        """The body of a reduction works on scalars in registers; it is not kept, but must not nest."""
        while not self.lines[self.at].strip().startswith("})"):
            if self.lines[self.at].rstrip().endswith("{"):
                raise RefusedError("a reduction of this form is not understood", op.where)
            self._take()
        self._take()

    def _partitions(self, op: Op) -> None:
        line = self.at
        self._expect("default {")
        default = Region(first=line)
        op.regions.append(default)
        end = self._body(default)
        while True:
            if end != "}":
                if not re.fullmatch(r"\} : \(.*\) -> \(?.*\)?", end):
                    raise self._unknown(end)
                return
            line = self.at
            head = self._take()
            match = _PARTITION.fullmatch(head)
            if not match:
                raise self._unknown(head)
            region = Region(args=_arguments(match["args"]), isolated=True, first=line, warps=int(match["warps"]))
            op.regions.append(region)
            end = self._body(region)

    def _take(self) -> str:
        if self.at >= len(self.lines):
            raise RefusedError("the module ends in the middle of an operation")
        self.at += 1
        return self.lines[self.at - 1].strip()

    def _expect(self, text: str) -> None:
        found = self._take()
        if found != text:
            raise self._unknown(found)

    def _unknown(self, text: str) -> RefusedError:
        return RefusedError(f"`{text[:60]}` is not understood", f"line {self.at}")


def _arguments(text: str) -> list[tuple[str, str]]:
    """(name, type) of ``%a: T {attributes}, …``."""
    found = []
    for part in split_types(text):
        name, _, kind = part.partition(": ")
        found.append((name, re.sub(r" \{[^{}]*\}$", "", kind)))
    return found
