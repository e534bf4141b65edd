"""Writes the report: ``report.html``, which needs no other file and no network, and beside it figures and CSV."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproduce import claims as paper
from reproduce import frames, provenance, results, sampling
from reproduce.html import charts, claims, maps, svg
from reproduce.html.cells import IN_PART, IN_RANGE, MARKS, NEAR, OUT_OF_RANGE, TableView, tone, view
from reproduce.html.logs import Excerpt, excerpts
from reproduce.results import Document
from reproduce.step import Step
from reproduce.tables import DIFFERS, EQUAL, FAILED, NO_RUN, NOT_MEASURED, SHOWN, SLOWED

NAME = "report.html"
_HERE = Path(__file__).parent

_LEGEND = (
    (EQUAL, "as the paper prints it"),
    (NEAR, "within the table's tolerance of the paper's"),
    (IN_RANGE, "a timed value in the range of the reference that the table names"),
    (IN_PART, "what could be measured is equal, the rest was not measured"),
    (SHOWN, "stands beside the paper's value, or the paper has none; not judged"),
    (SLOWED, "timed while heat or power slowed the GPU down; not judged"),
    (NOT_MEASURED, "this machine cannot measure it, or nobody has yet; never a pass"),
    (DIFFERS, "not what the paper prints (likewise: out of range, failed, no run)"),
)


@dataclass(frozen=True)
class Chart:
    name: str
    wide: str
    narrow: str


@dataclass(frozen=True)
class Section:
    """One step of the page."""

    step: str
    title: str
    charts: tuple[Chart, ...]
    tables: tuple[TableView, ...]
    logs: tuple[Excerpt, ...]


def write(steps: Mapping[str, Step], folder: Path, out: Path, kernels: Sequence[Path] | None = None) -> Path:
    """Makes the report of the results in ``folder`` and returns the page's path in ``out``.

    ``kernels``: sources to draw instead of every kernel of the project. Raises NoResultsError if there are no results;
    a results file that cannot be read is shown on the page as such.
    """
    documents, unreadable = results.load_all(folder, steps)
    problems = {step: str(error) for step, error in unreadable.items()}
    if not documents and not problems:
        raise results.NoResultsError(folder)
    out.mkdir(parents=True, exist_ok=True)
    pictures = list(maps.pictures(kernels))
    text = _render(
        title="Reproduction report: Signal-Aware Liveness Analysis (SALA)",
        style=(_HERE / "style.css").read_text(encoding="utf-8"),
        paper=paper.load()["paper"],
        made=provenance.now().replace("T", " ").removesuffix("+00:00") + " UTC",
        claims=claims.claims(steps, documents, problems),
        counts=_counts(list(documents.values())),
        legend=[(MARKS[verdict], tone(verdict), verdict, text) for verdict, text in _LEGEND],
        sections=[_section(document, folder, out) for document in documents.values()],
        pictures=_pictures(pictures, out / "figures"),
        profiles=claims.PROFILES,
        origins=[
            (document, document.provenance, sampling.describe(document.gpu_states)) for document in documents.values()
        ],
        gaps=claims.gaps(steps, documents, problems),
        files=_files(documents, out),
    )
    page = out / NAME
    results.write_atomically(page, text)
    return page


def _counts(documents: Sequence[Document]) -> list[tuple[str, str, int, str]]:
    """(tone, mark, number, words) of the boxes at the top."""
    found = claims.tally(documents)
    boxes = [
        (EQUAL, found[EQUAL], "values equal to the paper's, or as they must be"),
        (NEAR, found[NEAR], "near it, within tolerance"),
        (IN_RANGE, found[IN_RANGE], "timed values in range"),
        (DIFFERS, sum(found[bad] for bad in (DIFFERS, OUT_OF_RANGE, FAILED, NO_RUN)), "differ, out of range or failed"),
        (SLOWED, found[SLOWED], "timed on a slowed GPU, not judged"),
        (SHOWN, found[SHOWN], "shown beside the paper's"),
        (NOT_MEASURED, found[NOT_MEASURED], "not measured"),
    ]
    made = []
    for verdict, number, words in boxes:
        if number or verdict in (EQUAL, DIFFERS, NOT_MEASURED):
            none_bad = verdict == DIFFERS and not number  # a zero here is no alarm
            made.append(("plain" if none_bad else tone(verdict), MARKS[verdict], number, words))
    return made


def _section(document: Document, folder: Path, out: Path) -> Section:
    made = []
    for name, draw in charts.charts(document).items():
        wide, narrow = draw(charts.WIDE), draw(charts.NARROW)
        charts.save(wide, out / "figures", name)
        label = f"{document.title}: bar chart, the paper's values beside ours; the table below has the same values"
        texts = [
            svg.inline(charts.svg_text(figure), f"{name}-{layout}", label)
            for figure, layout in ((wide, charts.WIDE), (narrow, charts.NARROW))
        ]
        made.append(Chart(name, *texts))
    tables = tuple(view(document, table) for table in document.tables)
    logs = tuple(excerpts(document, folder, out))
    return Section(document.step, document.title, tuple(made), tables, logs)


def _pictures(pictures: Sequence[maps.Picture], folder: Path) -> list[dict[str, Any]]:
    """The pictures with their SVG ready for the page; each is also a file in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for number, picture in enumerate(pictures):
        texts = {"memory_map": "", "timeline": ""}
        name = picture.name.replace(" (pattern)", "").replace(", ", ".")
        for kind in texts:
            text = getattr(picture, kind)
            if text:
                (folder / f"{name}.{kind}.svg").write_text(text, encoding="utf-8")
                label = f"{kind.replace('_', ' ')} of {picture.name}: {picture.summary}"
                texts[kind] = svg.inline(text, f"k{number}{kind[0]}", label)
        made.append({"picture": picture, **texts})
    return made


def _files(documents: Mapping[str, Document], out: Path) -> list[str]:
    frames.write_csv(list(documents.values()), out / "csv")
    found = sorted(path for part in ("figures", "csv") for path in (out / part).glob("*") if path.is_file())
    return [path.relative_to(out).as_posix() for path in found]


def _breakable(text: str) -> Any:
    """The text, escaped, with places where a long name may be broken: behind its underscores and slashes."""
    from markupsafe import Markup, escape

    return Markup(re.sub("([_/])", r"\1<wbr>", str(escape(text))))


def _render(**values: Any) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["breakable"] = _breakable
    return environment.get_template("page.html.j2").render(**values)
