"""Compiled code with one thing wrong, to see that the validation notices: changes to the text of a PTX module.

Left out are changes after which the code does the same: of two operations that commute, of a fence or a meeting of
warps that another one makes redundant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from croqtile.validation.ptx import find_entry


@dataclass(frozen=True)
class Mutant:
    """``kind``: what sort of change; ``what``: which one, with its ``line`` in the original."""

    kind: str
    what: str
    text: str
    line: int


@dataclass(frozen=True)
class Unit:
    """One operation: a block of inline assembly, or a barrier of the CTA. ``start``, ``end``: its place in the text."""

    kind: str
    start: int
    end: int
    line: int
    text: str


_KINDS = (
    ("mbarrier.init", "init"),
    ("fence.mbarrier_init", "init fence"),
    ("fence.proxy.async", "proxy fence"),
    ("mbarrier.try_wait", "wait"),
    ("mbarrier.arrive", "arrive"),
    ("mbarrier.expect_tx", "expect"),
    ("shared::cta.bulk_group", "copy out"),
    ("cp.async.bulk.tensor", "copy in"),
    ("cp.async.bulk.commit", "copy commit"),
    ("cp.async.bulk.wait", "copy wait"),
    ("bar.sync", "sync"),
    ("barrier.cta.sync", "sync"),
    ("wgmma.fence", "mma fence"),
    ("wgmma.mma_async", "mma"),
    ("wgmma.commit", "mma commit"),
    ("wgmma.wait", "mma wait"),
    ("stmatrix", "store"),
)
_UNIT = re.compile(r"// begin inline asm\n(?P<asm>.*?)\n?[ \t]*// end inline asm|(?P<bar>\bbar\.sync[^;]*;)", re.DOTALL)
_BOUNDARY = re.compile(r"^\s*(\$L\w+:|(@!?%\w+\s+)?bra\b|ret;)", re.MULTILINE)


_FIRST_ONLY = """{{
.reg .u32 thread;
.reg .pred other;
mov.u32 thread, %tid.x;
and.b32 thread, thread, 127;
setp.ne.u32 other, thread, 0;
@other bra past;
{}
past:
}}"""


def units(text: str, function: str) -> list[Unit]:
    """The operations of the kernel ``function``, in the order of the text."""
    _, start, end = find_entry(text, function)
    found = []
    for match in _UNIT.finditer(text, start, end):
        group = "asm" if match["asm"] is not None else "bar"
        body = match[group]
        kind = next((kind for word, kind in _KINDS if word in body), None)
        if kind is not None:
            line = text.count("\n", 0, match.start(group)) + 1
            found.append(Unit(kind, match.start(group), match.end(group), line, body))
    return found


def mutants(text: str, function: str) -> Iterator[Mutant]:
    """All mutants of the kernel ``function`` in the module ``text``."""
    all_units = units(text, function)
    for position, unit in enumerate(all_units):
        before, after = all_units[:position], all_units[position + 1 :]
        if not _redundant(unit, before, after):
            yield Mutant(f"{unit.kind} dropped", _what(unit), _replaced(text, unit, ""), unit.line)
            yield from _by_one_thread(text, unit, before)
        yield from _changed(text, unit)
        if after and _neighbours(text, unit, after[0]) and not _commute(unit, after[0], before, after[1:]):
            yield Mutant(
                "two operations swapped",
                f"{_what(unit)} and {_what(after[0])}",
                _swapped(text, unit, after[0]),
                unit.line,
            )
        if unit.kind in ("wait", "sync", "mma commit"):
            for name, code in (("store", "st.shared.u32 [{}], %r1;"), ("load", "ld.shared.u32 %r1, [{}];")):
                place = code.format(_dynamic(text))
                yield Mutant(
                    f"foreign {name}", f"after {_what(unit)}", _replaced(text, unit, f"{unit.text}\n{place}"), unit.line
                )
    for match in re.finditer(r"or\.b64\s+%rd\d+, %rd\d+, (\d{15,});", text):
        line = text.count("\n", 0, match.start()) + 1
        for what, bits in (("moved", 8), ("with a reserved bit", 1 << 52)):
            changed = f"{text[: match.start(1)]}{int(match[1]) + bits}{text[match.end(1) :]}"
            yield Mutant(f"matrix descriptor {what}", f"line {line}", changed, line)


def _by_one_thread(text: str, unit: Unit, before: list[Unit]) -> Iterator[Mutant]:
    """A fence that all threads need, executed by the first of each warpgroup only."""
    if unit.kind == "proxy fence" and any(other.kind == "sync" for other in before):
        yield Mutant(
            "proxy fence by one thread", _what(unit), _replaced(text, unit, _FIRST_ONLY.format(unit.text)), unit.line
        )


def _changed(text: str, unit: Unit) -> Iterator[Mutant]:
    """One number of an operation changed, or its form."""
    changes: list[tuple[str, str, str]] = {
        "init": [("arrival count", r"\], ([%\w]+);", "7")],
        "wait": [
            ("parity", r"\], ([%\w]+);", "1"),
            ("barrier address", r"\[(%\w+)\]", r"\1+8"),
            ("repetition", r"bra (again);", "spin"),
            ("parity", r"\], (%\w+);", "2"),
            ("memory order", r"parity(\.)shared", ".relaxed.cta."),
        ],
        "arrive": [
            ("arrivals of later phases", r"mbarrier\.(arrive)", "arrive_drop"),
            ("expected bytes", r"\], ([%\w]+);", "48"),
            ("barrier address", r"\[(%\w+)\]", r"\1+8"),
        ],
        "expect": [("expected bytes", r"\], ([%\w]+);", "48")],
        "copy in": [
            ("target address", r"bytes \[(%\w+)\]", r"\1+128"),
            ("barrier address", r", \[(%\w+)\];", r"\1+8"),
        ],
        "copy out": [("source address", r", \[(%\w+)\];", r"\1+128")],
        "store": [("target address", r"\[(%\w+)\]", r"\1+16")],
        "sync": [("barrier threads", r"sync\.aligned [%\w]+, ([%\w]+);", "96")],
        "mma wait": [("groups left running", r"aligned (\d+);", "3")],
        "copy wait": [("groups left running", r"read (\d+);", "1")],
    }.get(unit.kind, [])
    for what, pattern, new in changes:
        found = re.search(pattern, unit.text)
        if found:
            value = new.replace(r"\1", found[1])
            body = unit.text[: found.start(1)] + value + unit.text[found.end(1) :]
            if value == "spin":  # on a test that is not made again
                body = body.replace("@", "spin:\n@", 1)
            yield Mutant(f"{what} changed", _what(unit), _replaced(text, unit, body), unit.line)


def _what(unit: Unit) -> str:
    return f"{unit.kind}, line {unit.line}"


def _replaced(text: str, unit: Unit, body: str) -> str:
    return text[: unit.start] + body + text[unit.end :]


def _swapped(text: str, first: Unit, second: Unit) -> str:
    """``first`` moved behind ``second``; so its operands are defined."""
    return f"{text[: first.start]}{text[first.end : second.end]}\n{first.text}\n{text[second.end :]}"


def _neighbours(text: str, first: Unit, second: Unit) -> bool:
    """In one basic block."""
    return not _BOUNDARY.search(text, first.end, second.start)


def _dynamic(text: str) -> str:
    found = re.search(r"\.extern \.shared[^;]*\.b8 (\w+_memory_)\[\];", text)
    assert found is not None, "every kernel has dynamic shared memory"
    return found[1]


def _next(rest: list[Unit], *kinds: str) -> str | None:
    """The first operation of these kinds."""
    return next((unit.kind for unit in rest if unit.kind in kinds), None)


def _redundant(unit: Unit, before: list[Unit], after: list[Unit]) -> bool:
    if unit.kind == "proxy fence":
        return _next(after, "proxy fence", "sync") == "proxy fence"
    if unit.kind == "sync" and "barrier" in unit.text:
        last = next((other.kind for other in reversed(before) if other.kind != "arrive"), None)
        return last == "sync"
    return False


def _commute(first: Unit, second: Unit, before: list[Unit], after: list[Unit]) -> bool:
    kinds = {first.kind, second.kind}
    if len(kinds) == 1 or kinds == {"init fence", "proxy fence"}:
        return True
    if "mma fence" in kinds:
        return "mma" not in kinds
    if first.kind == "copy in" and second.kind in ("expect", "arrive"):
        return True
    if first.kind == "store" and second.kind == "proxy fence":
        return _next(after, "proxy fence", "sync") == "proxy fence"
    return _redundant(first, before, [second, *after])
