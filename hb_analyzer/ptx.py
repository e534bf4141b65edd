"""What the kernels of a PTX file do about shared memory: barriers, bulk copies, matrix instructions, by count."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from .json_reader import PatternError
from .table import table

# Family, and the opcodes (PTX ISA names) that belong to it by prefix; the first match counts.
_FAMILIES = (
    ("mbarrier", ("mbarrier.",)),
    ("bulk copy", ("cp.async.bulk", "cp.reduce.async.bulk", "prefetch.tensormap", "tensormap.")),
    ("async copy", ("cp.async",)),
    ("wgmma", ("wgmma.",)),
    ("barrier", ("bar.", "barrier.", "elect.")),
    ("fence", ("fence.", "membar.")),
    ("matrix load/store", ("ldmatrix.", "stmatrix.", "mma.")),
    ("registers", ("setmaxnreg.",)),
)
_OPCODE = re.compile(
    r"(?<![\w.%$:])((?:mbarrier|cp\.async|cp\.reduce\.async|prefetch\.tensormap|tensormap|wgmma|bar|barrier|elect"
    r"|fence|membar|ldmatrix|stmatrix|mma|setmaxnreg)\.[\w.:]*\w|cp\.async\b)"
)
_ENTRY = re.compile(r"\.entry\s+([\w$%]+)")
_SHARED = re.compile(r"\.shared\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$%]+)(?:\[(\d*)\])?")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class KernelSummary:
    """Counts of one kernel's instructions by family and full opcode; bytes of static shared memory it declares."""

    name: str
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    static_shared: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "kernel": self.name,
            "static_shared_bytes": self.static_shared,
            "instructions": {family: dict(sorted(counter.items())) for family, counter in self.counts.items()},
        }


def summarise_ptx(text: str, file: str) -> list[KernelSummary]:
    """One summary per ``.entry``. Raises PatternError for a file that is not PTX or has no kernel."""
    text = _COMMENT.sub(" ", text)
    if not re.search(r"^\s*\.version\s", text, re.MULTILINE):
        raise PatternError(file, "", "not PTX: it has no .version directive (nvcc -ptx makes a PTX file)")
    entries = list(_ENTRY.finditer(text))
    if not entries:
        raise PatternError(file, "", "no kernel (.entry) in it")
    return [_summarise(match.group(1), _body(text, match.end())) for match in entries]


def _body(text: str, start: int) -> str:
    """From the first ``{`` after ``start`` to the matching ``}``."""
    begin = text.find("{", start)
    if begin < 0:
        return ""
    depth = 0
    for match in re.finditer(r"[{}]", text[begin:]):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return text[begin : begin + match.end()]
    return text[begin:]


def _summarise(name: str, body: str) -> KernelSummary:
    counts: dict[str, Counter[str]] = {}
    for match in _OPCODE.finditer(body):
        opcode = match.group(1)
        family = next(family for family, prefixes in _FAMILIES if opcode.startswith(prefixes))
        counts.setdefault(family, Counter())[opcode] += 1
    order = [family for family, _ in _FAMILIES]
    static = sum(_bytes(type_) * int(extent or 1) for _, type_, _, extent in _SHARED.findall(body))
    return KernelSummary(name, {family: counts[family] for family in order if family in counts}, static)


def _bytes(type_: str) -> int:
    """Size of a PTX fundamental type such as b8, u32, f16x2."""
    bits = re.search(r"\d+", type_)
    return int(bits.group()) // 8 if bits else 0


def ptx_text(summaries: list[KernelSummary]) -> str:
    sections = []
    for summary in summaries:
        rows = []
        for family, counter in summary.counts.items():
            rows.append((family, "", str(sum(counter.values()))))
            rows += [("", opcode, str(count)) for opcode, count in sorted(counter.items())]
        body = table(("family", "instruction", "count"), rows, right=(2,)) if rows else "  none of these instructions"
        shared = f"  ({summary.static_shared} B of static shared memory)" if summary.static_shared else ""
        sections.append(f"{summary.name}{shared}\n{body}")
    return "\n\n".join(sections) + "\n"
