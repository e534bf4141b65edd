"""PTX instructions that touch shared memory or synchronise, as events."""

from __future__ import annotations

import re
from collections.abc import Callable

from croqtile.validation import footprint, values
from croqtile.validation.events import Event, Refusal
from croqtile.validation.operands import WARP, Operands
from croqtile.validation.ptx import Instruction
from croqtile.validation.values import Shared

_STEP = re.compile(r"m64n(\d+)k(\d+)\.")
# No other: `arrive_drop` also takes one off the arrivals of all later phases.
_ARRIVE = re.compile(r"mbarrier\.arrive(\.expect_tx)?(\.release\.(cta|cluster))?\.shared(::cta)?\.b64")


def event_of(at: Operands, instruction: Instruction) -> Event:
    """The event of an instruction with an effect. Raises Refusal for those that are not followed."""
    for prefix, decode in _DECODERS:
        if instruction.opcode.startswith(prefix):
            return decode(at, instruction)
    raise Refusal(f"an instruction that is not followed: `{instruction.opcode}`", instruction.line)


_Decoder = Callable[[Operands, Instruction], Event]


def _init(at: Operands, i: Instruction) -> Event:
    return Event("init", i.line, at.place(i.operands[0], i.line), at.number(i.operands[1], i.line))


def _arrive(at: Operands, i: Instruction) -> Event:
    if not _ARRIVE.fullmatch(i.opcode) or i.operands[0] != "_":
        raise Refusal(f"an arrival that is not followed: `{i}`", i.line)
    place = at.place(i.operands[1], i.line)
    number = at.number(i.operands[2], i.line) if len(i.operands) > 2 else None
    if "expect_tx" in i.opcode:
        return Event("arrive", i.line, place, number or 0, 1)
    return Event("arrive", i.line, place, 0, 1 if number is None else number)


def _expect(at: Operands, i: Instruction) -> Event:
    return Event("expect", i.line, at.place(i.operands[0], i.line), at.number(i.operands[1], i.line))


def _copy(at: Operands, i: Instruction) -> Event:
    form = re.fullmatch(
        r"cp\.async\.bulk\.tensor\.\dd\.(shared::cluster\.global\.mbarrier::complete_tx::bytes"
        r"|global\.shared::cta\.bulk_group)",
        i.opcode,
    )
    if form is None:
        raise Refusal(f"a copy that is not followed: `{i.opcode}`", i.line)
    if form[1].startswith("global"):
        number = at.map_of(i.operands[0], i.line)
        return Event("copy out", i.line, at.place(i.operands[1], i.line), map=number)
    target, barrier = (at.place(i.operands[k], i.line) for k in (0, 2))
    return Event("copy in", i.line, target, barrier=barrier, map=at.map_of(i.operands[1], i.line))


def _numbered(kind: str) -> _Decoder:
    def decode(at: Operands, i: Instruction) -> Event:
        return Event(kind, i.line, number=at.number(i.operands[0], i.line) if i.operands else 0)

    return decode


def _proxy_fence(at: Operands, i: Instruction) -> Event:
    if i.opcode not in ("fence.proxy.async", "fence.proxy.async.shared::cta"):
        raise Refusal(f"a fence that is not followed: `{i.opcode}`", i.line)
    return Event("proxy fence", i.line)


def _sync(at: Operands, i: Instruction) -> Event:
    number = at.number(i.operands[0], i.line)
    threads = at.number(i.operands[1], i.line) if len(i.operands) > 1 else at.program.entry.threads
    return Event("sync", i.line, number=number, arrivals=threads)


def _matrix(at: Operands, i: Instruction) -> Event:
    shape = _STEP.search(i.opcode)
    types = i.opcode.split(".")[-2:]
    if shape is None or len(types) != 2 or ".sp." in i.opcode:
        raise Refusal(f"a matrix instruction that is not followed: `{i.opcode}`", i.line)
    n, k = int(shape[1]), int(shape[2])
    in_registers = i.operands[1].startswith("{")
    layouts = [operand == "1" for operand in i.operands[6:]]  # transposed: A (in shared memory only) and B
    transposed_a = bool(layouts and not in_registers and layouts[0])
    transposed_b = bool(layouts and layouts[-1])
    mask, bases = 0, set()
    for operand, rows, transposed in ((i.operands[1], 64, transposed_a), (i.operands[2], n, transposed_b)):
        if operand.startswith("{"):
            continue
        value = at.operand(operand)
        if not isinstance(value, Shared) or value.shift != 4 or value.offset < 0:
            raise Refusal(f"the matrix descriptor {operand} is not recovered ({value})", i.line)
        address, rest = (value.offset & 0x3FFF) << 4, value.offset >> 14 << 14
        read = footprint.operand_bytes(address, rest, rows, 32, transposed)
        if read is None or (transposed and k != 16):
            raise Refusal(f"a matrix descriptor that is not followed: {rest:#x}", i.line)
        mask |= read
        bases.add(value.base)
    if len(bases) > 1:
        raise Refusal(f"operands in {' and in '.join(sorted(bases))}", i.line)
    return Event("mma", i.line, base=bases.pop() if bases else "", masks=(mask,))


def _bytes(opcode: str) -> int:
    vector = re.search(r"\.v(\d)\.", opcode)
    return values.width(opcode.split(".")[-1]) // 8 * (int(vector[1]) if vector else 1)


def _store(at: Operands, i: Instruction) -> Event:
    if i.opcode.startswith("stmatrix"):
        lanes = {"x1": 8, "x2": 16, "x4": 32}[next(part for part in i.opcode.split(".") if part[:1] == "x")]
        base, masks = at.footprint(i.operands[0], 16, lanes, i.line)
    else:
        base, masks = at.footprint(i.operands[0], _bytes(i.opcode), WARP, i.line)
    return Event("store", i.line, base=base, masks=masks)


def _load(at: Operands, i: Instruction) -> Event:
    if i.opcode.startswith("ldmatrix"):
        lanes = {"x1": 8, "x2": 16, "x4": 32}[next(part for part in i.opcode.split(".") if part[:1] == "x")]
        base, masks = at.footprint(i.operands[1], 16, lanes, i.line)
    else:
        base, masks = at.footprint(i.operands[1], _bytes(i.opcode), WARP, i.line)
    return Event("load", i.line, base=base, masks=masks)


_DECODERS: tuple[tuple[str, _Decoder], ...] = (
    ("mbarrier.init", _init),
    ("mbarrier.arrive", _arrive),
    ("mbarrier.expect_tx", _expect),
    ("fence.mbarrier_init", _numbered("init fence")),
    ("fence.proxy.async", _proxy_fence),
    ("cp.async.bulk.tensor", _copy),
    ("cp.async.bulk.commit_group", _numbered("copy commit")),
    ("cp.async.bulk.wait_group", _numbered("copy wait")),
    ("barrier.cta.sync.aligned", _sync),
    ("barrier.sync.aligned", _sync),
    ("bar.sync", _sync),
    ("wgmma.mma_async", _matrix),
    ("wgmma.fence", _numbered("mma fence")),
    ("wgmma.commit_group", _numbered("mma commit")),
    ("wgmma.wait_group", _numbered("mma wait")),
    ("stmatrix", _store),
    ("st.shared", _store),
    ("st.volatile.shared", _store),
    ("ldmatrix", _load),
    ("ld.shared", _load),
    ("ld.volatile.shared", _load),
)
