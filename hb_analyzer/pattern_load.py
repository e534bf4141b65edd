"""Read a pattern file. Every mistake in it is one line: file, JSON path, what is wrong (:class:`PatternError`)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from .expectations import read_expectations
from .json_reader import Node, parse_json, read_json
from .model import BinOp, Buffer, Const, IntExpr, Name, Parameter, names_in
from .pattern import EventSpec, LoopSpec, Pattern, WarpGroup
from .phase_load import PhaseReader, integer_or_expression, optional_text

_PATTERN_KEYS = (
    *("kernel", "framework", "arch", "notes", "description", "warp_groups", "shared_buffers", "events", "loops"),
    *("parameters", "barriers", "stages", "assumptions", "expect"),
)
# A slot of a ring is an mbarrier, or a part of a buffer that has one: 8 bytes each, of at most 227 KiB in a CTA.
MAX_SLOTS = 227 * 1024 // 8
_GROUP_KEYS = ("wg_id", "role", "phases", "kind", "description", "notes")
_BUFFER_KEYS = ("size_bytes", "description", "align", "stages", "shape", "barrier_storage", "notes")


def load_pattern(path: str | Path) -> Pattern:
    """The pattern in a file. Raises PatternError."""
    return _Loader(read_json(Path(path))).load()


def parse_pattern(text: str, file: str = "<pattern>") -> Pattern:
    """The pattern in a text. Raises PatternError; ``file`` is used in messages only."""
    return _Loader(parse_json(text, file)).load()


class _Loader:
    def __init__(self, root: Node) -> None:
        self.root = root
        self.buffers: dict[str, Buffer] = {}
        self.loops: dict[str, LoopSpec] = {}
        self.parameters: dict[str, Parameter] = {}
        self.ignored: list[str] = []
        self.marked = False
        self.reader = PhaseReader(self.buffers, self.ignored)

    def load(self) -> Pattern:
        root = self.root
        self.reader.known(root, _PATTERN_KEYS)
        undeclared_stages = self._read_buffers(root.require("shared_buffers"))
        self._read_parameters(root.get("parameters"))
        self._read_loops(root.get("loops"))
        groups = self._read_groups(root.require("warp_groups"))
        kernel, stages, expect = root.get("kernel"), root.get("stages"), root.get("expect")
        assumptions = root.get("assumptions")
        return Pattern(
            kernel=kernel.name() if kernel else Path(root.file).stem,
            groups=groups,
            buffers=tuple(self.buffers.values()),
            events=self._read_events(root.get("events")),
            loops=self.loops,
            parameters=tuple(self.parameters.values()),
            barriers=self._read_barriers(root.get("barriers"), groups),
            marked=self.marked,
            stages=stages.integer(1, MAX_SLOTS) if stages else None,
            undeclared_stages=undeclared_stages,
            framework=optional_text(root, "framework"),
            arch=optional_text(root, "arch"),
            notes=optional_text(root, "notes"),
            assumptions=tuple(node.string() for node in assumptions.one_or_many()) if assumptions else (),
            expect=read_expectations(expect) if expect else None,
            ignored=tuple(self.ignored),
            file=root.file,
        )

    # -- declarations

    def _read_buffers(self, node: Node) -> frozenset[str]:
        """Fills ``self.buffers``; returns the names of those whose number of stages the file does not say."""
        undeclared = set()
        for name, spec in node.items():
            self.reader.known(spec, _BUFFER_KEYS)
            size = spec.require("size_bytes").integer(1)
            align_node, stages_node, storage = spec.get("align"), spec.get("stages"), spec.get("barrier_storage")
            align = align_node.integer(1) if align_node else 16
            if align_node and align & (align - 1):
                raise align_node.error(f"expected a power of two, got {align}")
            stages = stages_node.integer(1, MAX_SLOTS) if stages_node else 1
            if stages_node and size % stages:
                raise stages_node.error(f"size_bytes {size} is not a multiple of {stages} stages")
            if not stages_node:
                undeclared.add(name)
            shape = spec.get("shape")
            self.buffers[name] = Buffer(
                name,
                size,
                align,
                stages,
                shape=tuple(extent.integer(1) for extent in shape.elements()) if shape else (),
                description=optional_text(spec, "description"),
                barrier_storage=storage.boolean() if storage else False,
            )
        return frozenset(undeclared)

    def _read_parameters(self, node: Node | None) -> None:
        for name, spec in node.items() if node else ():
            self.reader.known(spec, ("min", "max", "description"))
            self.parameters[name] = _parameter(name, spec)

    def _read_loops(self, node: Node | None) -> None:
        """``trip`` gives the trip count; without it the loop has a parameter of its own, within ``min`` and ``max``."""
        if node is None:
            return
        self.marked = True
        for name, spec in node.items():
            self.reader.known(spec, ("trip", "min", "max", "counter"))
            trip, counter = spec.get("trip"), spec.get("counter")
            counter_name = counter.name() if counter else name
            if trip is None:
                self._add_loop(name, _parameter(f"N_{name}", spec), counter_name)
            elif spec.get("min") or spec.get("max"):
                raise spec.error('"min" and "max" belong to "parameters" where "trip" is given')
            else:
                self.loops[name] = LoopSpec(counter_name, integer_or_expression(trip))
        counters = {loop.counter for loop in self.loops.values()}
        for loop in self.loops.values():
            for parameter in sorted(names_in(loop.trip) - counters):
                self.parameters.setdefault(parameter, Parameter(parameter))
        for name in sorted(counters & set(self.parameters)):
            raise node.error(f'"{name}" is both a loop counter and a parameter')

    def _add_loop(self, name: str, parameter: Parameter, counter: str) -> None:
        self.parameters[parameter.name] = parameter
        self.loops[name] = LoopSpec(counter, Name(parameter.name))

    def _read_events(self, node: Node | None) -> dict[str, EventSpec]:
        events = {}
        for name, spec in node.items() if node else ():
            self.reader.known(spec, ("slots", "initial", "arrivals", "description", "notes"))
            slots, arrivals, initial = spec.get("slots"), spec.get("arrivals"), spec.get("initial")
            events[name] = EventSpec(
                slots.integer(1, MAX_SLOTS) if slots else None,
                arrivals.integer(1) if arrivals else None,
                None if initial is None else _initial(initial),
            )
        return events

    def _read_barriers(self, node: Node | None, groups: tuple[WarpGroup, ...]) -> dict[str, tuple[str, ...]]:
        """Members as declared; of an undeclared barrier, the roles that use it."""
        names = [group.name for group in groups]
        declared: dict[str, tuple[str, ...]] = {}
        for name, spec in node.items() if node else ():
            for part in spec.elements():
                if part.name() not in names:
                    raise part.error(f'no warpgroup "{part.value}" (known: {", ".join(names)})')
            declared[name] = tuple(dict.fromkeys(spec.value))
        barriers: dict[str, list[str]] = {name: list(members) for name, members in declared.items()}
        for group, spec in zip(groups, self.root.require("warp_groups").elements(), strict=True):
            for phase, phase_node in zip(group.phases, spec.require("phases").elements(), strict=True):
                for name in phase.barriers:
                    members = barriers.setdefault(name, [])
                    if group.name in members:
                        continue
                    if name in declared:
                        where = phase_node.require("barrier")
                        raise where.error(f'"{group.name}" is not a member of barrier "{name}"')
                    members.append(group.name)
        return {name: tuple(members) for name, members in barriers.items()}

    # -- roles

    def _read_groups(self, node: Node) -> tuple[WarpGroup, ...]:
        elements = node.elements()
        if not elements:
            raise node.error("expected at least one warpgroup")
        ids, roles = [], []
        for i, spec in enumerate(elements):
            self.reader.known(spec, _GROUP_KEYS)
            wg_id, role = spec.get("wg_id"), spec.get("role")
            if wg_id is not None and not isinstance(wg_id.value, str):
                wg_id.integer(0)
            ids.append(str(wg_id.value) if wg_id is not None else str(i))
            roles.append(role.name() if role else f"wg{ids[-1]}")
        shared = Counter(roles)
        groups: dict[str, WarpGroup] = {}
        for spec, id_text, role_text in zip(elements, ids, roles, strict=True):
            name = role_text if shared[role_text] == 1 else f"{role_text}_{id_text}"
            if name in groups:
                raise spec.error(f'two warpgroups are called "{name}"; give them different "wg_id" or "role"')
            groups[name] = self._read_group(spec, name, role_text)
        return tuple(groups.values())

    def _read_group(self, spec: Node, name: str, role: str) -> WarpGroup:
        nodes = spec.require("phases").elements()
        phases = tuple(self.reader.phase(node, i) for i, node in enumerate(nodes))
        for phase, node in zip(phases, nodes, strict=True):
            self.marked = self.marked or node.get("loop") is not None
            for loop in phase.loop:
                if loop not in self.loops:
                    if loop in self.parameters:
                        raise node.require("loop").error(f'"{loop}" is both a loop and a parameter')
                    self._add_loop(loop, Parameter(f"N_{loop}"), loop)
        kind = spec.get("kind")
        group = WarpGroup(name, role, phases, kind.choice(("warpgroup", "thread", "cta")) if kind else "warpgroup")
        self._check_loops(group, nodes)
        self._check_names(group, nodes)
        return group

    def _check_loops(self, group: WarpGroup, nodes: list[Node]) -> None:
        """Phases of a loop are contiguous: a loop that is left is not entered again under the same name."""
        left: set[str] = set()
        previous: tuple[str, ...] = ()
        parents: dict[str, tuple[str, ...]] = {}
        for phase, node in zip(group.phases, nodes, strict=True):
            shorter = min(len(previous), len(phase.loop))
            common = next((i for i in range(shorter) if previous[i] != phase.loop[i]), shorter)
            left.update(previous[common:])
            for depth, name in enumerate(phase.loop):
                if parents.setdefault(name, phase.loop[:depth]) != phase.loop[:depth] or name in left:
                    raise node.error(f'loop "{name}" was left before; a second loop of the role needs another name')
            counters = [self.loops[name].counter for name in phase.loop]
            if len(set(counters)) < len(counters):
                raise node.error(f"two loops around this phase have the same counter ({', '.join(counters)})")
            previous = phase.loop

    def _check_names(self, group: WarpGroup, nodes: list[Node]) -> None:
        """Every name in an expression is a counter of a loop around the phase, a parameter or a stepped counter."""
        stepped = {name for phase in group.phases for name, _ in phase.steps}
        for phase, node in zip(group.phases, nodes, strict=True):
            known = {self.loops[name].counter for name in phase.loop} | stepped | set(self.parameters)
            given = [phase.when, *(signal.slot for signal in (*phase.waits, *phase.triggers))]
            given += [expr for access in phase.accesses for expr in (access.slot, access.event_slot)]
            for expr in [expr for expr in given if expr is not None]:
                for name in sorted(names_in(expr) - known):
                    raise node.error(f'"{name}" in "{expr}" is no loop around this phase, parameter or stepped counter')
                self._check_divisors(expr, node)
            for name in phase.loop:
                self._check_divisors(self.loops[name].trip, node)

    def _check_divisors(self, expr: IntExpr, node: Node) -> None:
        """Divisors are positive constants, or parameters that are at least 1."""
        if not isinstance(expr, BinOp):
            return
        if expr.op in ("/", "%", "cdiv"):
            right = expr.right
            positive = isinstance(right, Const) and right.value > 0
            if isinstance(right, Name) and right.name in self.parameters:
                positive = self.parameters[right.name].minimum > 0
            if not positive:
                raise node.error(f'"{right}" in "{expr}" may be 0: divide by a constant or by a parameter of "min" 1')
        self._check_divisors(expr.left, node)
        self._check_divisors(expr.right, node)


def _parameter(name: str, spec: Node) -> Parameter:
    low, high = spec.get("min"), spec.get("max")
    minimum = low.integer(0) if low else 0
    maximum = high.integer(minimum) if high and high.value is not None else None
    return Parameter(name, minimum, maximum)


def _initial(node: Node) -> int:
    """``true`` counts as one setting."""
    return int(node.value) if isinstance(node.value, bool) else node.integer(0)
