"""What a kernel does outside of its specialized region: constants, allocations, initialisation of mbarriers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from triton_overlap.errors import RefusedError
from triton_overlap.memory import MEMDESC, Allocation, View, memory_type
from triton_overlap.syntax import VALUE, Module, Op, walk
from triton_overlap.values import Key, apply, const, is_pure, unknown

ATTRIBUTES = r"(?: \{[^{}]*\})?"
_ALLOC = re.compile(rf"ttg\.local_alloc(?: (?P<value>{VALUE}))?{ATTRIBUTES} : \(.*\) -> (?P<type>{MEMDESC})")
_INDEX = re.compile(
    rf"ttg\.memdesc_index (?P<base>{VALUE})\[(?P<slot>{VALUE})\]{ATTRIBUTES} : {MEMDESC} -> (?P<type>{MEMDESC})"
)
_INIT = re.compile(rf"ttng\.init_barrier (?P<barrier>{VALUE}), (?P<count>\d+){ATTRIBUTES} : {MEMDESC}")
_INVALIDATE = re.compile(rf"ttng\.inval_barrier (?P<barrier>{VALUE}){ATTRIBUTES} : {MEMDESC}")
_CONSTANT = re.compile(rf"arith\.constant{ATTRIBUTES} (?P<value>true|false|-?\d+)(?: : i\d+)?")
_POSITION = re.compile(rf"(?P<name>tt\.get_program_id|tt\.get_num_programs) (?P<axis>[xyz]){ATTRIBUTES} : i32")
_PURE = re.compile(rf"[\w.]+ (?P<operands>{VALUE}(?:, {VALUE})*)(?: overflow<\w+>)?{ATTRIBUTES} : (?P<type>.*)")
_INTEGER = re.compile(r"i\d+")
NAME = re.compile(VALUE)

# Work on registers and global memory. Shared memory that they need for themselves is the allocator's business.
_REGISTER_DIALECTS = ("arith.", "math.")
_REGISTER_OPS = {
    "tt.addptr",
    "tt.broadcast",
    "tt.expand_dims",
    "tt.get_num_programs",
    "tt.get_program_id",
    "tt.load",
    "tt.make_range",
    "tt.reduce",
    "tt.reshape",
    "tt.return",
    "tt.splat",
    "tt.store",
    "tt.trans",
    "ttg.convert_layout",
    "ttg.global_scratch_alloc",
    "ttng.reinterpret_tensor_descriptor",
    "ttng.tensormap_create",
    "ttng.tensormap_fenceproxy_acquire",
}

Value = Key | View


@dataclass
class Names:
    """What the names of a region stand for. ``owner`` tells regions apart; ``depth`` counts the loops around."""

    owner: str
    values: dict[str, Value] = field(default_factory=dict)

    def key(self, name: str) -> Key:
        found = self.values.get(name)
        if isinstance(found, View):
            raise RefusedError(f"{name} is memory where a number is expected")
        return found if found is not None else unknown((self.owner, name))

    def view(self, name: str, op: Op) -> View:
        found = self.values.get(name)
        if not isinstance(found, View):
            raise RefusedError(f"{name} is not memory that is known", op.where)
        return found


@dataclass
class Outside:
    """Allocations by name, the specialized region, and memory that is used outside of it, with the operation."""

    allocations: dict[str, Allocation]
    region: Op
    names: Names
    touched: dict[str, Op]


def match(pattern: re.Pattern[str], op: Op) -> re.Match[str]:
    """The operation as ``pattern`` reads it. Raises RefusedError if it has another form."""
    found = pattern.fullmatch(op.text)
    if not found:
        raise RefusedError(f"`{op.text[:80]}` has a form that is not understood", op.where)
    return found


def is_register_op(op: Op) -> bool:
    """Whether ``op`` is known to leave shared memory (other than scratch of its own) and mbarriers alone."""
    known = op.name.startswith(_REGISTER_DIALECTS) or op.name in _REGISTER_OPS
    return known and not op.regions and "!ttg.memdesc" not in op.text


def define(op: Op, names: Names, varying: bool) -> None:
    """Records the integer that a register operation computes; ``varying``: it may differ between iterations."""
    if len(op.results) != 1:
        for result in op.results if varying else ():
            names.values[result] = ("varying", names.owner, result)
        return
    result = op.results[0]
    if op.name == "arith.constant":
        found = _CONSTANT.fullmatch(op.text)
        if found:
            names.values[result] = const(int({"true": "1", "false": "0"}.get(found["value"], found["value"])))
        return
    if op.name in ("tt.get_program_id", "tt.get_num_programs"):
        position = match(_POSITION, op)
        names.values[result] = ("op", position["name"], position["axis"])
        return
    pure = _PURE.fullmatch(op.text) if is_pure(op.name) else None
    kind = pure["type"].rpartition(" to ")[2] if pure else ""
    if pure and _INTEGER.fullmatch(kind):
        names.values[result] = apply(op.name, [names.key(name) for name in pure["operands"].split(", ")], kind)
    elif varying:
        names.values[result] = ("varying", names.owner, result)


def allocate(op: Op, role: int | None) -> Allocation:
    """The allocation that a ttg.local_alloc makes."""
    found = match(_ALLOC, op)
    return Allocation(op.results[0], op, memory_type(found["type"], op), role)


def initial_value(op: Op) -> str | None:
    """The name of the tensor that a ttg.local_alloc stores, if it does."""
    return match(_ALLOC, op)["value"]


def index(op: Op, names: Names) -> View:
    """The slot that a ttg.memdesc_index selects."""
    found = match(_INDEX, op)
    base = names.view(found["base"], op)
    if base.slot is not None or base.allocation.type.shape[1:] != memory_type(found["type"], op).shape:
        raise RefusedError("this is no slot of a ring", op.where)
    return View(base.allocation, names.key(found["slot"]))


def read_outside(module: Module) -> Outside:
    """Reads the kernel up to and after its specialized region. Raises RefusedError if there is none, or two."""
    body = module.function.regions[0]
    regions = [op for op in walk(body) if op.name == "ttg.warp_specialize"]
    if not regions:
        raise RefusedError("the kernel has no warp-specialized region")
    if len(regions) > 1:
        raise RefusedError("the kernel has a second warp-specialized region", regions[1].where)
    if regions[0] not in body.ops:
        raise RefusedError("the warp-specialized region is inside other control flow", regions[0].where)
    if '"ttg.num-ctas" = 1 : i32' not in module.attributes:
        raise RefusedError("the kernel runs in clusters of several CTAs")
    barriers = _initialised(body.ops)
    names = Names("kernel", {name: ("arg", name) for name, kind in body.args if _INTEGER.fullmatch(kind)})
    outside = Outside({}, regions[0], names, {})
    for op in body.ops:
        if op is not regions[0]:
            _outer(op, outside, barriers)
    for allocation in outside.allocations.values():
        if allocation.barrier and sorted(allocation.counts) != list(range(allocation.slots)):
            raise RefusedError("a slot of these mbarriers is never initialised", allocation.op.where)
    return outside


def _initialised(ops: list[Op]) -> set[str]:
    """Names of the allocations that hold mbarriers: some slot is initialised."""
    bases = {}
    for op in ops:
        if op.name == "ttg.memdesc_index":
            bases[op.results[0]] = match(_INDEX, op)["base"]
    found = [match(_INIT, op)["barrier"] for op in ops if op.name == "ttng.init_barrier"]
    return {bases.get(name, name) for name in found}


def _outer(op: Op, outside: Outside, barriers: set[str]) -> None:
    names = outside.names
    if op.name == "ttg.local_alloc":
        allocation = allocate(op, None)
        allocation.barrier = allocation.name in barriers
        outside.allocations[allocation.name] = allocation
        names.values[allocation.name] = View(allocation, None)
        if initial_value(op):
            outside.touched[allocation.name] = op
    elif op.name == "ttg.memdesc_index":
        view = index(op, names)
        view.allocation.indices.append(op)
        names.values[op.results[0]] = view
    elif op.name == "ttng.init_barrier":
        _initialise(op, names)
    elif op.name == "ttng.inval_barrier":
        view = names.view(match(_INVALIDATE, op)["barrier"], op)
        if op.line < outside.region.line:
            view.allocation.invalidated.add(_constant_slot(view, op))
    elif op.name in ("gpu.barrier", "ttng.fence_async_shared", "ttng.async_tma_store_wait"):
        pass
    elif is_register_op(op):
        define(op, names, varying=False)
    else:
        _touch(op, outside)


def _initialise(op: Op, names: Names) -> None:
    found = match(_INIT, op)
    view = names.view(found["barrier"], op)
    slot = _constant_slot(view, op)
    if slot in view.allocation.counts:
        raise RefusedError("an mbarrier is initialised twice", op.where)
    view.allocation.counts[slot] = int(found["count"])
    view.allocation.inits.append(op)


def _constant_slot(view: View, op: Op) -> int:
    if view.slot is None and view.allocation.slots == 1:
        return 0
    if view.slot is None or view.slot[0] != "const" or not 0 <= view.slot[1] < view.allocation.slots:
        raise RefusedError("which mbarrier this is, is not known", op.where)
    slot: int = view.slot[1]
    return slot


def _touch(op: Op, outside: Outside) -> None:
    """Something else than set-up outside of the region: the memory that it names is not touched by this package."""
    inner = [op, *(each for region in op.regions for each in walk(region))]
    for each in inner:
        for name in NAME.findall(each.text):
            found = outside.names.values.get(name)
            if isinstance(found, View):
                if found.allocation.barrier:
                    raise RefusedError("an mbarrier is used outside of the specialized region", each.where)
                outside.touched.setdefault(found.allocation.name, each)
        if each is not op and "!ttg.memdesc" in each.text and each.name == "ttg.local_alloc":
            continue
        for result in each.results:
            if "!ttg.memdesc" in each.text:
                # A view of touched memory is touched memory; it needs no tracking of its own.
                outside.names.values.pop(result, None)
