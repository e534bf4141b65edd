"""The whole page: complete, self-contained, well formed, and made of the results alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reproduce import cli, execute, kernels, results, sampling
from reproduce.choreo import Choreo
from reproduce.html import page
from reproduce.step import Context
from reproduce.steps import STEPS
from tests.reproduce.conftest import FakeMachine, Quiet

KERNELS = [kernels.source("conv2d_fprop_ws_1p1c")]
VOID = {"wbr", "meta", "link", "br", "img", "input", "hr"}


class Outline(HTMLParser):
    """Elements that are opened and closed in order, ids, and everything that a browser would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.handle_startendtag(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in ("src", "srcset", "data", "poster", "action"):
                self.loaded.append(f"{tag} {value}")
            elif name.endswith("href"):
                (self.links if tag == "a" else self.loaded if not (value or "").startswith("#") else []).append(
                    value or ""
                )
        if tag in ("link", "script", "iframe", "object", "embed"):
            self.loaded.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> at {self.getpos()}"


@pytest.fixture
def folder(make_choreo: Callable[..., Choreo], make_context: Callable[..., Context], quiet: Quiet) -> Path:
    """A results folder with Figure 2 and, as far as it goes without a GPU, Figure 3."""
    choreo = make_choreo()
    for step in ("figure2", "figure3"):
        context = make_context(step, choreo)
        execute.execute(STEPS[step], context, quiet)
    return context.results


def test_the_page_stands_alone(folder: Path) -> None:
    text = page.write(STEPS, folder, folder / "report", KERNELS).read_text(encoding="utf-8")
    outline = Outline()
    outline.feed(text)
    assert not outline.open and not outline.loaded
    assert len(outline.ids) == len(set(outline.ids))
    for link in outline.links:
        if link.startswith("#"):
            assert link[1:] in outline.ids
        else:
            assert (folder / "report" / link).is_file(), link
    assert "@import" not in text and not re.search(r"url\((?!#)", text)


def test_what_it_says(folder: Path) -> None:
    text = page.write(STEPS, folder, folder / "report", KERNELS).read_text(encoding="utf-8")
    words = re.sub(r"\s+", " ", re.sub(r"<style>.*?</style>|<[^>]+>", " ", text, flags=re.DOTALL))
    assert "8 FA 3s ✓ equal 256* 224 12 256*→224 (-12%) ✓ equal" in words
    assert "Values: 27 equal to the paper&#39;s." in words
    assert "no results yet" in words and "○ no nvcc" in words
    assert "each buffer in its own place" in words and "Shared memory by address" in words
    assert "python -m reproduce" in words and "shared memory OUT OF BOUND" in words


def test_files_beside_the_page(folder: Path) -> None:
    page.write(STEPS, folder, folder / "report", KERNELS)
    names = {path.relative_to(folder / "report").as_posix() for path in (folder / "report").rglob("*.*")}
    assert {"report.html", "figures/figure2.svg", "figures/figure2.png", "figures/figure3.png"} <= names
    assert {"csv/figure2-figure2.csv", "figures/conv2d_fprop_ws_1p1c.memory_map.svg"} <= names
    assert (folder / "report" / "figures" / "figure2.png").read_bytes().startswith(b"\x89PNG")


def test_text_of_results_is_never_markup(folder: Path) -> None:
    path = folder / "figure2.json"
    data = json.loads(path.read_text().replace("1P1C f16", "<script>alert(1)</script>"))
    del data["digest"]
    path.write_text(json.dumps(data))
    text = page.write(STEPS, folder, folder / "report", KERNELS).read_text(encoding="utf-8")
    assert "<script>" not in text and "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_a_broken_results_file_is_shown_as_such(folder: Path) -> None:
    (folder / "table4.json").write_text("{")
    text = page.write(STEPS, folder, folder / "report", KERNELS).read_text(encoding="utf-8")
    assert "table4.json: cannot be read" in text


def test_without_results_it_says_what_to_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(results.NoResultsError, match=r"run a step first, for example \./ae figure2"):
        page.write(STEPS, tmp_path, tmp_path / "report", KERNELS)
    assert cli.main(["report", "--results", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("no results in ") and not list(tmp_path.iterdir())


def test_the_state_of_the_gpu_beside_what_was_timed(folder: Path, make_context, make_choreo, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Marks in table, chart and claim, and the state under provenance; a value that is marked is not judged."""
    hot = sampling.Sample(1200.0, 3201.0, 690.0, 92.0, 0x40)

    class Source:
        power_limit = 700.0

        def read(self) -> sampling.Sample:
            return hot

    monkeypatch.setattr(sampling, "open_source", lambda index: Source())
    machine = FakeMachine("NVIDIA H200", "13.0.88")
    execute.execute(STEPS["figure3"], make_context("figure3", make_choreo(program="sleep 0.05"), machine), Quiet())
    text = page.write(STEPS, folder, folder / "report", KERNELS).read_text(encoding="utf-8")
    words = re.sub(r"\s+", " ", re.sub(r"<style>.*?</style>|<[^>]+>", " ", text, flags=re.DOTALL))
    assert "† slowed down" in words and "✗ out of range" not in words
    assert "SM clock 1200 MHz, memory clock 3201 MHz, power 690 W, temperature 92 °C, power limit 700 W" in words
    assert re.search(r"slowed down by hardware thermal slowdown in \d+ of them", words)
    assert "timed while the GPU was slowed down (hardware thermal slowdown): not judged" in words
