"""From the operations of one partition to a role of the model."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from hb_analyzer.model import (
    WHOLE,
    Access,
    BinOp,
    Commit,
    Const,
    Drain,
    IntExpr,
    Loop,
    Name,
    Statement,
    Step,
    Trigger,
    Wait,
)
from triton_overlap.errors import RefusedError
from triton_overlap.memory import MEMDESC, Allocation, View, memory_type
from triton_overlap.outside import (
    ATTRIBUTES,
    Names,
    Value,
    allocate,
    define,
    index,
    initial_value,
    is_register_op,
    match,
)
from triton_overlap.syntax import VALUE, ForLoop, Op, Region, parse_for, split_types, walk
from triton_overlap.values import Key, const, counter, mentions, unknown

_WAIT = re.compile(
    rf"ttng\.wait_barrier (?P<barrier>{VALUE}), (?P<phase>{VALUE})(?:, (?P<predicate>{VALUE}))?"
    rf"(?: deps [^:]*)?{ATTRIBUTES} : .*"
)
_ARRIVE = re.compile(
    rf"ttng\.arrive_barrier (?P<barrier>{VALUE}), (?P<count>\d+)(?:, (?P<predicate>{VALUE}))?{ATTRIBUTES} : .*"
)
_EXPECT = re.compile(
    rf"ttng\.barrier_expect (?P<barrier>{VALUE}), (?P<bytes>\d+){ATTRIBUTES}, (?P<predicate>{VALUE}) : .*"
)
_COPY_IN = re.compile(
    rf"ttng\.async_tma_copy_global_to_local {VALUE}\[[^\]]*\] (?P<target>{VALUE}), (?P<barrier>{VALUE}), "
    rf"(?P<predicate>{VALUE}){ATTRIBUTES} : .* -> (?P<type>{MEMDESC})"
)
_COPY_OUT = re.compile(rf"ttng\.async_tma_copy_local_to_global {VALUE}\[[^\]]*\] (?P<source>{VALUE}){ATTRIBUTES} : .*")
_STORE_WAIT = re.compile(r"ttng\.async_tma_store_wait \{(?:[^{}]*, )?pendings = (?P<pending>\d+) : i32[^{}]*\}")
_DOT = re.compile(
    rf"ttng\.warp_group_dot (?P<a>{VALUE}), (?P<b>{VALUE}), {VALUE}(?:, {VALUE})? \{{(?P<attributes>[^{{}}]*)\}} : .*"
)
_DOT_WAIT = re.compile(r"ttng\.warp_group_dot_wait .* \{(?:[^{}]*, )?pendings = (?P<pending>\d+) : i32[^{}]*\} : .*")
_STORE = re.compile(rf"ttg\.local_store {VALUE}, (?P<target>{VALUE}){ATTRIBUTES} : .*")
_LOAD = re.compile(rf"ttg\.local_load (?P<source>{VALUE}){ATTRIBUTES} : .*")
_TRANSPOSE = re.compile(rf"ttg\.memdesc_trans (?P<base>{VALUE}) \{{.*\}} : .*")
_REINTERPRET = re.compile(rf"ttg\.memdesc_reinterpret (?P<base>{VALUE}){ATTRIBUTES} : {MEMDESC} -> {MEMDESC}")
_YIELD = re.compile(rf"scf\.yield{ATTRIBUTES} (?P<values>{VALUE}(?:, {VALUE})*) : .*")
_ADD = re.compile(rf"arith\.addi (?P<left>{VALUE}), (?P<right>{VALUE})(?: overflow<\w+>)?{ATTRIBUTES} : i\d+")
_INTEGER = re.compile(r"i\d+")
# An inner loop that depends on one of these does not always run equally often.
_CHANGING = frozenset({"counter", "induction", "rem", "div", "parity", "varying"})


@dataclass(frozen=True)
class Use:
    """One access to an allocation: by which role, how ("r" or "w"), under which loops (outermost first)."""

    role: int
    allocation: Allocation
    mode: str
    op: Op
    loops: tuple[Op, ...]
    copy_in: bool = False


@dataclass(frozen=True)
class WaitUse:
    """A wait: its slot and phase, the loops around it and the loop in which its counter steps."""

    role: int
    allocation: Allocation
    op: Op
    slot: Key
    phase: Key
    loops: tuple[Op, ...]


@dataclass
class Shared:
    """What all roles of a kernel add to."""

    trips: dict[Key, str] = field(default_factory=dict)  # trip counts: their key, and the parameter that stands for it
    uses: list[Use] = field(default_factory=list)
    waits: list[WaitUse] = field(default_factory=list)
    arrivals: dict[str, set[int]] = field(default_factory=dict)  # by allocation: counts of arrive and expect
    steps: dict[str, Op] = field(default_factory=dict)  # running counter -> the loop in which it steps
    iterations: dict[str, Op] = field(default_factory=dict)  # counter of a loop -> that loop
    allocations: list[Allocation] = field(default_factory=list)  # made inside partitions


@dataclass
class _Transaction:
    """Bytes that an expect announced and that the copies after it must bring."""

    view: View
    remaining: int
    op: Op


class RoleReader:
    """Translates one partition. ``statements`` is the role's body afterwards."""

    def __init__(self, role: int, names: Names, shared: Shared) -> None:
        self.role = role
        self.names = names
        self.shared = shared
        self.loops: list[Op] = []
        self.limits: dict[str, int] = {}  # counters of loops with a constant trip count
        self.counters = 0
        self.transaction: _Transaction | None = None
        self.unfenced: list[int] = []  # positions in the statements of this block
        self.unawaited: list[int] = []

    def read(self, region: Region) -> tuple[Statement, ...]:
        statements = self._block(region.ops)
        self._synchronise(region.ops[-1])
        return statements

    def _block(self, ops: list[Op]) -> tuple[Statement, ...]:
        statements: list[Statement] = []
        self.unfenced, self.unawaited = [], []
        for op in ops:
            self._op(op, statements)
        self.unfenced, self.unawaited = [], []
        return tuple(statements)

    def _op(self, op: Op, out: list[Statement]) -> None:
        handler = _HANDLERS.get(op.name)
        if handler is not None:
            handler(self, op, out)
        elif is_register_op(op):
            define(op, self.names, varying=bool(self.loops))
        else:
            raise RefusedError("an operation that is not understood", op.where)

    # ----------------------------------------------------------------------------------------------------------
    # Control flow

    def _for(self, op: Op, out: list[Statement]) -> None:
        self._synchronise(op)
        loop = parse_for(op)
        body = op.regions[0].ops
        name = self._fresh("i")
        trip = self._trip(op, loop)
        self.shared.iterations[name] = op
        lower, step = self.names.key(loop.lower), self.names.key(loop.step)
        counts = lower == const(0) and step == const(1)
        self.names.values[loop.iv] = counter(name) if counts else ("induction", name, lower, step)
        if isinstance(trip, Const):
            self.limits[name] = trip.value
        stepping = self._carried(op, loop, name)
        self.loops.append(op)
        inside = list(self._block(body))
        self._synchronise(body[-1] if body else op)
        self.loops.pop()
        inside += [Step(running) for running in stepping]
        out.append(Loop(name, trip, tuple(inside), op.where))

    def _trip(self, op: Op, loop: ForLoop) -> IntExpr:
        lower, upper, step = (self.names.key(name) for name in (loop.lower, loop.upper, loop.step))
        if lower[0] == upper[0] == step[0] == "const" and step[1] > 0:
            return Const(max(0, -(-(upper[1] - lower[1]) // step[1])))
        key = ("trip", lower, upper, step)
        if mentions(key, _CHANGING):
            raise RefusedError("the trip count of this loop may change from one iteration to the next", op.where)
        return Name(self.shared.trips.setdefault(key, f"trips{len(self.shared.trips)}"))

    def _carried(self, op: Op, loop: ForLoop, name: str) -> list[str]:
        """Binds the loop's carried values; returns the running counters that step at the end of its body."""
        stepping = []
        for position, ((argument, initial), kind) in enumerate(zip(loop.inits, loop.types, strict=True)):
            if kind.startswith("!ttg.memdesc"):
                raise RefusedError("a loop carries a memory descriptor", op.where)
            value: Value = ("varying", self.names.owner, argument)
            after: Value = unknown((self.names.owner, op.results[position]))
            steps_in = _stepping_loop(op, position, self.names) if _INTEGER.fullmatch(kind) else None
            before = self.names.key(initial) if steps_in is not None else None
            if steps_in is op and not self.loops and before == const(0):
                value = counter(name)  # the number of the iteration
            elif steps_in is not None and before is not None:
                running = self._running(before)
                if running is not None:
                    value = after = counter(running)
                    self.shared.steps[running] = steps_in
                    if initial in self.names.values and before[0] == "counter":
                        self.names.values[initial] = ("varying", self.names.owner, initial)  # one behind from here on
                    if steps_in is op:
                        stepping.append(running)
            self.names.values[argument] = value
            # After an inner loop only a running count is still known; the rest may differ between its executions.
            known = not self.loops or value == after
            self.names.values[op.results[position]] = after if known else ("varying", self.names.owner, argument)
        return stepping

    def _running(self, before: Key) -> str | None:
        """The running counter that a loop carries on, or a new one that starts at 0 outside of all loops."""
        if before[0] == "counter" and before[1] in self.shared.steps:
            name: str = before[1]
            return name
        return self._fresh("n") if before == const(0) and not self.loops else None

    def _if(self, op: Op, out: list[Statement]) -> None:
        for region in op.regions:
            for inner in walk(region):
                if not (is_register_op(inner) or inner.name in ("scf.yield", "scf.if")):
                    raise RefusedError("synchronisation or shared memory under a condition", inner.where)
        for result in op.results:
            self.names.values[result] = ("varying", self.names.owner, result)

    def _end(self, op: Op, out: list[Statement]) -> None:
        """Terminators. What a loop yields was read with its header."""

    # ----------------------------------------------------------------------------------------------------------
    # Synchronisation

    def _wait(self, op: Op, out: list[Statement]) -> None:
        self._synchronise(op)
        found = match(_WAIT, op)
        self._unconditional(found["predicate"], op, "wait")
        view = self._barrier(found["barrier"], op)
        slot = self._slot_key(view)
        phase = self.names.key(found["phase"])
        self.shared.waits.append(WaitUse(self.role, view.allocation, op, slot, phase, tuple(self.loops)))
        out.append(Wait(event_name(view.allocation), self._slot(view, op), label="wait", where=op.where))

    def _arrive(self, op: Op, out: list[Statement]) -> None:
        self._synchronise(op)
        found = match(_ARRIVE, op)
        self._unconditional(found["predicate"], op, "arrival")
        view = self._barrier(found["barrier"], op)
        self.shared.arrivals.setdefault(view.allocation.name, set()).add(int(found["count"]))
        out.append(Trigger(event_name(view.allocation), self._slot(view, op), label="arrive", where=op.where))

    def _expect(self, op: Op, out: list[Statement]) -> None:
        self._synchronise(op)
        found = match(_EXPECT, op)
        self._unconditional(found["predicate"], op, "load")
        view = self._barrier(found["barrier"], op)
        self.shared.arrivals.setdefault(view.allocation.name, set()).add(1)
        self.transaction = _Transaction(view, int(found["bytes"]), op)

    def _copy_in(self, op: Op, out: list[Statement]) -> None:
        found = match(_COPY_IN, op)
        self._unconditional(found["predicate"], op, "load")
        target, barrier = self.names.view(found["target"], op), self._barrier(found["barrier"], op)
        open_ = self.transaction
        if open_ is None or (open_.view.allocation, open_.view.slot) != (barrier.allocation, barrier.slot):
            raise RefusedError("this load's bytes are not expected by the mbarrier that it completes on", op.where)
        event, slot = event_name(barrier.allocation), self._slot(barrier, op)
        for access in self._accesses(target, "w", op, copy_in=True):
            out.append(replace(access, ends="event", event=event, event_slot=slot, proxy="async", label="load"))
        open_.remaining -= memory_type(found["type"], op).size
        if open_.remaining < 0:
            raise RefusedError("more bytes are loaded than the mbarrier expects", op.where)
        if open_.remaining == 0:
            # The arrival of the expect counts from the start, but only these bytes complete the phase.
            out.append(Trigger(event, slot, label="expect", where=open_.op.where))
            self.transaction = None

    # ----------------------------------------------------------------------------------------------------------
    # Accesses

    def _alloc(self, op: Op, out: list[Statement]) -> None:
        if self.loops and not initial_value(op):
            raise RefusedError("an allocation without a value inside a loop", op.where)
        allocation = allocate(op, self.role)
        self.shared.allocations.append(allocation)
        self.names.values[allocation.name] = View(allocation, None)
        if initial_value(op):
            self._write(View(allocation, None), op, out)

    def _index(self, op: Op, out: list[Statement]) -> None:
        self.names.values[op.results[0]] = index(op, self.names)

    def _transpose(self, op: Op, out: list[Statement]) -> None:
        self.names.values[op.results[0]] = self.names.view(match(_TRANSPOSE, op)["base"], op)

    def _reinterpret(self, op: Op, out: list[Statement]) -> None:
        base = self.names.view(match(_REINTERPRET, op)["base"], op)
        self.names.values[op.results[0]] = replace(base, whole=False)

    def _store(self, op: Op, out: list[Statement]) -> None:
        self._write(self.names.view(match(_STORE, op)["target"], op), op, out)

    def _write(self, view: View, op: Op, out: list[Statement]) -> None:
        for access in self._accesses(view, "w", op):
            self.unfenced.append(len(out))
            out.append(replace(access, fenced=False, label="write"))

    def _load(self, op: Op, out: list[Statement]) -> None:
        out += self._accesses(self.names.view(match(_LOAD, op)["source"], op), "r", op)

    def _fence(self, op: Op, out: list[Statement]) -> None:
        for position in self.unfenced:
            access = out[position]
            assert isinstance(access, Access)
            out[position] = replace(access, fenced=True)
        self.unfenced = []

    def _copy_out(self, op: Op, out: list[Statement]) -> None:
        self.unfenced = []
        for access in self._accesses(self.names.view(match(_COPY_OUT, op)["source"], op), "r", op):
            self.unawaited.append(len(out))
            out.append(replace(access, ends="never", proxy="async", label="store"))

    def _store_wait(self, op: Op, out: list[Statement]) -> None:
        """Reading is over here. Nothing synchronises since the copies, so they may as well end where they begin."""
        if match(_STORE_WAIT, op)["pending"] == "0":
            for position in self.unawaited:
                access = out[position]
                assert isinstance(access, Access)
                out[position] = replace(access, ends="here")
            self.unawaited = []

    def _dot(self, op: Op, out: list[Statement]) -> None:
        found = match(_DOT, op)
        for name in (found["a"], found["b"]):
            operand = self.names.values.get(name)
            if isinstance(operand, View):
                for access in self._accesses(operand, "r", op):
                    out.append(replace(access, ends="group", proxy="async", label="multiply"))
        out.append(Commit(where=op.where))
        if "isAsync = true" not in found["attributes"]:
            self._drain(0, op, out)

    def _dot_wait(self, op: Op, out: list[Statement]) -> None:
        self._drain(int(match(_DOT_WAIT, op)["pending"]), op, out)

    def _drain(self, pending: int, op: Op, out: list[Statement]) -> None:
        out.append(Drain(pending, where=op.where))

    def _accesses(self, view: View, mode: str, op: Op, copy_in: bool = False) -> list[Access]:
        """One access, or one per slot where all of a ring is meant."""
        allocation = view.allocation
        if allocation.barrier:
            raise RefusedError("data access to memory that holds mbarriers", op.where)
        self.shared.uses.append(Use(self.role, allocation, mode, op, tuple(self.loops), copy_in))
        slots = [Const(slot) for slot in range(allocation.slots)] if view.slot is None else [self._slot(view, op)]
        region = WHOLE if view.whole else None
        return [Access(buffer_name(allocation), mode, slot, region, where=op.where) for slot in slots]

    # ----------------------------------------------------------------------------------------------------------

    def _barrier(self, name: str, op: Op) -> View:
        view = self.names.view(name, op)
        if not view.allocation.barrier:
            raise RefusedError("an mbarrier that the kernel does not initialise before it forks", op.where)
        view.allocation.used = True
        return view

    def _slot_key(self, view: View) -> Key:
        return const(0) if view.slot is None and view.allocation.slots == 1 else view.slot or unknown("all")

    def _slot(self, view: View, op: Op) -> IntExpr:
        key, slots = self._slot_key(view), view.allocation.slots
        if key[0] == "const" and 0 <= key[1] < slots:
            return Const(key[1])
        if key[0] == "rem" and key[2] == slots and key[1][0] == "counter":
            return BinOp("%", Name(key[1][1]), Const(slots))
        if key[0] == "counter" and self.limits.get(key[1], slots + 1) <= slots:
            return BinOp("%", Name(key[1]), Const(slots))
        raise RefusedError("which slot of the ring this is, is not understood", op.where)

    def _unconditional(self, predicate: str | None, op: Op, what: str) -> None:
        if predicate is not None and self.names.key(predicate) != const(1):
            raise RefusedError(f"a {what} under a predicate", op.where)

    def _synchronise(self, op: Op) -> None:
        """At every synchronisation: writes before it that are not fenced stay so, and loads must be complete."""
        self.unfenced, self.unawaited = [], []
        if self.transaction is not None:
            raise RefusedError("the mbarrier expects bytes that are not loaded before the next operation", op.where)

    def _fresh(self, prefix: str) -> str:
        self.counters += 1
        return f"{prefix}{self.role}_{self.counters}"


_HANDLERS = {
    "scf.for": RoleReader._for,
    "scf.if": RoleReader._if,
    "scf.yield": RoleReader._end,
    "ttg.warp_yield": RoleReader._end,
    "ttg.warp_return": RoleReader._end,
    "ttng.wait_barrier": RoleReader._wait,
    "ttng.arrive_barrier": RoleReader._arrive,
    "ttng.barrier_expect": RoleReader._expect,
    "ttng.async_tma_copy_global_to_local": RoleReader._copy_in,
    "ttng.async_tma_copy_local_to_global": RoleReader._copy_out,
    "ttng.async_tma_store_wait": RoleReader._store_wait,
    "ttng.fence_async_shared": RoleReader._fence,
    "ttng.warp_group_dot": RoleReader._dot,
    "ttng.warp_group_dot_wait": RoleReader._dot_wait,
    "ttg.local_alloc": RoleReader._alloc,
    "ttg.local_store": RoleReader._store,
    "ttg.local_load": RoleReader._load,
    "ttg.memdesc_index": RoleReader._index,
    "ttg.memdesc_trans": RoleReader._transpose,
    "ttg.memdesc_reinterpret": RoleReader._reinterpret,
}


def buffer_name(allocation: Allocation) -> str:
    """How reports name an allocation: its kind, its SSA name, its shape."""
    kind = "mbarriers" if allocation.barrier else "ring" if allocation.role is None else "staging"
    shape = "x".join(map(str, allocation.type.shape))
    where = "" if allocation.role is None else f".{allocation.role}"
    return f"{kind}{where}.{allocation.name.lstrip('%')}[{shape}x{allocation.type.element}]"


def event_name(allocation: Allocation) -> str:
    return f"mbarrier.{allocation.name.lstrip('%')}"


def _stepping_loop(op: Op, position: int, names: Names) -> Op | None:
    """The loop in which the integer that ``op`` carries at ``position`` is incremented by one: ``op`` itself, or one
    nested in it that carries it on; None if it changes in another way."""
    argument = parse_for(op).inits[position][0]
    body = op.regions[0].ops
    if not body or body[-1].name != "scf.yield":
        return None
    yielded = split_types(match(_YIELD, body[-1])["values"])[position]
    for each in body:
        if yielded not in each.results:
            continue
        if each.name == "arith.addi":
            found = match(_ADD, each)
            operands = [found["left"], found["right"]]
            other = operands[1 - operands.index(argument)] if argument in operands else argument
            return op if names.key(other) == const(1) else None
        if each.name == "scf.for":
            inner = each.results.index(yielded)
            carried_on = parse_for(each).inits[inner][1] == argument
            return _stepping_loop(each, inner, names) if carried_on else None
    return None
