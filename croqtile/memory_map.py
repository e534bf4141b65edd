"""``--memory-map``: the placement of a kernel's shared buffers as an SVG picture, address against time.

Left every buffer in its own place, right with overlap. A box is as high as its buffer is large and as wide as it is
live: from its first to its last use in program order, the role's main loop in the middle. Boxes above each other are
disjoint in memory; boxes beside each other share addresses at different times. The time axis is a hint for the eye;
the proof is in ``--explain``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from croqtile import smem
from croqtile.analyse import Analysis
from hb_analyzer import model
from hb_analyzer.report import Placement

# Okabe and Ito's palette, lightened: distinguishable with colour-blindness, and dark text stays readable on it.
_COLOURS = ("#8ec6e8", "#f4c26b", "#7fcfb0", "#e3a5c7", "#f2e27a", "#e8986b", "#9fb3dd", "#c9c9c9")
_INK, _FAINT, _GRID = "#22303c", "#6b7a86", "#e3e8ec"

_PANEL_WIDTH, _PLOT_HEIGHT = 380, 440
_MARGIN, _AXIS, _HEAD, _FOOT = 28, 62, 92, 64
_NOTCH = 10  # marks between the slots of a buffer, at both edges
_BANDS = ("before the loop", "main loop", "after the loop")
_BAND_WIDTHS = (0.2, 0.42, 0.38)


def draw(analyses: Sequence[Analysis]) -> str:
    """One SVG document, the kernels of the file below each other."""
    height = _HEAD + _PLOT_HEIGHT + _FOOT
    width = 2 * (_PANEL_WIDTH + _AXIS) + 3 * _MARGIN
    body = "".join(
        f'<g transform="translate(0 {i * height})">{_kernel(a, width)}</g>\n' for i, a in enumerate(analyses)
    )
    total = height * max(1, len(analyses))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{total}" viewBox="0 0 {width} {total}" '
        f'font-family="Helvetica, Arial, sans-serif" fill="{_INK}">\n'
        f'<rect width="{width}" height="{total}" fill="#ffffff"/>\n{body}</svg>\n'
    )


def _kernel(analysis: Analysis, width: int) -> str:
    apart, overlaid = analysis.separate, analysis.report.placement
    names = [buffer.name for buffer in analysis.kernel.buffers]
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
    times = lifetimes(analysis.program)
    top = max(apart.size, overlaid.size, 1)
    saved = apart.size - overlaid.size
    percent = f", {100 * saved / apart.size:.3g} % less" if saved else ""
    parts = [
        _text(_MARGIN, 34, analysis.kernel.name, size=20, weight="bold"),
        _text(_MARGIN, 56, f"{_kib(apart.size)} → {_kib(overlaid.size)} of shared memory per block{percent}", size=13),
    ]
    panels = (("each buffer in its own place", apart), ("overlapped where provably safe (SALA)", overlaid))
    for number, (title, placement) in enumerate(panels):
        x = _MARGIN + _AXIS + number * (_PANEL_WIDTH + _AXIS + _MARGIN)
        parts.append(_panel(analysis, title, placement, x, top, colours, times))
    return "".join(parts)


def _panel(
    analysis: Analysis,
    title: str,
    placement: Placement,
    x: float,
    top: int,
    colours: Mapping[str, str],
    times: Mapping[str, tuple[float, float]],
) -> str:
    scale = _PLOT_HEIGHT / top
    bottom = _HEAD + _PLOT_HEIGHT
    parts = [_text(x, _HEAD - 12, f"{title}: {placement.size} B", size=12, weight="bold")]
    for tick in range(0, top + 1, _tick(top)):
        y = bottom - tick * scale
        parts.append(_line(x, y, x + _PANEL_WIDTH, y, _GRID))
        parts.append(_text(x - 8, y + 4, f"{tick // 1024} KiB", size=10, anchor="end", colour=_FAINT))
    edge = x
    for band, share in zip(_BANDS, _BAND_WIDTHS, strict=True):
        parts.append(_text(edge + share * _PANEL_WIDTH / 2, bottom + 18, band, 10, anchor="middle", colour=_FAINT))
        edge += share * _PANEL_WIDTH
        if band != _BANDS[-1]:
            parts.append(_line(edge, _HEAD, edge, bottom + 6, _GRID, dash="3 3"))
    # Long-lived boxes first: what shares their addresses later is drawn over them.
    for buffer in sorted(analysis.kernel.buffers, key=lambda b: times[b.name][0] - times[b.name][1]):
        start, end = (_across(t) for t in times[buffer.name])
        left, right = x + start * _PANEL_WIDTH + 2, x + end * _PANEL_WIDTH - 2
        low, high = placement.offsets[buffer.name], placement.offsets[buffer.name] + buffer.bytes
        box = _Box(left, bottom - high * scale, right - left, (high - low) * scale)
        parts.append(_buffer(box, buffer.name, buffer.count, buffer.bytes, low, colours[buffer.name]))
    if top > smem.BLOCK_LIMIT:
        y = bottom - smem.BLOCK_LIMIT * scale
        parts.append(_line(x, y, x + _PANEL_WIDTH, y, "#c0392b", dash="6 3"))
        parts.append(_text(x + 4, y - 5, "limit of a block", 10, colour="#c0392b"))
    parts.append(_line(x, bottom, x + _PANEL_WIDTH, bottom, _FAINT))
    parts.append(_line(x, _HEAD, x, bottom, _FAINT))
    parts.append(_text(x + _PANEL_WIDTH, bottom + 36, "time (program order) →", 10, anchor="end", colour=_FAINT))
    return "".join(parts)


class _Box:
    def __init__(self, x: float, y: float, width: float, height: float) -> None:
        self.x, self.y, self.width, self.height = x, y, max(width, 6.0), max(height - 1.5, 1.0)


def _buffer(box: _Box, name: str, slots: int, size: int, offset: int, colour: str) -> str:
    parts = [
        f"<g><title>{escape(name)}: {size} B at offset {offset}, {slots} slot{'s' * (slots > 1)}</title>"
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="3" '
        f'fill="{colour}" stroke="{_INK}" stroke-opacity="0.55" stroke-width="0.8"/>'
    ]
    for slot in range(1, slots):
        y = box.y + box.height * slot / slots
        for edge in (box.x, box.x + box.width - _NOTCH):
            parts.append(_line(edge, y, edge + _NOTCH, y, _INK, opacity=0.45))
    middle, y = box.x + box.width / 2, box.y + box.height / 2
    count = f"{slots} × " if slots > 1 else ""
    label, detail = name, f"{count}{_kib(size // slots)}"
    if box.height >= 34 and box.width >= 7 * max(len(label), len(detail)) - 8:
        parts.append(_text(middle, y - 2, label, 12, anchor="middle", weight="bold"))
        parts.append(_text(middle, y + 12, detail, 10, anchor="middle"))
    elif box.height >= 12:
        parts.append(_text(middle, y + 4, label, min(11, box.height - 2), anchor="middle", weight="bold"))
    parts.append("</g>")
    return "".join(parts)


# --------------------------------------------------------------------------------------------------------------
# Lifetimes


def lifetimes(program: model.Program) -> dict[str, tuple[float, float]]:
    """First and last use of every buffer on a scale of 0 … 3: before, in and after the main loop of the roles.

    The main loop of a role is its last top-level loop with a trip count that is no constant.
    """
    found: dict[str, list[float]] = {buffer.name: [] for buffer in program.buffers}
    for role in program.roles:
        loops = [
            i for i, s in enumerate(role.body) if isinstance(s, model.Loop) and not isinstance(s.trip, model.Const)
        ]
        main = loops[-1] if loops else None
        before, after = (role.body[:main], role.body[main + 1 :]) if main is not None else ((), role.body)
        for start, part in ((0.0, before), (2.0, after)):
            uses = [name for statement in part for name in _used(statement)]
            for position, name in enumerate(uses):
                found[name] += [start + position / len(uses), start + (position + 1) / len(uses)]
        if main is not None:
            for name in _used(role.body[main]):
                found[name] += [1.0, 2.0]
    return {name: (min(uses), max(uses)) if uses else (0.0, 3.0) for name, uses in found.items()}


def _used(statement: model.Statement) -> list[str]:
    if isinstance(statement, model.Access):
        return [statement.buffer]
    if isinstance(statement, model.Opaque):
        return list(statement.buffers)
    if isinstance(statement, model.Loop):
        return [name for inner in statement.body for name in _used(inner)]
    if isinstance(statement, model.If):
        return [name for inner in (*statement.then, *statement.orelse) for name in _used(inner)]
    return []


def _across(time: float) -> float:
    """A time of 0 … 3 as a share of the panel's width."""
    band = min(int(time), 2)
    return sum(_BAND_WIDTHS[:band]) + (time - band) * _BAND_WIDTHS[band]


# --------------------------------------------------------------------------------------------------------------
# SVG pieces


def _tick(top: int) -> int:
    return next(step * 1024 for step in (1, 2, 4, 8, 16, 32, 64, 128) if top / (step * 1024) <= 9)


def _kib(size: int) -> str:
    return f"{size / 1024:g} KiB" if size % 1024 == 0 else f"{size} B"


def _text(
    x: float, y: float, text: str, size: float = 12, anchor: str = "start", weight: str = "normal", colour: str = _INK
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" font-weight="{weight}" '
        f'fill="{colour}">{escape(text)}</text>'
    )


def _line(
    x1: float, y1: float, x2: float, y2: float, colour: str, dash: str | None = None, opacity: float = 1.0
) -> str:
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-opacity="{opacity:g}"{dashes}/>'
    )
