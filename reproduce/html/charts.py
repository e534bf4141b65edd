"""Figures 2 and 3 as bar charts: the paper's bars hatched, ours filled; base light, SALA dark."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce import claims
from reproduce.results import Document
from reproduce.tables import MEASURED, Cell, Scalar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BASE, _SALA, _INK, _FAINT = "#b9c7d3", "#1f5f8b", "#22303c", "#6b7a86"
_KIB = 1024

# How a chart is laid out: for a page as wide as a desk's screen or paper, and for a telephone.
WIDE, NARROW = "wide", "narrow"


@dataclass(frozen=True)
class Series:
    """One bar per label; None where there is no value."""

    name: str
    values: tuple[float | None, ...]
    colour: str
    hatched: bool = False


def charts(document: Document) -> dict[str, Callable[[str], Figure]]:
    """The figures that a document has, by name; each draws itself for WIDE or NARROW."""
    if document.step == "figure2":
        return {"figure2": lambda layout: figure2(document, layout)}
    if document.step == "figure3":
        return {"figure3": lambda layout: figure3(document, layout)}
    return {}


def figure2(document: Document, layout: str) -> Figure:
    """Shared memory per CTA in KiB; the number at a pair of bars is SALA's saving in percent, ours."""
    rows = document.tables[0].rows
    labels = [row.label.partition(" ")[2] for row in rows]
    series = _four(rows, scale=1 / _KIB)
    notes = [
        ""
        if row.cells["saving"].value is None
        else f"−{row.cells['saving'].value} %"
        + ("*" if row.cells["base"].reason and row.cells["base"].status == MEASURED else "")
        for row in rows
    ]
    figure, (axes,) = _figure(layout, 1, len(labels))
    _bars(axes, labels, series, notes, layout)
    _limit(axes, layout)
    _axis(axes, "shared memory per CTA [KiB]", layout)
    _legend(figure, axes, layout)
    return figure


def figure3(document: Document, layout: str) -> Figure:
    """TFLOPS of base and SALA, and their ratio, which is the claim."""
    rows = document.tables[0].rows
    labels = [row.label.replace(" at 1 CTA/SM", "\nat 1 CTA/SM") for row in rows]
    figure, (upper, lower) = _figure(layout, 2, len(labels))
    _bars(upper, labels, _four(rows, scale=1.0), [""] * len(labels), layout)
    _axis(upper, "TFLOPS", layout)
    ratio = [row.cells["ratio"] for row in rows]
    pair = [
        Series("ratio, paper", tuple(_number(cell.paper) for cell in ratio), _SALA, hatched=True),
        Series("ratio, ours", tuple(_number(cell.value) for cell in ratio), _SALA),
    ]
    notes = [
        "" if (value := _number(cell.value)) is None else f"{value:.2f}{'†' if cell.slowed_by else ''}"
        for cell in ratio
    ]
    _bars(lower, labels, pair, notes, layout)
    _axis(lower, "SALA / base (the claim)", layout)
    line = lower.axhline if layout == WIDE else lower.axvline
    line(1.0, color=_INK, linewidth=0.8, linestyle=(0, (4, 3)))
    _legend(figure, upper, layout)
    return figure


def svg_text(figure: Figure) -> str:
    """The figure as SVG whose text stays text, the same bytes for the same data."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "sala"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """``name.svg`` and ``name.png`` in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    vector, pixels = folder / f"{name}.svg", folder / f"{name}.png"
    vector.write_text(svg_text(figure), encoding="utf-8")
    figure.savefig(pixels, format="png", dpi=160)
    return [vector, pixels]


# --------------------------------------------------------------------------------------------------------------
# Pieces


def _four(rows: Sequence[Any], scale: float) -> list[Series]:
    made = []
    for key, name, colour in (("base", "base", _BASE), ("sala", "SALA", _SALA)):
        cells: list[Cell] = [row.cells[key] for row in rows]
        paper = tuple(_number(cell.paper, scale) for cell in cells)
        made.append(Series(f"{name}, paper", paper, colour, hatched=True))
        made.append(Series(f"{name}, ours", tuple(_number(cell.value, scale) for cell in cells), colour))
    return made


def _number(value: Scalar, scale: float = 1.0) -> float | None:
    return value * scale if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _figure(layout: str, panels: int, groups: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure  # without pyplot: no display, no global state

    stacked = {} if panels == 1 else {"height_ratios": [3, 2]}
    if layout == WIDE:
        size, shares = (11.0, 4.0 if panels == 1 else 6.4), stacked
    else:
        size, shares = (4.4, panels * (0.62 * groups + 1.2)), {}
    figure = Figure(figsize=size, layout="constrained")
    made = figure.subplots(panels, 1, squeeze=False, sharex=layout == WIDE, gridspec_kw=shares)
    return figure, list(made.flat)


def _bars(axes: Axes, labels: Sequence[str], series: Sequence[Series], notes: Sequence[str], layout: str) -> None:
    """Grouped bars, upright where the page is wide, lying where it is narrow; ``notes`` stand at the last bar."""
    width = 0.84 / len(series)
    for number, each in enumerate(series):
        offset = (number - (len(series) - 1) / 2) * width
        places = [group + offset for group in range(len(labels))]
        lengths = [value or 0.0 for value in each.values]
        look: dict[str, Any] = {"label": each.name, "edgecolor": each.colour, "linewidth": 1.0}
        look |= {"facecolor": "white", "hatch": "/////"} if each.hatched else {"facecolor": each.colour}
        if layout == WIDE:
            axes.bar(places, lengths, width * 0.9, **look)
        else:
            axes.barh(places, lengths, width * 0.9, **look)
        for place, value in zip(places, each.values, strict=True):
            if value is None and not each.hatched:
                _note(axes, place, 0.0, "no value", layout, rotation=90)
    for group, note in enumerate(notes):
        last = (len(series) - 1) / 2 * width
        top = max((each.values[group] or 0.0 for each in series[-2:]), default=0.0)
        if note:
            _note(axes, group + last - width / 2, top, note, layout)
    if layout == WIDE:
        axes.set_xticks(
            range(len(labels)), [label.replace(" GEMM", "\nGEMM").replace(" 64x128", "\n64x128") for label in labels]
        )
    else:
        axes.set_yticks(range(len(labels)), labels)
        axes.invert_yaxis()


def _note(axes: Axes, place: float, top: float, text: str, layout: str, rotation: int = 0) -> None:
    look: dict[str, Any] = {"fontsize": 8.5, "color": _INK, "textcoords": "offset points"}
    if layout == WIDE:
        axes.annotate(text, (place, top), xytext=(0, 3), ha="center", va="bottom", rotation=rotation, **look)
    else:
        axes.annotate(text, (top, place), xytext=(4, 0), ha="left", va="center", **look)


def _axis(axes: Axes, title: str, layout: str) -> None:
    axes.tick_params(labelsize=8.5, length=0, colors=_INK)
    if layout == WIDE:
        axes.set_ylabel(title, fontsize=9.5, color=_INK)
        axes.margins(y=0.12)
    else:
        axes.set_xlabel(title, fontsize=9.5, color=_INK)
        axes.margins(x=0.16)
    axes.grid(axis="y" if layout == WIDE else "x", color="#e3e8ec", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(_FAINT)


def _limit(axes: Axes, layout: str) -> None:
    """The line that a starred baseline is above."""
    look: dict[str, Any] = {"color": "#a3302b", "linewidth": 1.0, "linestyle": (0, (5, 3))}
    text: dict[str, Any] = {"fontsize": 8.5, "color": "#a3302b", "textcoords": "offset points"}
    limit = claims.load()["paper"]["block_limit_bytes"] / _KIB
    label = f"limit of a block, {limit:g} KiB"
    if layout == WIDE:
        axes.axhline(limit, **look)
        axes.annotate(label, (-0.4, limit), xytext=(0, 4), ha="left", va="bottom", **text)
    else:
        axes.axvline(limit, **look)
        top = axes.get_xaxis_transform()  # beside the end of the line, above the bars
        axes.annotate(label, (limit, 1.0), xycoords=top, xytext=(0, 3), ha="center", va="bottom", **text)


def _legend(figure: Figure, axes: Axes, layout: str) -> None:
    handles, names = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        names,
        loc="outside upper left",
        ncols=len(names) if layout == WIDE else 2,
        fontsize=9,
        frameon=False,
        handlelength=1.6,
    )
