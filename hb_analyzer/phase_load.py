"""Read the phases of a pattern file: signals, accesses, slots. See ``pattern_load.py`` for the file around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .expressions import ExpressionError, parse_expression
from .json_reader import Node
from .model import WHOLE, Buffer, Const, IntExpr, Region
from .pattern import OpaqueNote, Phase, PhaseAccess, Signal

_PHASE_KEYS = (
    *("label", "signal_in", "signal_out", "buffers", "reads", "writes", "accesses", "loop", "async", "completes"),
    *("fenced", "when", "barrier", "commit", "drain", "step", "opaque", "where", "description", "notes"),
)
_ACCESS_KEYS = (
    *("buffer", "mode", "slot", "region", "ends", "event", "event_slot", "proxy", "fenced", "label", "where"),
)
_MODES = {"read": "r", "write": "w"}


class PhaseReader:
    """Reads phases that use ``buffers``; ``ignored`` collects the paths of keys that mean nothing."""

    def __init__(self, buffers: Mapping[str, Buffer], ignored: list[str]) -> None:
        self.buffers, self.ignored = buffers, ignored

    def known(self, node: Node, keys: Iterable[str]) -> None:
        self.ignored += [f"{node.path}.{key}" for key in node.unknown_keys(keys)]

    def phase(self, node: Node, position: int) -> Phase:
        self.known(node, _PHASE_KEYS)
        loop, when, barrier = node.get("loop"), node.get("when"), node.get("barrier")
        commit, drain, label = node.get("commit"), node.get("drain"), node.get("label")
        path = tuple(part.name() for part in loop.one_or_many()) if loop else ()
        if loop and len(set(path)) < len(path):
            raise loop.error("a loop cannot be nested in itself")
        return Phase(
            label=label.string() if label else f"phase {position}",
            waits=self._signals(node.get("signal_in")),
            triggers=self._signals(node.get("signal_out")),
            accesses=self._accesses(node),
            loop=path,
            when=expression(when) if when else None,
            barriers=tuple(part.name() for part in barrier.one_or_many()) if barrier else (),
            commit=commit.boolean() if commit else False,
            drain=drain.integer(0) if drain else None,
            steps=self._steps(node.get("step")),
            opaque=self._opaque(node.get("opaque")),
            where=optional_text(node, "where") or None,
        )

    def _signals(self, node: Node | None) -> tuple[Signal, ...]:
        signals = []
        for part in node.one_or_many() if node else ():
            if part.is_object():
                self.known(part, ("event", "slot"))
                slot = part.get("slot")
                signals.append(Signal(part.require("event").name(), integer_or_expression(slot) if slot else None))
            elif isinstance(part.value, str):
                signals.append(Signal(part.name()))
            else:
                raise part.wrong_type("an event: a string, null, an object, or a list of these")
        return tuple(signals)

    @staticmethod
    def _steps(node: Node | None) -> tuple[tuple[str, int], ...]:
        return tuple((name, by.integer(0)) for name, by in node.items()) if node else ()

    def _opaque(self, node: Node | None) -> OpaqueNote | None:
        if node is None:
            return None
        self.known(node, ("reason", "buffers", "events"))
        buffers, events = node.get("buffers"), node.get("events")
        return OpaqueNote(
            node.require("reason").string(),
            tuple(self._buffer(part) for part in buffers.one_or_many()) if buffers else (),
            tuple(part.name() for part in events.one_or_many()) if events else (),
        )

    def _accesses(self, phase: Node) -> tuple[PhaseAccess, ...]:
        """Reads first, then what is only listed in ``buffers``, then writes; or ``accesses`` in its own order."""
        listed = phase.get("buffers")
        names = {self._buffer(part): part for part in listed.one_or_many()} if listed else {}
        ordered = phase.get("accesses")
        if ordered is not None:
            for key in ("reads", "writes"):
                if clash := phase.get(key):
                    raise clash.error(f'"{key}" and "accesses" exclude each other')
            return tuple(self._access(part, phase, None) for part in ordered.elements())
        reads, writes = phase.get("reads"), phase.get("writes")
        read = [self._access(part, phase, "r") for part in (reads.one_or_many() if reads else ())]
        written = [self._access(part, phase, "w") for part in (writes.one_or_many() if writes else ())]
        said = {access.buffer for access in (*read, *written)}
        maybe = [self._access(part, phase, "rw?") for name, part in names.items() if name not in said]
        return (*read, *maybe, *written)

    def _access(self, node: Node, phase: Node, mode: str | None) -> PhaseAccess:
        """An entry of ``reads``, ``writes`` or ``buffers``, or of ``accesses`` (``mode`` None)."""
        asynchronous, completes, fenced = phase.get("async"), phase.get("completes"), phase.get("fenced")
        event = completes.name() if completes else None
        is_async = asynchronous.boolean() if asynchronous else False
        if completes and not is_async:
            raise completes.error('"completes" needs "async": true')
        ends = "here" if not is_async else "event" if event else "never"
        proxy = "async" if is_async else "generic"
        is_fenced = fenced.boolean() if fenced else True
        if not node.is_object():
            if mode is None:
                raise node.wrong_type("an object")
            return PhaseAccess(self._buffer(node), mode, ends=ends, event=event, proxy=proxy, fenced=is_fenced)

        self.known(node, _ACCESS_KEYS)
        buffer = self._buffer(node.require("buffer"))
        given_mode = node.get("mode")
        if mode is None:
            mode = _MODES[node.require("mode").choice(_MODES)]
        elif given_mode:
            raise given_mode.error('"mode" is for entries of "accesses"')
        if given_ends := node.get("ends"):
            ends, event = given_ends.choice(("here", "event", "group", "never")), None
        if given_event := node.get("event"):
            event = given_event.name()
        if (ends == "event") != (event is not None):
            raise node.error('"ends": "event" needs "event", and the other way round')
        slot, event_slot, region = node.get("slot"), node.get("event_slot"), node.get("region")
        given_proxy, given_fenced = node.get("proxy"), node.get("fenced")
        return PhaseAccess(
            buffer,
            mode,
            slot=integer_or_expression(slot) if slot else None,
            region=_region(region, self.buffers[buffer]) if region else WHOLE,
            ends=ends,
            event=event,
            event_slot=integer_or_expression(event_slot) if event_slot else None,
            proxy=given_proxy.choice(("generic", "async")) if given_proxy else proxy,
            fenced=given_fenced.boolean() if given_fenced else is_fenced,
            label=optional_text(node, "label") or None,
            where=optional_text(node, "where") or None,
        )

    def _buffer(self, node: Node) -> str:
        name = node.name()
        if name not in self.buffers:
            known = ", ".join(self.buffers) or "none"
            raise node.error(f'"{name}" is not in "shared_buffers" (known: {known})')
        return name


def _region(node: Node, buffer: Buffer) -> Region:
    """``null``: unknown. Else one [low, high] per dimension of the buffer's ``shape``."""
    if node.value is None:
        return None
    axes = node.elements()
    if len(axes) != len(buffer.shape):
        raise node.error(f'{len(axes)} dimensions, but the "shape" of {buffer.name} has {len(buffer.shape)}')
    bounds = []
    for axis, extent in zip(axes, buffer.shape, strict=True):
        ends = axis.elements()
        if len(ends) != 2:
            raise axis.error("expected [low, high]")
        low = ends[0].integer(0)
        high = ends[1].integer(low + 1)
        if high > extent:
            raise ends[1].error(f"{high} is past the end of the dimension ({extent})")
        bounds.append((low, high))
    return tuple(bounds)


def expression(node: Node) -> IntExpr:
    try:
        return parse_expression(node.string())
    except ExpressionError as error:
        raise node.error(str(error)) from None


def integer_or_expression(node: Node) -> IntExpr:
    return expression(node) if isinstance(node.value, str) else Const(node.integer(0))


def optional_text(node: Node, key: str) -> str:
    """An optional string; a list of strings is joined (long notes)."""
    member = node.get(key)
    return " ".join(part.string() for part in member.one_or_many()) if member else ""
