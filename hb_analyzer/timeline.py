"""A timeline as SVG: roles as lanes over time, and below them who lives at which shared-memory address when."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from .model import Program
from .report import Placement, Report
from .sample_schedule import Arrow, Block, Lifetime, SampleRun, lifetimes, sample_run, trip_counts
from .table import kib

_LEFT, _RIGHT, _WIDTH = 150, 30, 1180
_LANE, _BLOCK, _GAP = 30, 24, 18
_MEMORY = 260  # height of the memory section
_FONT = "font-family='Inter, Segoe UI, Helvetica, Arial, sans-serif'"
# Fill and outline per buffer; distinguishable with the common forms of colour blindness.
_COLOURS = (
    ("#9ecae9", "#1f5f8b"),
    ("#ffbf79", "#a85b00"),
    ("#88d27a", "#2f6b25"),
    ("#ff9d98", "#a3302b"),
    ("#d6a5c9", "#7b3f6c"),
    ("#f2cf5b", "#7d6608"),
    ("#83bcb6", "#2a5f5a"),
    ("#bab0ac", "#55504d"),
)


def timeline_svg(program: Program, report: Report, parameters: Mapping[str, int] | None = None) -> str:
    """The picture of one plausible run of ``program`` with the placement of ``report``.

    ``parameters`` overrides trip counts by name. The picture shows one schedule; the verdicts hold for all.
    """
    trips = trip_counts(program, parameters or {})
    run = sample_run(program, trips)
    return _Drawing(program, report, run, trips).svg()


class _Drawing:
    def __init__(self, program: Program, report: Report, run: SampleRun, trips: Mapping[str, int]) -> None:
        self.program, self.report, self.run, self.trips = program, report, run, trips
        self.unit = (_WIDTH - _LEFT - _RIGHT) / max(run.end, 1.0)
        names = [buffer.name for buffer in program.buffers]
        self.colour = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
        self.slots = {buffer.name: buffer.slots for buffer in program.buffers}
        self.parts: list[str] = []

    def x(self, time: float) -> float:
        return _LEFT + time * self.unit

    def svg(self) -> str:
        y = self._title()
        y = self._lanes(y)
        y = self._memory(y + 40)
        y = self._legend(y + 34)
        height = y + 10
        head = (
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {_WIDTH} {height:.0f}' width='{_WIDTH}' "
            f"height='{height:.0f}' {_FONT} font-size='12'>"
        )
        defs = (
            "<defs><marker id='tip' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' orient='auto'>"
            "<path d='M0,0.8 L7.5,4 L0,7.2 z' fill='#667'/></marker>"
            "<pattern id='hatch' width='6' height='6' patternUnits='userSpaceOnUse' patternTransform='rotate(45)'>"
            "<line x1='0' y1='0' x2='0' y2='6' stroke='#fff' stroke-opacity='0.55' stroke-width='2.4'/>"
            "</pattern></defs>"
        )
        background = f"<rect width='{_WIDTH}' height='{height:.0f}' fill='#ffffff'/>"
        return "\n".join([head, defs, background, *self.parts, "</svg>"]) + "\n"

    # -- primitives

    def _text(
        self, x: float, y: float, text: str, size: int = 12, fill: str = "#223", anchor: str = "start", more: str = ""
    ) -> None:
        self.parts.append(
            f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' fill='{fill}' text-anchor='{anchor}' {more}>"
            f"{escape(text)}</text>"
        )

    def _rect(self, x: float, y: float, w: float, h: float, style: str, tip: str = "", radius: float = 3) -> None:
        title = f"<title>{escape(tip)}</title>" if tip else ""
        self.parts.append(
            f"<rect x='{x:.1f}' y='{y:.1f}' width='{max(w, 0.8):.1f}' height='{max(h, 0.8):.1f}' rx='{radius}' {style}>"
            f"{title}</rect>"
        )

    def _line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        self.parts.append(f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' {style}/>")

    # -- sections

    def _title(self) -> float:
        report = self.report
        self._text(20, 30, self.program.name, 18, more="font-weight='600'")
        saved = report.baseline - report.placement.size
        share = f" (−{100 * saved / report.baseline:.0f} %)" if saved and report.baseline else ""
        trips = ", ".join(f"{name} = {value}" for name, value in self.trips.items())
        facts = [
            f"{kib(report.baseline)} → {kib(report.placement.size)}{share}",
            trips,
            "one of the possible schedules",
        ]
        self._text(20, 50, "   ·   ".join(fact for fact in facts if fact), 12, "#556")
        if self.run.stuck:
            self._text(20, 68, "stuck at " + "; ".join(self.run.stuck), 12, "#a3302b", more="font-weight='600'")
            return 92.0
        return 76.0

    def _lanes(self, y: float) -> float:
        edges: dict[str, tuple[float, float]] = {}  # top and bottom of each lane
        drawn: list[tuple[Block, float]] = []
        for role in self.program.roles:
            rows = _pack([block for block in self.run.blocks if block.role == role.name])
            height = max(len(rows), 1) * _LANE
            self._rect(_LEFT, y, _WIDTH - _LEFT - _RIGHT, height, "fill='#f4f6f9'", radius=4)
            self._text(_LEFT - 12, y + height / 2 + 4, role.name, 13, anchor="end", more="font-weight='600'")
            edges[role.name] = (y, y + height)
            drawn += [(block, y + i * _LANE + (_LANE - _BLOCK) / 2) for i, row in enumerate(rows) for block in row]
            y += height + _GAP
        for name, time, members in self.run.barriers:
            top = min(edges[member][0] for member in members)
            bottom = max(edges[member][1] for member in members)
            style = "stroke='#7b3f6c' stroke-width='2.5' stroke-dasharray='1 4' stroke-linecap='round'"
            x = self.x(time)
            self._line(x, top, x, bottom, style)
            self._text(x + 4, top - 3, name, 9, "#7b3f6c")
        for block, top in drawn:
            self._block(block, top)
        for arrow in self.run.arrows:
            self._arrow(arrow, edges)
        return y

    def _block(self, block: Block, top: float) -> None:
        x, width = self.x(block.begin) + 0.7, (block.end - block.begin) * self.unit - 1.4
        buffers = list(dict.fromkeys(use.buffer for use in block.uses))
        iteration = f" [{','.join(map(str, block.iteration))}]" if block.iteration else ""
        uses = sorted(
            {f"{'writes' if u.mode == 'w' else 'reads'} {self._slot_name(u.buffer, u.slot)}" for u in block.uses}
        )
        tip = f"{block.role}: {block.label}{iteration}\n{', '.join(uses)}"
        stripe = _BLOCK / max(len(buffers), 1)
        for i, name in enumerate(buffers):
            self._rect(x, top + i * stripe, width, stripe, f"fill='{self.colour[name][0]}'", tip, radius=0)
        outline = self.colour[buffers[0]][1] if buffers else "#667"
        if block.asynchronous:
            self._rect(x, top, width, _BLOCK, "fill='url(#hatch)'", tip, radius=0)
        dash = " stroke-dasharray='4 2'" if block.asynchronous else ""
        self._rect(x, top, width, _BLOCK, f"fill='none' stroke='{outline}'{dash}", tip, radius=2)
        full = block.label + iteration
        label = full if _fit(full, width) == full else _fit(block.label, width)
        if label:
            halo = "stroke='#fff' stroke-width='2.5' stroke-opacity='0.6' paint-order='stroke'"
            self._text(x + width / 2, top + _BLOCK / 2 + 4, label, 11, "#112", "middle", halo)

    def _arrow(self, arrow: Arrow, edges: Mapping[str, tuple[float, float]]) -> None:
        """From lane to lane; pale where the waiting role did not have to wait."""
        if arrow.source == arrow.target:
            return
        (source_top, source_bottom), (target_top, target_bottom) = edges[arrow.source], edges[arrow.target]
        down = target_top > source_top
        y1, y2 = (source_bottom - 3, target_top + 3) if down else (source_top + 3, target_bottom - 3)
        x1 = self.x(arrow.sent)
        x2, middle = max(self.x(arrow.received), x1 + 1.5), (y1 + y2) / 2
        opacity = 0.85 if arrow.held else 0.3
        tip = f"{arrow.event}: {arrow.source} to {arrow.target}"
        self.parts.append(
            f"<path d='M{x1:.1f},{y1:.1f} C{x1:.1f},{middle:.1f} {x2:.1f},{middle:.1f} {x2:.1f},{y2:.1f}' fill='none' "
            f"stroke='#556' stroke-opacity='{opacity}' marker-end='url(#tip)'><title>{escape(tip)}</title></path>"
        )

    # -- memory

    def _memory(self, y: float) -> float:
        placement = self.report.placement
        self._text(20, y - 12, "Shared memory by address", 13, more="font-weight='600'")
        scale = _MEMORY / max(placement.size, 1)
        self._rect(_LEFT, y, _WIDTH - _LEFT - _RIGHT, _MEMORY, "fill='#f4f6f9'", radius=0)
        last = -20.0
        edges = {0, placement.size, *placement.offsets.values()}
        edges |= {placement.offsets[name] + placement.sizes[name] for name in placement.offsets}
        for address in sorted(edges):
            line = y + address * scale
            self._line(_LEFT, line, _WIDTH - _RIGHT, line, "stroke='#c9d0da' stroke-dasharray='2 3'")
            if line - last >= 13:
                self._text(_LEFT - 12, line + 4, str(address), 11, "#667", "end")
                last = line
        for life in lifetimes(self.run):
            if life.buffer in placement.offsets:
                self._lifetime(life, placement, y, scale)
        self._line(_LEFT, y + _MEMORY + 12, _WIDTH - _RIGHT, y + _MEMORY + 12, "stroke='#99a' marker-end='url(#tip)'")
        self._text(_WIDTH - _RIGHT, y + _MEMORY + 27, "time", 11, "#667", "end")
        return y + _MEMORY + 20

    def _lifetime(self, life: Lifetime, placement: Placement, y: float, scale: float) -> None:
        stride = placement.sizes[life.buffer] / self.slots[life.buffer]
        low = placement.offsets[life.buffer] + life.slot * stride
        fill, outline = self.colour[life.buffer]
        x, width, height = self.x(life.begin), (life.end - life.begin) * self.unit, stride * scale
        tip = f"{self._slot_name(life.buffer, life.slot)}: bytes {low:.0f} to {low + stride:.0f}"
        style = f"fill='{fill}' fill-opacity='0.9' stroke='{outline}'"
        self._rect(x + 0.7, y + low * scale + 0.7, width - 1.4, height - 1.4, style, tip, radius=2)
        label = _fit(self._slot_name(life.buffer, life.slot), width)
        if label and height >= 13:
            self._text(x + width / 2, y + (low + stride / 2) * scale + 4, label, 11, "#112", "middle")

    def _legend(self, y: float) -> float:
        placement = self.report.placement
        x: float = _LEFT
        for buffer in self.program.buffers:
            stages = f" in {buffer.slots} stages" if buffer.slots > 1 else ""
            offset = f" at {placement.offsets[buffer.name]}" if buffer.name in placement.offsets else ""
            text = f"{buffer.name}: {buffer.size} B{stages}{offset}"
            width = 34 + 6.4 * len(text)
            if x + width > _WIDTH - _RIGHT and x > _LEFT:
                x, y = _LEFT, y + 22
            fill, outline = self.colour[buffer.name]
            self._rect(x, y - 10, 14, 12, f"fill='{fill}' stroke='{outline}'", radius=2)
            self._text(x + 20, y, text, 12, "#334")
            x += width
        y += 22
        self._rect(_LEFT, y - 10, 14, 12, "fill='#bab0ac'", radius=0)
        self._rect(_LEFT, y - 10, 14, 12, "fill='url(#hatch)' stroke='#55504d' stroke-dasharray='4 2'", radius=0)
        self._text(_LEFT + 20, y, "asynchronous: runs on while its role goes on", 12, "#556")
        return y + 6

    def _slot_name(self, buffer: str, slot: int) -> str:
        return f"{buffer}[{slot}]" if self.slots.get(buffer, 1) > 1 else buffer


def _pack(blocks: list[Block]) -> list[list[Block]]:
    """Rows in which no two blocks overlap in time."""
    rows: list[list[Block]] = []
    for block in sorted(blocks, key=lambda block: (block.begin, block.end)):
        for row in rows:
            if row[-1].end <= block.begin + 1e-9:
                row.append(block)
                break
        else:
            rows.append([block])
    return rows


def _fit(text: str, width: float) -> str:
    """The text, shortened to ``width`` pixels; nothing where less than four characters fit."""
    room = int(width / 6.3)
    if len(text) <= room:
        return text
    return text[: room - 1] + "…" if room >= 4 else ""
